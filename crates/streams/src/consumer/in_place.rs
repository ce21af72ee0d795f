//! Commits that leave the cursor where it is: rollups made anew, and rows whose time is over.
//!
//! They go through the cursor's row all the same, so that they and the passes of the same consumer never land beside each
//! other, and an owner who was overtaken writes nothing.

use pintail_core::sql::{Ident, Literal, Statement};
use pintail_engine::EngineError;

use super::lease::Ownership;
use super::outcome::PassError;
use super::pass::Consumer;
use super::tables::PreparedTarget;
use crate::commit::{Commit, Outcome, commit, patience};
use crate::position::{self, Move};

impl Consumer<'_> {
    /// Makes the rollups of this consumer, or of this shard, anew.
    pub fn rebuild_rollups(&self) -> Result<(), PassError> {
        let targets = self.targets.as_deref().unwrap_or_default();
        let statements: Vec<Statement> = targets.iter().flat_map(rebuild).collect();
        self.write_in_place(&statements, "rollups made anew from their bases").map(drop)
    }

    /// Deletes the decoded rows from before `cutoff_micros` (in UTC microseconds) that are this consumer's, or this shard's,
    /// keeps the rollups right, and returns how many rows went. Targets without a time keep theirs.
    pub fn retire(&mut self, cutoff_micros: i64) -> Result<u64, PassError> {
        if position::is_absent(self.writer, &self.spec.cursor())? {
            return Ok(0);
        }
        self.prepare()?;
        let cutoff = self.cutoff(cutoff_micros)?;
        let mut rows = 0;
        for target in self.targets.as_deref().unwrap_or_default() {
            let Some(time) = &target.target.identity.time else { continue };
            let mine = self.of_shard(&format!("{} WHERE {} < {cutoff}", target.base, Ident::new(time)));
            // Looked at first: what deletes nothing should not commit.
            let any = format!("SELECT EXISTS (SELECT 1 FROM {mine})");
            let is_due: bool = self.writer.session().one("look for rows whose time is over", &any, |row| row.get(0))?;
            if is_due {
                rows +=
                    self.write_in_place(&retirement(target, &mine, &cutoff), "rows whose time is over have gone")?;
            }
        }
        Ok(rows)
    }

    /// Returns the moment as a literal, by which files are left unread.
    fn cutoff(&self, micros: i64) -> Result<String, EngineError> {
        let sql = format!("SELECT make_timestamptz({micros}::BIGINT)::VARCHAR");
        let text: String = self.writer.session().one("write the moment", &sql, |row| row.get(0))?;
        Ok(format!("TIMESTAMPTZ {}", Literal::new(text)))
    }

    /// Sends `statements` in one commit, which is tried again while others are in the way, and returns the count of the
    /// last of them.
    pub(super) fn write_in_place(&self, statements: &[Statement], what: &str) -> Result<u64, PassError> {
        let targets = self.targets.as_deref().unwrap_or_default();
        let changes: Vec<_> = targets.iter().flat_map(PreparedTarget::tables).collect();
        let mut pauses = backon::BackoffBuilder::build(patience());
        loop {
            let Some(found) = position::read(self.writer, &self.spec.cursor())? else { return Ok(0) };
            // Beside the owner there is no token of one's own; the owner's is good for as long as nobody else writes.
            let token = self.ownership.as_ref().map_or(found.token, Ownership::token);
            let change = Move { from: &found.at, to: &found.at, source: &found.source, token };
            let asked = Commit { by: &self.by(), position: &self.spec.cursor(), change, changes: &changes };
            let outcome = commit(
                self.writer,
                &asked,
                |transaction| statements.iter().try_fold(0, |_, statement| transaction.run(statement)),
                |count| format!("{}: {what} ({count})", self.by()),
            );
            let error = match outcome {
                Outcome::Committed { value, .. } => return Ok(value),
                Outcome::Refused(error) => return Err(error.into()),
                Outcome::Retry(error) | Outcome::Unknown(error) => error,
                Outcome::Moved { .. } if !self.holds()? => {
                    return Err(PassError::LeaseLost { consumer: self.spec.name.clone() });
                }
                Outcome::Moved { .. } => EngineError::NotCommitted { attempt: self.by() },
            };
            match pauses.next() {
                Some(pause) => self.pause(pause)?,
                None => return Err(error.into()),
            }
        }
    }
}

pub(super) fn rebuild(target: &PreparedTarget) -> Vec<Statement> {
    match (&target.target.rollup, &target.rollup) {
        (Some(rollup), Some(table)) => rollup.rebuild(&target.base_of_shard, &table.to_string()),
        _ => Vec::new(),
    }
}

/// Takes the rows out of the rollup while they are there, and deletes them last.
fn retirement(target: &PreparedTarget, mine: &str, cutoff: &str) -> Vec<Statement> {
    let mut statements = match (&target.target.rollup, &target.rollup) {
        (Some(rollup), Some(table)) => rollup.retire(&target.base_of_shard, &table.to_string(), cutoff),
        _ => Vec::new(),
    };
    statements.push(Statement::new("delete the rows whose time is over", format!("DELETE FROM {mine}")));
    statements
}
