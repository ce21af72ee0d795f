//! Data tests inside the Postgres transaction: their text is understood by Postgres as well as by the engine, save that
//! every subquery has a name.

use std::time::Instant;

use chrono::TimeDelta;
use pintail_core::annotation::TestSeverity;
use pintail_store::{MAX_SAMPLE_ROWS, TestStatus};
use sqlx::Row as _;
use sqlx::postgres::PgArguments;

use super::connection::Postgres;
use crate::executors::StepFailure;
use crate::executors::duckdb::{ReadyTest, TestOutcome};
use crate::executors::failure::Sample;
use crate::executors::outside::{Attempt, Tested, run_tests};

/// Runs `tests` on the new state that the open transaction sees.
pub fn run_in_postgres(
    attempt: &mut Attempt<'_>,
    postgres: &mut Postgres,
    tests: Vec<ReadyTest>,
) -> Result<(), StepFailure> {
    run_tests(attempt, tests.into_iter(), |test| run(postgres, test))
}

fn run(postgres: &mut Postgres, test: &ReadyTest) -> Tested {
    let started = Instant::now();
    let found = ask(postgres, test);
    let duration = TimeDelta::from_std(started.elapsed()).unwrap_or_default();
    let mut outcome = TestOutcome {
        failures: None,
        ignored: None,
        sample: Sample::default(),
        rows: Vec::new(),
        error: None,
        duration,
    };
    match found {
        Ok(found) => {
            let status = match (found.failures, test.query.severity) {
                (0, _) => TestStatus::Passed,
                (_, TestSeverity::Error) => TestStatus::Failed,
                (_, TestSeverity::Warn) => TestStatus::Warned,
            };
            outcome.failures = Some(found.failures);
            outcome.ignored = found.ignored;
            outcome.sample = sample_of(&found.rows);
            outcome.rows = found.rows;
            (status, outcome)
        }
        Err(failure) => {
            outcome.error = Some(failure);
            (TestStatus::Errored, outcome)
        }
    }
}

struct Found {
    failures: u64,
    ignored: Option<u64>,
    rows: Vec<serde_json::Value>,
}

fn ask(postgres: &mut Postgres, test: &ReadyTest) -> Result<Found, StepFailure> {
    for statement in &test.setup {
        postgres.batch("prepare a test", statement)?;
    }
    let failures_sql = &test.query.failures_sql;
    let failures = count(
        postgres,
        "count what fails a test",
        &format!("SELECT count(*) FROM (\n{failures_sql}\n) AS _pt_failures"),
    )?;
    let ignored = match &test.query.ignored_sql {
        Some(sql) => Some(count(postgres, "count the ignored NULLs", sql)?),
        None => None,
    };
    let rows = if failures == 0 { Vec::new() } else { sample_rows(postgres, failures_sql)? };
    Ok(Found { failures, ignored, rows })
}

fn count(postgres: &mut Postgres, purpose: &'static str, sql: &str) -> Result<u64, StepFailure> {
    let found = postgres.rows(purpose, sql, PgArguments::default(), |row| row.try_get::<i64, _>(0))?;
    Ok(found.first().and_then(|count| u64::try_from(*count).ok()).unwrap_or(0))
}

fn sample_rows(postgres: &mut Postgres, failures_sql: &str) -> Result<Vec<serde_json::Value>, StepFailure> {
    rows_as_json(postgres, "read what fails a test", failures_sql, MAX_SAMPLE_ROWS)
}

/// Returns up to `limit` rows of a query as JSON objects.
pub fn rows_as_json(
    postgres: &mut Postgres,
    purpose: &'static str,
    query: &str,
    limit: impl std::fmt::Display,
) -> Result<Vec<serde_json::Value>, StepFailure> {
    let sql = format!("SELECT row_to_json(_pt_row)::text FROM (\n{query}\n) AS _pt_row LIMIT {limit}");
    postgres.rows(purpose, &sql, PgArguments::default(), |row| {
        let text: String = row.try_get(0)?;
        serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(Box::new(error)))
    })
}

/// Returns the rows as people read them.
pub fn sample_of(rows: &[serde_json::Value]) -> Sample {
    let objects: Vec<&serde_json::Map<String, serde_json::Value>> =
        rows.iter().filter_map(serde_json::Value::as_object).collect();
    let columns: Vec<String> = objects.first().map(|row| row.keys().cloned().collect()).unwrap_or_default();
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::Null => None,
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let rows = objects.iter().map(|row| row.values().map(text).collect()).collect();
    Sample { columns, rows }
}
