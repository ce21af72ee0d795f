//! `pintail test`: the data tests of scripts on what is committed, at the head or at any snapshot.

use pintail_core::annotation::TestSeverity;
use pintail_core::asset::Asset;
use pintail_core::id::{ScriptName, SnapshotId};
use pintail_core::sql::Relation;
use pintail_engine::lake;
use pintail_store::TestStatus;

use super::{Pintail, RunnerError};
use crate::executors::duckdb::{TestPlace, run_test, tests_of};
use crate::executors::failure::Sample;

/// One test's result.
#[derive(Clone, Debug)]
pub struct TestReport {
    /// The test.
    pub name: String,
    /// Whether a failure blocks a write.
    pub severity: TestSeverity,
    /// How it ended.
    pub status: TestStatus,
    /// Rows that failed.
    pub failures: Option<u64>,
    /// NULLs that it passed over.
    pub ignored: Option<u64>,
    /// Some of the rows.
    pub sample: Sample,
    /// Why it could not run.
    pub error: Option<String>,
}

/// The tests of one script.
#[derive(Clone, Debug)]
pub struct TestedScript {
    /// The script.
    pub script: ScriptName,
    /// What was tested.
    pub asset: Asset,
    /// Why nothing was tested.
    pub skipped: Option<String>,
    /// The results.
    pub tests: Vec<TestReport>,
}

impl Pintail {
    /// Runs the tests of the selected scripts on their whole tables.
    pub fn test(
        &self,
        selected: Option<&str>,
        excluded: Option<&str>,
        at: Option<SnapshotId>,
    ) -> Result<Vec<TestedScript>, RunnerError> {
        let nodes = self.project.select(selected, excluded).map_err(RunnerError::Select)?;
        let mut slot = self.take_slot();
        for location in self.existing_lakes()? {
            slot.attach_existing(location)?;
            let session = slot.session()?;
            let head = lake::head(&session, &location.write_alias())?;
            drop(session);
            let pin = at.filter(|_| location.name == self.project.default_lake).unwrap_or(head);
            slot.attach_pinned(location, pin)?;
        }
        let session = slot.session()?;
        let _watch = self.cancel.watch(slot.number, &session);
        let mut tested = Vec::new();
        for node in nodes {
            let Some(script) = self.project.script_at(node) else { continue };
            let Some(asset) = &script.target else { continue };
            let mut report =
                TestedScript { script: script.name().clone(), asset: asset.clone(), skipped: None, tests: Vec::new() };
            let Asset::Lake { lake: name, schema, table } = asset else {
                report.skipped = Some(format!("{asset} is no lake table; its tests run whenever it is written"));
                tested.push(report);
                continue;
            };
            let facts = match self.existing_lake(name)? {
                Some(location) => lake::table_facts(&session, &location.sql_name(), schema, table)?,
                None => None,
            };
            let Some(facts) = facts else {
                report.skipped = Some(format!("{asset} does not exist"));
                tested.push(report);
                continue;
            };
            let relation = Relation::in_catalog(name.sql_name(), schema, table);
            let ready = tests_of(&TestPlace {
                project: &self.project,
                script,
                asset,
                strategy: &script.strategy(),
                table: &relation,
                schema: &facts.schema,
                slice: None,
                stage: None,
            })?;
            for test in &ready {
                let (status, outcome) = run_test(&session, test);
                report.tests.push(TestReport {
                    name: test.query.name.clone(),
                    severity: test.query.severity,
                    status,
                    failures: outcome.failures,
                    ignored: outcome.ignored,
                    sample: outcome.sample,
                    error: outcome.error.map(|error| match error.help {
                        Some(help) => format!("{}; {help}", error.message),
                        None => error.message,
                    }),
                });
            }
            tested.push(report);
        }
        drop(session);
        self.keep_slot(slot);
        Ok(tested)
    }
}
