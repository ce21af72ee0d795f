//! The store against the stamps of the commits.

use std::collections::BTreeSet;

use pintail_core::id::ProjectName;
use pintail_engine::LakeLocation;
use pintail_store::{Store, StoreLocation};

use super::{Check, Finding};
use crate::pintail::{Pintail, RunnerError};

impl Pintail {
    /// Holds the state in the store against one that is made of the stamps alone.
    pub(super) fn stamps(&self, location: &LakeLocation) -> Result<Vec<Finding>, RunnerError> {
        let (stamps, head) = self.all_stamps(location)?;
        let folder = tempfile::tempdir().map_err(|error| RunnerError::Usage {
            message: format!("no folder for the audit's copy of the state can be made: {error}"),
        })?;
        let place = StoreLocation::Sqlite { path: folder.path().join("audit.sqlite") };
        let rebuilt = self.runtime.block_on(async {
            let copy = Store::open(&place, ProjectName("audit".to_owned())).await?;
            copy.rebuild_lake_state(&location.name, &stamps, head).await?;
            Ok::<String, RunnerError>(copy.state_fingerprint(&location.name).await?)
        })?;
        let recorded = self.runtime.block_on(self.store.state_fingerprint(&location.name))?;
        Ok(differing_lines(&recorded, &rebuilt))
    }
}

/// Returns the slices of which two states say other things.
fn differing_lines(recorded: &str, rebuilt: &str) -> Vec<Finding> {
    let only = |one: &str, other: &str, words: &str| -> Vec<Finding> {
        let others: BTreeSet<&str> = other.lines().collect();
        let lines = one.lines().filter(|line| !others.contains(line));
        lines
            .map(|line| Finding {
                check: Check::Stamps.word(),
                place: line.split(" snapshot=").next().unwrap_or(line).to_owned(),
                message: format!("{words}: {line}; `pintail state rebuild` takes the state from the stamps"),
            })
            .collect()
    };
    let mut findings = only(recorded, rebuilt, "only the store says");
    findings.extend(only(rebuilt, recorded, "only the stamps say"));
    findings
}

#[cfg(test)]
mod tests {
    use super::differing_lines;

    #[test]
    fn both_sides_of_a_difference_are_told() {
        let told: Vec<String> = differing_lines("a snapshot=1\nb snapshot=2\n", "b snapshot=2\nc snapshot=3\n")
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.message.split(':').next().unwrap_or_default()))
            .collect();
        assert_eq!(told, ["a: only the store says", "c: only the stamps say"]);
    }
}
