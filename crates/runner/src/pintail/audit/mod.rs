//! `pintail audit`: every invariant of a lake that can be checked while it is in use, and what breaks it.
//!
//! Files against the catalog, rows against the catalog, the store against the stamps, pins and consumers against the
//! snapshots. What consumers have written is added by those who know their decoders. Nothing is mended here.

mod files;
mod guard;
mod letters;
mod positions;
mod stamps;

use pintail_core::id::{LakeName, SnapshotId};
use pintail_engine::lake;
use pintail_engine::{LakeLocation, Session};

use super::{Pintail, RunnerError};

/// So far may the clocks of two machines differ, in microseconds.
const CLOCKS_DIFFER: i64 = 60_000_000;

/// Something that an audit looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Each file that a snapshot shows is there.
    Files,
    /// Each table has as many rows as the catalog says.
    Rows,
    /// Each row lies in a file of its partition.
    Partitions,
    /// The store says what the stamps say.
    Stamps,
    /// Each pin's snapshot is there.
    Pins,
    /// Each consumer stands within the snapshots that are there, and the guard says of it what its cursor says.
    Consumers,
    /// Each position of a stream is where the commit left it that wrote it.
    Positions,
    /// Leases have one owner each, and tokens only grow.
    Leases,
    /// What consumers have written is there once, has its source, and is summed up rightly.
    Decoded,
    /// Dead letters are about snapshots and events that there are.
    Letters,
    /// Each payload outside the lake has its row, and each row its payload.
    Blobs,
}

impl Check {
    /// Every check, in the order in which they are made.
    pub const ALL: [Check; 11] = [
        Check::Files,
        Check::Rows,
        Check::Partitions,
        Check::Stamps,
        Check::Pins,
        Check::Consumers,
        Check::Positions,
        Check::Leases,
        Check::Decoded,
        Check::Letters,
        Check::Blobs,
    ];

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Check::Files => "files",
            Check::Rows => "rows",
            Check::Partitions => "partitions",
            Check::Stamps => "stamps",
            Check::Pins => "pins",
            Check::Consumers => "consumers",
            Check::Positions => "positions",
            Check::Leases => "leases",
            Check::Decoded => "decoded",
            Check::Letters => "letters",
            Check::Blobs => "blobs",
        }
    }
}

/// A question about a lake whose answer must be 0.
#[derive(Clone, Debug)]
pub struct Question {
    /// What it is part of.
    pub check: Check,
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
        let mut findings = twice(|| files::files(session, &alias, location))?;
        findings.extend(twice(|| files::rows(session, &alias))?);
        findings.extend(twice(|| files::partitions(session, &alias))?);
        findings.extend(twice(|| self.stamps(location))?);
        findings.extend(twice(|| self.guard_findings(&guard, (session, &alias)))?);
        findings.extend(twice(|| letters::letters(session, &alias))?);
        findings.extend(answers(session, &alias, &questions(&location.name, &alias))?);
        let checks = Check::ALL.map(Check::word).to_vec();
        Ok(Audit { lake: location.name.clone(), head, checks, findings })
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
        let asked = session.one::<i64>("audit what streams have written", &question.query, |row| row.get(0));
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
        findings.push(Finding { check: question.check.word(), place: question.place.clone(), message });
    }
    session.batch("end reading", "ROLLBACK")?;
    Ok(findings)
}
