//! Dead letters against the streams and the snapshots that they are about.

use pintail_core::id::SnapshotId;
use pintail_engine::{Session, lake};
use pintail_streams::cursors::{Cursor, cursors};
use pintail_streams::dead_letter::{LettersOf, by_origin};

use super::{Check, Finding};
use crate::pintail::RunnerError;

/// What the origins of consumers' letters begin with.
const CONSUMER: &str = "consumer ";

/// Returns the letters that nothing there is explains.
pub(super) fn letters(session: &Session, alias: &str) -> Result<Vec<Finding>, RunnerError> {
    let letters = by_origin(session, alias)?;
    // Cursors and head afterwards: a letter comes with its commit.
    let (cursors, head) = (cursors(session, alias)?, lake::head(session, alias)?);
    Ok(letters.iter().filter_map(|letters| unexplained(letters, &cursors, head)).collect())
}

fn unexplained(letters: &LettersOf, cursors: &[Cursor], head: SnapshotId) -> Option<Finding> {
    let consumer = letters.origin.strip_prefix(CONSUMER)?;
    // Of a consumer with another number of shards than before some letters are of shards that are no more.
    let name = |full: &str| full.split('.').next().unwrap_or_default().to_owned();
    let (count, newest) = (letters.count, letters.newest.filter(|newest| head < *newest));
    let message = if let Some(newest) = newest {
        format!(
            "of its {count} dead letters some are about snapshot {newest}, and the newest is {head}: the lake was taken back; \
             what they are about comes again"
        )
    } else if cursors.iter().all(|cursor| name(&cursor.consumer) != name(consumer)) {
        format!(
            "the lake has {count} dead letters of it, and no cursor: it was renamed or taken away, and nobody will decode \
             again what they are about; `pintail deadletter list` shows them"
        )
    } else {
        return None;
    };
    Some(Finding { check: Check::Letters.word(), place: letters.origin.clone(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_of_a_consumer_with_a_cursor_and_of_a_snapshot_that_was() {
        let cursors = [Cursor { consumer: "decode.03".to_owned(), at: SnapshotId(5), source: None, updated_micros: 0 }];
        let found = |origin: &str, newest| {
            let letters = LettersOf { origin: origin.to_owned(), count: 2, newest: Some(SnapshotId(newest)) };
            unexplained(&letters, &cursors, SnapshotId(9)).map(|found| found.message)
        };
        assert_eq!(
            [found("consumer decode.03", 9), found("consumer decode.11", 3), found("http", 77)],
            [None, None, None]
        );
        assert!(found("consumer decode.03", 10).unwrap().contains("the newest is 9"));
        assert!(found("consumer old", 3).unwrap().contains("and no cursor"));
    }
}
