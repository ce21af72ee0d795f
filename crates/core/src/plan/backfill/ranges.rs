//! A set of partitions as ranges of its calendar.
//!
//! Invariant: the ranges are in order and do not meet, so that a set has one spelling; ten thousand partitions in a row
//! take the room of two.

use serde::{Deserialize, Serialize};

use crate::partition::{PartitionError, PartitionKey, TimeSpec};

/// Partitions in a row, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// The first.
    pub first: PartitionKey,
    /// The last.
    pub last: PartitionKey,
}

/// Partitions of one calendar, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(Vec<KeyRange>);

impl Ranges {
    /// Returns the partitions from `first` to `last`, both included.
    pub fn from_to(first: PartitionKey, last: PartitionKey) -> Self {
        Self(vec![KeyRange { first, last }])
    }

    /// Returns the ranges.
    pub fn as_slice(&self) -> &[KeyRange] {
        &self.0
    }

    /// Returns whether there is no partition.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the first partition.
    pub fn first(&self) -> Option<&PartitionKey> {
        self.0.first().map(|range| &range.first)
    }

    /// Returns the last partition.
    pub fn last(&self) -> Option<&PartitionKey> {
        self.0.last().map(|range| &range.last)
    }

    /// Returns how many partitions there are, without making them one by one.
    pub fn count(&self, spec: &TimeSpec) -> Result<u64, PartitionError> {
        let mut count = 0;
        for range in &self.0 {
            count += spec.range(&range.first, &range.last)?.remaining();
        }
        Ok(count)
    }

    /// Returns the partitions one at a time.
    pub fn keys<'a>(
        &'a self,
        spec: &'a TimeSpec,
    ) -> Result<impl Iterator<Item = PartitionKey> + use<'a>, PartitionError> {
        let mut parts = Vec::with_capacity(self.0.len());
        for range in &self.0 {
            parts.push(spec.range(&range.first, &range.last)?);
        }
        Ok(parts.into_iter().flatten())
    }

    /// Returns whether some partition is in both sets of one calendar.
    pub fn overlaps(&self, other: &Self, spec: &TimeSpec) -> Result<bool, PartitionError> {
        for one in &self.0 {
            let (first, last) = (spec.window(&one.first)?, spec.window(&one.last)?);
            for two in &other.0 {
                if spec.window(&two.first)?.start < last.end && first.start < spec.window(&two.last)?.end {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Puts partitions that come in order into ranges.
#[derive(Debug)]
pub struct RangesBuilder<'s> {
    spec: &'s TimeSpec,
    ranges: Vec<KeyRange>,
    /// The partition after the last one.
    next: Option<PartitionKey>,
}

impl<'s> RangesBuilder<'s> {
    /// Returns a builder for partitions of `spec`.
    pub fn new(spec: &'s TimeSpec) -> Self {
        Self { spec, ranges: Vec::new(), next: None }
    }

    /// Adds a partition that comes after all that were added.
    pub fn push(&mut self, key: PartitionKey) -> Result<(), PartitionError> {
        let next = self.spec.next(&key)?;
        match self.ranges.last_mut().filter(|_| self.next.as_ref() == Some(&key)) {
            Some(range) => range.last = key,
            None => self.ranges.push(KeyRange { first: key.clone(), last: key }),
        }
        self.next = Some(next);
        Ok(())
    }

    /// Returns the ranges.
    pub fn finish(self) -> Ranges {
        Ranges(self.ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ranges, RangesBuilder};
    use crate::partition::{PartitionKey, TimeSpec, TimeUnit};

    fn spec(unit: TimeUnit) -> TimeSpec {
        TimeSpec { unit, by: None, tz: Some(chrono_tz::Europe::Berlin), start: None, retention: None }
    }

    fn key(text: &str) -> PartitionKey {
        PartitionKey(text.into())
    }

    fn text(ranges: &Ranges) -> String {
        let parts = ranges.as_slice().iter();
        parts.map(|range| format!("{}..{}", range.first, range.last)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn neighbours_are_one_range_and_gaps_divide() {
        let spec = spec(TimeUnit::Day);
        let mut builder = RangesBuilder::new(&spec);
        for day in ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-03", "2026-03-05", "2026-03-06"] {
            builder.push(key(day)).unwrap();
        }
        let ranges = builder.finish();
        assert_eq!(text(&ranges), "2026-02-27..2026-03-01 2026-03-03..2026-03-03 2026-03-05..2026-03-06");
        assert_eq!(ranges.count(&spec), Ok(6));
        let keys: Vec<String> = ranges.keys(&spec).unwrap().map(|key| key.0).collect();
        assert_eq!(keys, ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-03", "2026-03-05", "2026-03-06"]);
    }

    #[test]
    fn the_hours_of_a_day_on_which_clocks_change_are_all_there() {
        let spec = spec(TimeUnit::Hour);
        let all = spec.range(&key("2026-10-25T00+0200"), &key("2026-10-25T23+0100")).unwrap();
        let mut builder = RangesBuilder::new(&spec);
        for hour in all.clone() {
            builder.push(hour).unwrap();
        }
        let ranges = builder.finish();
        assert_eq!(text(&ranges), "2026-10-25T00+0200..2026-10-25T23+0100");
        assert_eq!(ranges.count(&spec), Ok(25));
        assert!(ranges.keys(&spec).unwrap().eq(all));
    }

    #[test]
    fn ten_thousand_partitions_in_a_row_take_the_room_of_two() {
        let spec = spec(TimeUnit::Day);
        let mut builder = RangesBuilder::new(&spec);
        for day in spec.range(&key("2000-01-01"), &key("2027-05-18")).unwrap() {
            builder.push(day).unwrap();
        }
        let ranges = builder.finish();
        assert_eq!((ranges.as_slice().len(), ranges.count(&spec)), (1, Ok(10_000)));
    }

    #[test]
    fn sets_overlap_when_they_share_a_partition() {
        let spec = spec(TimeUnit::Day);
        let may = Ranges::from_to(key("2026-05-01"), key("2026-05-31"));
        let june = Ranges::from_to(key("2026-06-01"), key("2026-06-30"));
        let late = Ranges::from_to(key("2026-05-31"), key("2026-06-01"));
        assert_eq!(may.overlaps(&june, &spec), Ok(false));
        assert_eq!((may.overlaps(&late, &spec), june.overlaps(&late, &spec)), (Ok(true), Ok(true)));
    }
}
