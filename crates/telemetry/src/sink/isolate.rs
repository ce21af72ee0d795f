//! Finds the rows for which a whole batch is refused, by halves.
//!
//! Invariant: a row is condemned only when it fails alone while an empty batch passes; when the first probes all fail, the
//! fault is not in the rows, and no row is touched.

use std::ops::Range;

/// When so many probes have failed and none has passed, it is no fault of rows.
const HOPELESS: usize = 8;

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
            return Ok(Diagnosis::Everything(reason));
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
    fn a_single_bad_row_is_condemned() {
        assert_eq!(diagnose(1, &BTreeSet::from([0])).0, Diagnosis::Rows(vec![(0, "row 0".to_owned())]));
    }

    proptest! {
        #[test]
        fn what_is_condemned_is_exactly_what_is_bad(
            rows in 1_usize..200, bad in proptest::collection::btree_set(0_usize..200, 0..5),
        ) {
            let bad: BTreeSet<usize> = bad.into_iter().filter(|row| *row < rows).collect();
            match diagnose(rows, &bad).0 {
                Diagnosis::Rows(found) => {
                    prop_assert_eq!(found.into_iter().map(|(row, _)| row).collect::<BTreeSet<_>>(), bad);
                }
                // Only a batch that is bad through and through looks like no fault of rows.
                Diagnosis::Everything(_) => prop_assert!(bad.contains(&0), "{:?}", bad),
            }
        }
    }
}
