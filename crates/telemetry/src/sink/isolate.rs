//! Finds the rows for which a whole batch is refused, by halves.
//!
//! Invariant: a row is condemned only when it fails alone while an empty batch passes; when the first probes all fail, and
//! single rows from all over the batch too, the fault is not in the rows, and no row is touched.

use std::ops::Range;

/// When so many probes have failed and none has passed, single rows decide whether it is a fault of rows at all: the
/// halves may all have had one and the same bad row.
const HOPELESS: usize = 8;

/// So many single rows are tried then.
const SAMPLES: usize = 16;

/// What a refused batch suffers from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Diagnosis {
    /// These rows, each with its reason; all others pass.
    Rows(Vec<(usize, String)>),
    /// Something that is no matter of rows.
    Everything(String),
}

/// Finds out why a batch of `rows` rows, which has failed, fails; `fails` tries a range and returns why it cannot be
/// written, or `None` when it can. An empty range writes nothing.
pub fn isolate<E>(
    rows: usize,
    mut fails: impl FnMut(Range<usize>) -> Result<Option<String>, E>,
) -> Result<Diagnosis, E> {
    if let Some(reason) = fails(0..0)? {
        return Ok(Diagnosis::Everything(reason));
    }
    let mut bad = Vec::new();
    let (mut probes, mut has_passed) = (0, false);
    // Ranges that fail or whose parent fails; the next one is last.
    let mut open: Vec<Range<usize>> = std::iter::once(0..rows).collect();
    while let Some(range) = open.pop() {
        let Some(reason) = fails(range.clone())? else {
            has_passed = true;
            continue;
        };
        probes += 1;
        if HOPELESS <= probes && !has_passed {
            has_passed = any_passes(rows, &mut fails)?;
            if !has_passed {
                return Ok(Diagnosis::Everything(reason));
            }
        }
        if range.len() == 1 {
            bad.push((range.start, reason));
            continue;
        }
        let middle = range.start + range.len() / 2;
        open.push(middle..range.end);
        open.push(range.start..middle);
    }
    Ok(Diagnosis::Rows(bad))
}

/// Returns whether one of some single rows passes, which are spread evenly over the batch.
fn any_passes<E>(rows: usize, fails: &mut impl FnMut(Range<usize>) -> Result<Option<String>, E>) -> Result<bool, E> {
    let samples = rows.min(SAMPLES);
    for sample in 0..samples {
        let row = (2 * sample + 1) * rows / (2 * samples);
        if fails(row..row + 1)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn diagnose(rows: usize, bad: &BTreeSet<usize>) -> (Diagnosis, usize) {
        let mut probes = 0;
        let found = isolate(rows, |range| {
            probes += 1;
            Ok::<_, Infallible>(range.clone().find(|row| bad.contains(row)).map(|row| format!("row {row}")))
        });
        (found.unwrap(), probes)
    }

    #[test]
    fn a_fault_of_no_row_condemns_none() {
        let found = isolate(1_000, |_| Ok::<_, Infallible>(Some("no such column".to_owned())));
        assert_eq!(found, Ok(Diagnosis::Everything("no such column".to_owned())));
        // Also where an empty batch happens to pass.
        let found = isolate(1_000, |range| Ok::<_, Infallible>((!range.is_empty()).then(|| "disk".to_owned())));
        assert_eq!(found, Ok(Diagnosis::Everything("disk".to_owned())));
    }

    #[test]
    fn one_bad_row_of_many_costs_few_probes() {
        let (found, probes) = diagnose(100_000, &BTreeSet::from([77_777]));
        assert_eq!(found, Diagnosis::Rows(vec![(77_777, "row 77777".to_owned())]));
        assert!(probes < 40, "{probes}");
    }

    #[test]
    fn a_bad_row_is_found_wherever_it_lies() {
        for row in [0, 1, 127, 128, 64_000, 127_999] {
            let (found, probes) = diagnose(128_000, &BTreeSet::from([row]));
            assert_eq!(found, Diagnosis::Rows(vec![(row, format!("row {row}"))]));
            assert!(probes < 50, "{row}: {probes}");
        }
    }

    #[test]
    fn a_single_bad_row_is_condemned() {
        assert_eq!(diagnose(1, &BTreeSet::from([0])).0, Diagnosis::Rows(vec![(0, "row 0".to_owned())]));
    }

    proptest! {
        #[test]
        fn what_is_condemned_is_exactly_what_is_bad(
            rows in 1_usize..600, bad in proptest::collection::btree_set(0_usize..600, 0..40),
        ) {
            let bad: BTreeSet<usize> = bad.into_iter().filter(|row| *row < rows).collect();
            match diagnose(rows, &bad).0 {
                Diagnosis::Rows(found) => {
                    prop_assert_eq!(found.into_iter().map(|(row, _)| row).collect::<BTreeSet<_>>(), bad);
                }
                // Only a batch whose rows are bad all over looks like no fault of rows.
                Diagnosis::Everything(_) => prop_assert!(rows.min(SAMPLES) <= bad.len(), "{:?}", bad),
            }
        }
    }
}
