//! Which messages of a stream have landed: all up to a floor, and ranges above it.
//!
//! A broker delivers again what was not acknowledged, after what is newer. One number would therefore either lose the older
//! or repeat the newer. The floor is what the broker says is acknowledged without a gap, and acknowledging comes after the
//! commit; so the ranges are about what is under way, and stay short.

use serde::{Deserialize, Serialize};

/// The set, as it stands in the lake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Landed {
    floor: u64,
    /// First and last of each range, in order, apart from each other and above the floor.
    ranges: Vec<(u64, u64)>,
}

impl Landed {
    /// Reads what [`Self::to_text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// Returns the text for the lake.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("numbers are JSON")
    }

    /// Returns whether `sequence` has landed.
    pub fn contains(&self, sequence: u64) -> bool {
        sequence <= self.floor || self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&sequence))
    }

    /// Adds sequences that land.
    pub fn add(&mut self, sequences: impl IntoIterator<Item = u64>) {
        let new = sequences.into_iter().filter(|sequence| self.floor < *sequence).map(|sequence| (sequence, sequence));
        let mut all: Vec<(u64, u64)> = self.ranges.iter().copied().chain(new).collect();
        all.sort_unstable();
        self.ranges.clear();
        for (first, last) in all {
            match self.ranges.last_mut() {
                Some(open) if first <= open.1.saturating_add(1) => open.1 = open.1.max(last),
                _ => self.ranges.push((first, last)),
            }
        }
    }

    /// Says that everything up to `floor` has landed and is acknowledged.
    pub fn raise_floor(&mut self, floor: u64) {
        self.floor = self.floor.max(floor);
        let floor = self.floor;
        self.ranges.retain_mut(|(first, last)| {
            *first = (*first).max(floor + 1);
            *first <= *last
        });
    }
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_text_is_a_stored_format() {
        let mut landed = Landed::default();
        landed.add([9, 7, 8, 12]);
        landed.raise_floor(4);
        assert_eq!(landed.to_text(), r#"{"floor":4,"ranges":[[7,9],[12,12]]}"#);
        assert_eq!(Landed::parse(&landed.to_text()), Some(landed));
        assert_eq!(Landed::parse("12"), None);
    }

    proptest! {
        #[test]
        fn it_is_the_set_of_what_was_added(
            steps in proptest::collection::vec((proptest::collection::vec(1_u64..60, 0..8), 0_u64..20), 0..8),
        ) {
            let (mut landed, mut model) = (Landed::default(), BTreeSet::new());
            for (sequences, floor) in steps {
                landed.add(sequences.clone());
                model.extend(sequences);
                landed.raise_floor(floor);
                model.extend(1..=floor);
                for sequence in 1..70 {
                    prop_assert_eq!(landed.contains(sequence), model.contains(&sequence), "{}", sequence);
                }
                let apart = landed.ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0);
                prop_assert!(apart && landed.ranges.iter().all(|(first, last)| landed.floor < *first && first <= last));
            }
        }
    }
}
