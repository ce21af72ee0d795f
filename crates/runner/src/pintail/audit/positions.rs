//! Positions of streams against the commits that wrote them.

use pintail_core::id::SnapshotId;
use pintail_streams::audit::{PositionRow, Written};

use super::{CLOCKS_DIFFER, Check, Finding};

/// Returns what is wrong with positions: none or several rows, a time to come, or a row that somebody else has written.
pub(super) fn positions(rows: &[PositionRow], now_micros: i64) -> Vec<Finding> {
    rows.iter()
        .filter_map(|row| {
            let message = fault(row, now_micros)?;
            Some(Finding { check: Check::Positions.word(), place: row.table.clone(), message })
        })
        .collect()
}

fn fault(row: &PositionRow, now_micros: i64) -> Option<String> {
    let at = row.at.as_deref().unwrap_or_default();
    let set_by_hand = |snapshot: SnapshotId| {
        format!(
            "somebody else has written it at snapshot {snapshot}: rows may be lost or read twice from there on; compare with \
             `SELECT * FROM snapshots()`{}",
            row.consumer
                .as_ref()
                .map_or_else(String::new, |name| format!(", or read again by `pintail consume backfill {name}`"))
        )
    };
    match &row.written {
        _ if row.rows != 1 => Some(format!(
            "it holds {} rows instead of one: somebody else has written it, and the stream cannot go on; bring the row back \
             from an older version of the table",
            row.rows
        )),
        Written::ByOthers(snapshot) => Some(set_by_hand(*snapshot)),
        Written::To(snapshot, to) if to != at => Some(format!(
            "the commit of snapshot {snapshot} moved it to {to}, and it is at {at}; {}",
            set_by_hand(*snapshot)
        )),
        _ if now_micros.saturating_add(CLOCKS_DIFFER) < row.updated_micros => Some(format!(
            "it was written at {}, which is yet to come: the clocks of the machines differ; set them by NTP",
            crate::time_text(row.updated_micros)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_that_is_not_where_its_commit_left_it_is_told() {
        let row = PositionRow {
            table: "cursor_c".to_owned(),
            consumer: Some("c".to_owned()),
            rows: 1,
            at: Some("7".to_owned()),
            token: 1,
            updated_micros: 0,
            written: Written::To(SnapshotId(9), "7".to_owned()),
        };
        let is = |change: &dyn Fn(&mut PositionRow)| {
            let mut row = row.clone();
            change(&mut row);
            fault(&row, 0)
        };
        assert_eq!(
            [is(&|_| ()), is(&|row| row.written = Written::Gone), is(&|row| row.written = Written::ByPintail)],
            [None, None, None]
        );
        let begins = |change: &dyn Fn(&mut PositionRow), with: &str| {
            let told = is(change).unwrap();
            assert!(told.starts_with(with), "{told}");
        };
        begins(&|row| row.rows = 2, "it holds 2 rows instead of one");
        begins(&|row| (row.rows, row.at) = (0, None), "it holds 0 rows instead of one");
        begins(&|row| row.written = Written::ByOthers(SnapshotId(4)), "somebody else has written it at snapshot 4");
        begins(&|row| row.at = Some("8".to_owned()), "the commit of snapshot 9 moved it to 7, and it is at 8");
        begins(
            &|row| row.updated_micros = 90_000_000,
            "it was written at 1970-01-01 00:01:30 UTC, which is yet to come",
        );
    }
}
