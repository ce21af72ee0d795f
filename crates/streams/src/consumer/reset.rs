//! Setting a cursor by hand.

use pintail_core::id::SnapshotId;
use pintail_core::sql::{Literal, Statement};
use pintail_engine::guard::ConsumerProgress;
use pintail_engine::{EngineError, lake};

use super::observe::cursor_of;
use super::outcome::PassError;
use super::pass::Consumer;
use super::source::{Source, Start};
use crate::commit::{Commit, Outcome, commit};
use crate::position::{self, Move};

impl Consumer<'_> {
    /// Sets the cursor, also back, and to a table that was made anew; returns where it was and where it is. What has never
    /// begun begins there.
    ///
    /// Rows that are consumed again are not doubled. The position counts as one that has not moved, so that a gap behind the
    /// new place is read from the table, as for a consumer that has never run.
    pub fn reset(&mut self, to: Start) -> Result<(Option<SnapshotId>, SnapshotId), PassError> {
        let Some(found) = position::read(self.writer, &self.spec.cursor())? else {
            self.spec.start = to;
            let begun = self.position()?.ok_or_else(|| self.no_source())?;
            return Ok((None, cursor_of(&begun)?));
        };
        let Source { schema, table } = &self.spec.source;
        let tables = lake::live_tables(self.writer.session(), self.writer.alias())?;
        let live = tables
            .iter()
            .find(|live| live.schema.eq_ignore_ascii_case(schema) && live.name.eq_ignore_ascii_case(table))
            .ok_or_else(|| self.no_source())?;
        let place = self.start_of(to, live)?;
        let source = self.spec.source_text(&self.writer.lake().name, live.id);
        let at = place.to_string();
        let change = Move { from: &found.at, to: &at, source: &found.source, token: self.token().max(found.token) };
        let begin_anew = Statement::new(
            "let the position begin anew",
            format!(
                "UPDATE {} SET source = {}, moved = false",
                self.spec.cursor().relation(self.writer.alias()),
                Literal::new(source)
            ),
        );
        // Before the cursor goes back, so that nothing expires, and nothing is vouched for, that it will read again.
        let told = cursor_of(&found).map_or(place, |cursor| cursor.min(place));
        self.set_progress(told)?;
        let asked = Commit { by: &self.by(), position: &self.spec.cursor(), change, changes: &[] };
        let tell = |_: &u64| format!("{}: reset from {} to {at}", self.by(), found.at);
        match commit(self.writer, &asked, |transaction| transaction.run(&begin_anew), tell) {
            Outcome::Committed { .. } => {}
            Outcome::Moved { .. } => return Err(PassError::LeaseLost { consumer: self.spec.name.clone() }),
            Outcome::Retry(error) | Outcome::Unknown(error) | Outcome::Refused(error) => return Err(error.into()),
        }
        self.set_progress(place)?;
        self.seen = SnapshotId(0);
        Ok((cursor_of(&found).ok(), place))
    }

    fn no_source(&self) -> PassError {
        PassError::SourceShape { asset: self.asset(), what: "does not exist".to_owned() }
    }

    /// Returns the snapshot behind which a consumer of `live` begins.
    pub(super) fn start_of(&self, start: Start, live: &lake::LiveTable) -> Result<SnapshotId, EngineError> {
        Ok(match start {
            Start::Earliest => SnapshotId(live.since.0 - 1),
            Start::Head => lake::head(self.writer.session(), self.writer.alias())?,
            Start::After(snapshot) => {
                let head = lake::head(self.writer.session(), self.writer.alias())?;
                if head < snapshot {
                    let detail = format!("snapshot {snapshot} is not there yet: the newest is {head}");
                    return Err(EngineError::Answer { purpose: "find the place to begin", detail });
                }
                snapshot
            }
        })
    }

    /// Returns the progress that the guard is told.
    pub(super) fn progress(&self, upto: SnapshotId) -> ConsumerProgress {
        ConsumerProgress {
            required: self.spec.required,
            stale_after_micros: self.spec.staleness.map(|limit| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX)),
            ..ConsumerProgress::new(self.spec.full_name(), upto, (self.now)())
        }
    }
}
