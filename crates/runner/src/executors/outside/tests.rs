//! The tests of targets outside lakes: each found by whoever can see the tested rows, and told alike.

use pintail_core::diagnostic::Code;
use pintail_core::sql::{Relation, Statement};
use pintail_core::write::ErrorClass;
use pintail_engine::Session;
use pintail_store::{TestResult, TestStatus};

use super::Attempt;
use crate::executors::StepFailure;
use crate::executors::duckdb::{
    ReadyTest, Shape, TestOutcome, TestPlace, rows_text, run_test, store_severity, tests_of,
};

/// How one test ended.
pub type Tested = (TestStatus, TestOutcome);

/// The relation by which tests in the engine see the rows that will be written.
const NEW_ROWS: &str = "_pt_new_rows";

/// Runs every test of the script on the projected stage, for a target of which the stage is the whole new state.
pub fn test_new_rows(attempt: &mut Attempt<'_>, session: &Session, shape: &Shape) -> Result<(), StepFailure> {
    let new_rows = Relation::temp(NEW_ROWS);
    let sql = format!(
        "CREATE OR REPLACE TEMP VIEW {new_rows} AS\nSELECT\n{}\nFROM {}",
        shape.target.projection, shape.target.stage
    );
    session.run(&Statement::new("show the new rows to tests", sql))?;
    let ready = tests_of(&TestPlace {
        project: &attempt.ctx.project,
        script: attempt.script,
        asset: attempt.asset,
        strategy: &attempt.strategy(),
        table: &new_rows,
        schema: &shape.schema,
        slice: None,
        stage: None,
    })?;
    run_in_engine(attempt, session, ready.into_iter())
}

/// Runs tests in the engine.
pub fn run_in_engine(
    attempt: &mut Attempt<'_>,
    session: &Session,
    tests: impl Iterator<Item = ReadyTest>,
) -> Result<(), StepFailure> {
    run_tests(attempt, tests, |test| run_test(session, test))
}

/// Runs tests by `run`, keeps their results, and fails when one of severity error has failed.
pub fn run_tests(
    attempt: &mut Attempt<'_>,
    tests: impl Iterator<Item = ReadyTest>,
    mut run: impl FnMut(&ReadyTest) -> Tested,
) -> Result<(), StepFailure> {
    let mut worst: Option<StepFailure> = None;
    let mut failed = Vec::new();
    for test in tests {
        let (status, outcome) = run(&test);
        if let Some(error) = outcome.error.clone().filter(|error| error.class != ErrorClass::User) {
            return Err(error);
        }
        attempt.tests.push(TestResult {
            step: attempt.job.id.clone(),
            attempt: attempt.id.clone(),
            name: test.query.name.clone(),
            severity: store_severity(test.query.severity),
            status,
            failures: outcome.failures,
            nulls_ignored: outcome.ignored,
            sample_rows: outcome.rows.clone(),
            sql: attempt.ctx.instance.redactor.redact(&test.query.failures_sql),
            duration: outcome.duration,
        });
        match status {
            TestStatus::Passed | TestStatus::Warned => {}
            TestStatus::Failed => {
                let message = format!("`{}`: {}", test.query.name, rows_text(outcome.failures.unwrap_or(0)));
                failed.push(message.clone());
                worst.get_or_insert_with(|| {
                    StepFailure::user(Code::TEST_FAILED, "test the new data", message)
                        .with_sample(outcome.sample)
                        .at(test.span)
                });
            }
            TestStatus::Errored => {
                let (error, help) = outcome.error.map(|error| (error.message, error.help)).unwrap_or_default();
                let message = format!("the test `{}` could not run: {error}", test.query.name);
                let failure = StepFailure::user(Code::TEST_FAILED, "test the new data", message).at(test.span);
                // One that could not run aborts a transaction, so the rest could not run either.
                return Err(StepFailure { help, ..failure });
            }
        }
    }
    let Some(failure) = worst else { return Ok(()) };
    let message = match failed.as_slice() {
        [one] => format!("the test {one}"),
        several => format!("{} tests failed: {}", several.len(), several.join("; ")),
    };
    Err(StepFailure { message, ..failure }.with_help(
        "the failing rows are kept with the run: `pintail show <run>`; mend the data or the test and run again",
    ))
}
