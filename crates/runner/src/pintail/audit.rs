//! `pintail audit`: every invariant of a lake that can be checked while it is in use, and what breaks it.
//!
//! Files against the catalog, rows against the catalog, the store against the stamps, pins and consumers against the
//! snapshots. What consumers have written is added by those who know their decoders. Nothing is mended here.

use pintail_core::id::{LakeName, ProjectName, SnapshotId};
use pintail_core::retention::Snapshot;
use pintail_engine::guard::{ConsumerProgress, Pin, PinKind};
use pintail_engine::lake::{self, audit};
use pintail_engine::{EngineError, LakeLocation, Session};
use pintail_store::{Store, StoreLocation};

use super::{Pintail, RunnerError};

/// Something that an audit looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Each file that a snapshot shows is there.
    Files,
    /// Each table has as many rows as the catalog says.
    Rows,
    /// The store says what the stamps say.
    Stamps,
    /// Each pin's snapshot is there.
    Pins,
    /// Each consumer stands within the snapshots that are there.
    Consumers,
    /// What consumers have written is there once, has its source, and is summed up rightly.
    Decoded,
}

impl Check {
    /// Every check, in the order in which they are made.
    pub const ALL: [Check; 6] =
        [Check::Files, Check::Rows, Check::Stamps, Check::Pins, Check::Consumers, Check::Decoded];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Check::Files => "files",
            Check::Rows => "rows",
            Check::Stamps => "stamps",
            Check::Pins => "pins",
            Check::Consumers => "consumers",
            Check::Decoded => "decoded",
        }
    }
}

/// A question about a lake whose answer must be 0.
#[derive(Clone, Debug)]
pub struct Question {
    /// The table that it is about.
    pub place: String,
    /// What the answer counts, such as `rows that are there already`.
    pub counted: String,
    /// Answers with one BIGINT.
    pub query: String,
    /// The tables, by schema and name, without which it is not asked.
    pub tables: Vec<(String, String)>,
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// Where: a table, a pin, a consumer.
    pub place: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// What an audit of one lake found.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The lake.
    pub lake: LakeName,
    /// The newest snapshot when it began.
    pub head: SnapshotId,
    /// What was checked.
    pub checks: Vec<&'static str>,
    /// What is wrong, by check.
    pub findings: Vec<Finding>,
}

impl Pintail {
    /// Checks one lake, or all, and mends nothing. `questions` returns what else must be 0 in a lake that is attached under
    /// the name that it is given.
    pub fn audit(
        &self,
        lake: Option<&str>,
        questions: &dyn Fn(&LakeName, &str) -> Vec<Question>,
    ) -> Result<Vec<Audit>, RunnerError> {
        // What the store has not seen yet is no difference.
        self.observe([])?;
        self.lakes_named(lake)?.into_iter().map(|location| self.audit_lake(location, questions)).collect()
    }

    fn audit_lake(
        &self,
        location: &LakeLocation,
        questions: &dyn Fn(&LakeName, &str) -> Vec<Question>,
    ) -> Result<Audit, RunnerError> {
        let old = self.old_versions(location)?;
        let (session, alias) = (&old.session, old.alias());
        let head = lake::head(session, &alias)?;
        let guard = self.guard(location)?;
        let pins = self.runtime.block_on(guard.pins()).map_err(EngineError::from)?;
        let mut consumers = self.runtime.block_on(guard.consumers()).map_err(EngineError::from)?;
        consumers.extend(self.runtime.block_on(guard.foreign_consumers()).map_err(EngineError::from)?);
        let snapshots = lake::snapshots(session, &alias)?;

        let mut findings = twice(|| files(session, &alias))?;
        findings.extend(twice(|| rows(session, &alias))?);
        findings.extend(twice(|| self.stamps(location))?);
        findings.extend(pins.iter().filter_map(|pin| lost_pin(pin, &snapshots)));
        findings.extend(consumers.iter().filter_map(|consumer| misplaced(consumer, &snapshots)));
        findings.extend(answers(session, &alias, &questions(&location.name, &alias))?);
        let checks = Check::ALL.map(Check::word).to_vec();
        Ok(Audit { lake: location.name.clone(), head, checks, findings })
    }

