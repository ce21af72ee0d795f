//! Table `test_result`: what each data test of an attempt found.
//!
//! Invariant: sample rows are bounded by [`MAX_SAMPLE_ROWS`], however many rows failed.

use chrono::TimeDelta;
use pintail_core::id::{AttemptId, RunId, StepId};

use crate::database::{Row, Tx, query};
use crate::encoding::{Fields, count, json, words};
use crate::open::Store;

/// How many failing rows are kept.
pub const MAX_SAMPLE_ROWS: usize = 100;

words! {
    /// What a failing test does.
    TestSeverity {
        /// It is recorded, and the write goes on.
        Warn = "warn",
        /// It takes the write back.
        Error = "error",
    }
}

words! {
    /// How a test ended.
    TestStatus {
        /// No row failed.
        Passed = "passed",
        /// Rows failed, with severity error.
        Failed = "failed",
        /// Rows failed, with severity warn.
        Warned = "warned",
        /// The test's query did not run.
        Errored = "errored",
    }
}

/// What one test found.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResult {
    /// The step.
    pub step: StepId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The test, as the script names it: `unique order_id`.
    pub name: String,
    /// What a failure does.
    pub severity: TestSeverity,
    /// How it ended.
    pub status: TestStatus,
    /// How many rows failed; `None` when the query did not run.
    pub failures: Option<u64>,
    /// How many NULLs it passed over, for a test that ignores them.
    pub nulls_ignored: Option<u64>,
    /// Failing rows as JSON objects; only the first [`MAX_SAMPLE_ROWS`] are stored.
    pub sample_rows: Vec<serde_json::Value>,
    /// The query, redacted by the caller.
    pub sql: String,
    /// How long it took.
    pub duration: TimeDelta,
}

impl Store {
    /// Replaces the test results of an attempt, so that recording an attempt twice is the same as once.
    pub(crate) async fn replace_tests(
        &self,
        tx: &mut Tx,
        attempt: &AttemptId,
        tests: &[TestResult],
    ) -> Result<(), sqlx::Error> {
        let sql = "DELETE FROM test_result WHERE project = $1 AND attempt = $2";
        query(sql).bind(self.project_text()).bind(attempt.as_str()).execute(tx).await?;
        for test in tests {
            debug_assert_eq!(&test.attempt, attempt, "a test result belongs to the attempt that is recorded");
            self.insert_test(tx, test).await?;
        }
        Ok(())
    }

    async fn insert_test(&self, tx: &mut Tx, test: &TestResult) -> Result<(), sqlx::Error> {
        let kept_rows = &test.sample_rows[..test.sample_rows.len().min(MAX_SAMPLE_ROWS)];
        let sql = "
            INSERT INTO test_result (project, step, attempt, name, severity, status, failures, nulls_ignored,
                sample_rows, sql, duration)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        query(sql)
            .bind(self.project_text())
            .bind(test.step.as_str())
            .bind(test.attempt.as_str())
            .bind(&test.name)
            .bind(test.severity.as_str())
            .bind(test.status.as_str())
            .bind(test.failures.map(count))
            .bind(test.nulls_ignored.map(count))
            .bind(json(&kept_rows))
            .bind(&test.sql)
            .bind(test.duration.num_microseconds())
            .execute(tx)
            .await?;
        Ok(())
    }

    pub(crate) async fn read_tests_of_run(&self, tx: &mut Tx, run: &RunId) -> Result<Vec<TestResult>, sqlx::Error> {
        let sql = "
            SELECT test_result.* FROM step
            JOIN test_result ON test_result.project = step.project AND test_result.step = step.id
            WHERE step.project = $1 AND step.run = $2
            ORDER BY step.position, test_result.id";
        let rows = query(sql).bind(self.project_text()).bind(run.as_str()).fetch_all(tx).await?;
        rows.iter().map(TestResult::from_row).collect()
    }
}

impl TestResult {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            step: StepId(row.text("step")?),
            attempt: AttemptId(row.text("attempt")?),
            name: row.text("name")?,
            severity: row.state("severity")?,
            status: row.state("status")?,
            failures: row.optional_number("failures")?,
            nulls_ignored: row.optional_number("nulls_ignored")?,
            sample_rows: row.json("sample_rows")?,
            sql: row.text("sql")?,
            duration: TimeDelta::microseconds(row.integer("duration")?),
        })
    }
}
