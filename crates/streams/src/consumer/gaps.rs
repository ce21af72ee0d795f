//! What a pass cannot consume: gaps that are left out on record, and what is refused.

use pintail_core::id::TableId;
use pintail_core::stream::{Decision, Gap, Part, Passage};

use super::observe::Observation;
use super::outcome::{Landed, Pass, PassError};
use super::pass::Consumer;
use crate::commit::{Commit, Outcome, commit};
use crate::dead_letter::{self, DeadLetter, EventName};
use crate::position::{Move, Position};

impl Consumer<'_> {
    pub(super) fn refusal(&self, decision: Decision, seen: &Observation, was: TableId) -> PassError {
        let (consumer, asset, cursor) = (self.spec.name.clone(), self.asset(), seen.cursor);
        match decision {
            Decision::Ahead => PassError::Ahead { consumer, cursor, head: seen.head },
            Decision::Replaced { found } => PassError::Replaced { consumer, asset, cursor, was, found },
            Decision::Stopped(gap) => {
                self.count_gap("stop");
                PassError::Gap { consumer, asset, gap, cursor }
            }
            _ => PassError::SourceShape {
                asset,
                what: format!("is gone; the cursor stays at snapshot {cursor}, and `pintail consume reset` forgets it"),
            },
        }
    }

    pub(super) fn skip(&mut self, position: &Position, passage: &Passage) -> Result<Pass, PassError> {
        dead_letter::prepare(self.writer)?;
        self.count_gap("skip");
        let letter = skipped(self.by(), &passage.gap, &self.asset());
        let staged = dead_letter::stage(self.writer.session(), &[letter])?;
        let permit = passage.permit(Part::Last, self.token());
        let (from, to) = (permit.from().to_string(), permit.to().to_string());
        let change = Move { from: &from, to: &to, source: &position.source, token: permit.token() };
        let asked = Commit { by: &self.by(), position: &self.spec.cursor(), change, changes: &[] };
        let outcome = commit(
            self.writer,
            &asked,
            |transaction| dead_letter::write(transaction, self.writer.alias(), &staged),
            |_| format!("{}: skipped {}", self.by(), passage.gap),
        );
        match outcome {
            Outcome::Committed { snapshot, value } => {
                let landed = Landed {
                    range: (permit.from().0, permit.to().0),
                    snapshot: snapshot.0,
                    letters: value,
                    windows: 1,
                    gap: Some(passage.gap.to_string()),
                    has_more: true,
                    ..Landed::default()
                };
                self.landed(permit.to(), &landed)?;
                Ok(Pass::Landed(landed))
            }
            Outcome::Moved { .. } | Outcome::Unknown(_) => self.look_again(Pass::Again),
            Outcome::Retry(error) | Outcome::Refused(error) => Err(error.into()),
        }
    }
}

/// Returns the record of a gap that was left out.
pub(super) fn skipped(by: String, gap: &Gap, source: &str) -> DeadLetter {
    DeadLetter {
        origin: by,
        position: gap.to_string(),
        part: None,
        reason: format!("{gap} of {source} were expired before they were consumed; they were skipped as asked"),
        raw: Vec::new(),
        decoder: None,
        event: EventName::default(),
    }
}