    /// Holds the state in the store against one that is made of the stamps alone.
    fn stamps(&self, location: &LakeLocation) -> Result<Vec<Finding>, RunnerError> {
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

/// What is found only once came, or went, while it was looked at.
fn twice(look: impl Fn() -> Result<Vec<Finding>, RunnerError>) -> Result<Vec<Finding>, RunnerError> {
    let first = look()?;
    if first.is_empty() {
        return Ok(first);
    }
    let second = look()?;
    Ok(first.into_iter().filter(|finding| second.contains(finding)).collect())
}

fn files(session: &Session, alias: &str) -> Result<Vec<Finding>, RunnerError> {
    let finding = |missing: audit::MissingFile| Finding {
        check: Check::Files.word(),
        place: format!("{}.{}", missing.schema, missing.table),
        message: match missing.is_live {
            true => format!(
                "{} is not there: the table cannot be read; bring an older version back by `pintail rollback`, or write \
                 it anew",
                missing.file
            ),
            false => format!("{} is not there: versions that show it cannot be read any more", missing.file),
        },
    };
    Ok(audit::missing_files(session, alias)?.into_iter().map(finding).collect())
}

fn rows(session: &Session, alias: &str) -> Result<Vec<Finding>, RunnerError> {
    let finding = |wrong: audit::Miscounted| Finding {
        check: Check::Rows.word(),
        place: format!("{}.{}", wrong.schema, wrong.table),
        message: match (wrong.scanned, wrong.failure) {
            (Some(scanned), _) => {
                format!("the catalog says {} rows and a scan finds {scanned}; write the table anew", wrong.catalog)
            }
            (None, failure) => format!("it cannot be read: {}", failure.unwrap_or_default()),
        },
    };
    Ok(audit::miscounted(session, alias)?.into_iter().map(finding).collect())
}

/// Asks everything in one transaction, so that rows and what sums them up are of one commit.
fn answers(session: &Session, alias: &str, questions: &[Question]) -> Result<Vec<Finding>, RunnerError> {
    let mut findings = Vec::new();
    session.batch("begin to read", "BEGIN")?;
    for question in questions {
        let names: Vec<(&str, &str)> =
            question.tables.iter().map(|(schema, table)| (schema.as_str(), table.as_str())).collect();
        if !lake::absent_names(session, alias, &names)?.is_empty() {
            continue;
        }
        let asked = session.one::<i64>("audit what consumers have written", &question.query, |row| row.get(0));
        let message = match asked {
            Ok(0) => continue,
            Ok(count) => format!("{count} {}", question.counted),
            Err(error) => {
                // What cannot be read is one finding, and the other questions have answers all the same.
                session.batch("end reading", "ROLLBACK")?;
                session.batch("begin to read", "BEGIN")?;
                format!("whether there are {} cannot be told: {error}", question.counted)
            }
        };
        findings.push(Finding { check: Check::Decoded.word(), place: question.place.clone(), message });
    }
    session.batch("end reading", "ROLLBACK")?;
    Ok(findings)
}

fn lost_pin(pin: &Pin, snapshots: &[Snapshot]) -> Option<Finding> {
    let is_there = snapshots.iter().any(|snapshot| snapshot.id == pin.snapshot);
    // Work in progress may have pinned what came after the snapshots were listed.
    let is_newer = snapshots.last().is_some_and(|last| last.id < pin.snapshot);
    if is_there || (is_newer && pin.kind == PinKind::Process) {
        return None;
    }
    Some(Finding {
        check: Check::Pins.word(),
        place: format!("pin {}", pin.id.0),
        message: format!(
            "snapshot {}, which {} holds ({}), is not there; `pintail unpin` lets the pin go",
            pin.snapshot, pin.owner, pin.reason
        ),
    })
}

fn misplaced(consumer: &ConsumerProgress, snapshots: &[Snapshot]) -> Option<Finding> {
    let (first, last) = (snapshots.first()?.id, snapshots.last()?.id);
    let at = consumer.snapshot;
    let message = if last < at {
        format!("it has read up to snapshot {at}, and the newest is {last}: the lake was made anew, or taken back")
    } else if at < first {
        format!(
            "it has read up to snapshot {at}, and the oldest that is left is {first}: what lies between is lost to it"
        )
    } else {
        return None;
    };
    Some(Finding { check: Check::Consumers.word(), place: consumer.consumer.clone(), message })
}

/// Returns the slices of which two states say other things.
fn differing_lines(recorded: &str, rebuilt: &str) -> Vec<Finding> {
    let only = |one: &str, other: &str, words: &str| -> Vec<Finding> {
        let others: std::collections::BTreeSet<&str> = other.lines().collect();
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
    use super::{ConsumerProgress, Snapshot, SnapshotId, differing_lines, misplaced};

    #[test]
    fn a_consumer_outside_the_snapshots_is_told() {
        let snapshots = [3, 4, 9].map(|id| Snapshot { id: SnapshotId(id), at_micros: 0 });
        let told =
            |at| misplaced(&ConsumerProgress::new("c", SnapshotId(at), 0), &snapshots).map(|found| found.message);
        assert_eq!((told(3), told(5), told(9)), (None, None, None));
        assert!(told(2).unwrap().contains("the oldest that is left is 3"));
        assert!(told(10).unwrap().contains("the newest is 9"));
    }

    #[test]
    fn both_sides_of_a_difference_are_told() {
        let told: Vec<String> = differing_lines("a snapshot=1\nb snapshot=2\n", "b snapshot=2\nc snapshot=3\n")
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.message.split(':').next().unwrap_or_default()))
            .collect();
        assert_eq!(told, ["a: only the store says", "c: only the stamps say"]);
    }
}
