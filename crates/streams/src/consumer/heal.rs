//! Making rollups anew from their bases.

use pintail_core::sql::Statement;
use pintail_engine::EngineError;

use super::outcome::PassError;
use super::pass::Consumer;
use super::tables::PreparedTarget;
use crate::commit::{Commit, Outcome, commit, patience};
use crate::position::{self, Move};

impl Consumer<'_> {
    /// Makes the rollups of this consumer, or of this shard, anew, in one commit that leaves the cursor where it is.
    pub fn rebuild_rollups(&self) -> Result<(), PassError> {
        let targets = self.targets.as_deref().unwrap_or_default();
        let statements: Vec<Statement> = targets.iter().flat_map(rebuild).collect();
        let mut pauses = backon::BackoffBuilder::build(patience());
        loop {
            let Some(found) = position::read(self.writer, &self.spec.cursor())? else { return Ok(()) };
            let change = Move { from: &found.at, to: &found.at, source: &found.source, token: self.token() };
            let asked = Commit { by: &self.by(), position: &self.spec.cursor(), change };
            let outcome = commit(
                self.writer,
                &asked,
                |transaction| statements.iter().try_for_each(|statement| transaction.run(statement).map(|_| ())),
                |()| format!("{}: rollups made anew from their bases", self.by()),
            );
            let error = match outcome {
                Outcome::Committed { .. } => return Ok(()),
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

fn rebuild(target: &PreparedTarget) -> Vec<Statement> {
    match (&target.target.rollup, &target.rollup) {
        (Some(rollup), Some(table)) => rollup.rebuild(&target.base_of_shard, &table.to_string()),
        _ => Vec::new(),
    }
}
