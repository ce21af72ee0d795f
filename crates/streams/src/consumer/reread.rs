//! Reading again what the source holds: a backfill, which fills in what is missing, and a replay, which also takes out what
//! older versions of the decoder wrote of the same events, or of others that come to the same rows.
//!
//! Invariant: the cursor stays where it is, and every commit updates its row, so that the owner, who may be at work at the
//! same time, and this conflict instead of both inserting one row. What was read is the table, not its feed: nothing of it
//! expires.

use std::time::Duration;

use chrono::{DateTime, Utc};
use pintail_core::id::SnapshotId;
use pintail_core::sql::{Ident, Literal};
use pintail_engine::lake::{self, feed};

use super::observe::cursor_of;
use super::outcome::{Landed, PassError};
use super::pass::Consumer;
use super::read::{IsLast, Window, windows};
use super::replace;
use super::source::Source;
use super::write::{Existing, StagedWindow};
use crate::position::{self, Move};

/// Which rows of the source are read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// Those that came with a snapshot in `(after, upto]`.
    Snapshots {
        /// The last snapshot before them.
        after: SnapshotId,
        /// The last of them.
        upto: SnapshotId,
    },
    /// Those whose time is in `[from, to)`.
    Time {
        /// The source's column.
        column: String,
        /// From then on.
        from: DateTime<Utc>,
        /// Before then.
        to: DateTime<Utc>,
    },
}

impl Range {
    fn time_column(&self) -> Option<&str> {
        match self {
            Range::Snapshots { .. } => None,
            Range::Time { column, .. } => Some(column),
        }
    }

    fn condition(&self) -> String {
        match self {
            Range::Snapshots { after, upto } => format!("{after} < snapshot_id AND snapshot_id <= {upto}"),
            Range::Time { column, from, to } => {
                let (column, from, to) = (Ident::new(column), text(from), text(to));
                format!("{from}::TIMESTAMPTZ <= {column} AND {column} < {to}::TIMESTAMPTZ")
            }
        }
    }
}

fn text(time: &DateTime<Utc>) -> Literal {
    Literal::new(time.to_rfc3339())
}

impl Consumer<'_> {
    /// Reads `range` again at the head, window by window, and says what came of it.
    pub fn reread(&mut self, range: &Range, existing: Existing) -> Result<Landed, PassError> {
        let Some(found) = position::read(self.writer, &self.spec.cursor())? else {
            return Err(PassError::NeverRun { consumer: self.spec.name.clone() });
        };
        let cursor = cursor_of(&found)?;
        self.check_source(range.time_column())?;
        self.prepare()?;
        let head = lake::head(self.writer.session(), self.writer.alias())?;
        let Source { schema, table } = &self.spec.source;
        let rows = feed::rows_after(self.writer.alias(), schema, table, SnapshotId(-1), head);
        let rows = self.of_shard(&rows);
        let condition = match existing {
            Existing::Keep => range.condition(),
            Existing::ReplaceOlder => replace::with_twins(&self.reader, self.decoder, &rows, &range.condition())?,
        };
        let relation = format!("{rows} AND {condition}");
        let mut landed = Landed { range: (cursor.0, cursor.0), ..Landed::default() };
        let (this, reads) = (&*self, self.decoder.reads());
        let each = |window: Window, _: IsLast| -> Result<(), PassError> {
            if window.count.rows == 0 {
                return Ok(());
            }
            let staged = this.decode_and_stage(&window, cursor, existing, &mut landed)?;
            landed.snapshot = this.commit_beside(&staged, window.count.rows, &mut landed)?.0;
            Ok(())
        };
        windows(&this.reader, &relation, &reads, &this.spec.window, each)??;
        Ok(landed)
    }

    /// Commits a window wherever the cursor is.
    fn commit_beside(&self, staged: &StagedWindow, rows: u64, landed: &mut Landed) -> Result<SnapshotId, PassError> {
        loop {
            let Some(found) = position::read(self.writer, &self.spec.cursor())? else {
                return Err(PassError::NeverRun { consumer: self.spec.name.clone() });
            };
            let change = Move { from: &found.at, to: &found.at, source: &found.source, token: found.token };
            if let Some((snapshot, written)) = self.commit_window(&change, staged)? {
                self.count(&written, rows, landed);
                return Ok(snapshot);
            }
            // The owner has moved the cursor between the look and the commit.
            self.pause(Duration::from_millis(1))?;
        }
    }
}
