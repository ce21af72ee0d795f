//! Dead letters against the snapshots that they are about. That their events are in the source is asked by who knows the
//! decoders. Letters of a consumer that was removed stay, and are no fault.

use pintail_core::id::SnapshotId;
use pintail_engine::{Session, lake};
use pintail_streams::dead_letter::{LettersOf, by_origin};

use super::{Check, Finding};
use crate::pintail::RunnerError;

/// Returns the letters that are about a snapshot that never was.
pub(super) fn letters(session: &Session, alias: &str) -> Result<Vec<Finding>, RunnerError> {
    let letters = by_origin(session, alias)?;
    // The head afterwards: a letter comes with its commit.
    let head = lake::head(session, alias)?;
    Ok(letters.iter().filter_map(|letters| beyond(letters, head)).collect())
}

fn beyond(letters: &LettersOf, head: SnapshotId) -> Option<Finding> {
    let newest = letters.newest.filter(|newest| head < *newest)?;
    let message = format!(
        "of its {} dead letters some are about snapshot {newest}, and the newest is {head}: the lake was taken back; what they \
         are about comes again",
        letters.count
    );
    Some(Finding { check: Check::Letters.word(), place: letters.origin.clone(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_about_snapshots_that_were() {
        let found = |newest: Option<i64>| {
            let letters = LettersOf { origin: "consumer c".to_owned(), count: 2, newest: newest.map(SnapshotId) };
            beyond(&letters, SnapshotId(9)).map(|found| found.message)
        };
        assert_eq!([found(Some(9)), found(None)], [None, None]);
        assert!(found(Some(10)).unwrap().contains("some are about snapshot 10, and the newest is 9"));
    }
}
