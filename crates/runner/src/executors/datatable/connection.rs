//! One connection to a Postgres database: it sends single statements, keeps their text, and gives typed answers.
//!
//! Steps run on threads of their own and block on it. Every connection runs in UTC.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pintail_core::diagnostic::Code;
use pintail_core::sql::Statement;
use pintail_core::write::ErrorClass;
use pintail_engine::session::SentStatement;
use pintail_engine::{PostgresLocation, Redactor};
use secrecy::{ExposeSecret, SecretString};
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Executor};
use tokio::runtime::Handle;

use super::failure::{class_of, failure};
use crate::executors::{RunContext, StepFailure};

/// How long a server may take to answer a new connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks for the number of the server's process, and makes a commit that was answered one that survives a crash of the
/// server: what is remembered of it must not be more than what it remembers itself.
const OPENED: &str = "
SELECT pg_backend_pid()
FROM (
  SELECT CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END
  OFFSET 0
) AS settings (durable)
WHERE durable IS NULL OR durable = 'on'";

/// An open connection.
pub struct Postgres {
    pub(super) connection: PgConnection,
    pub(super) runtime: Handle,
    pub(super) redactor: Redactor,
    options: PgConnectOptions,
    process: i32,
    sent: Vec<SentStatement>,
}

impl Postgres {
    /// Connects to the datatable `name` of the run's project.
    pub fn of_run(ctx: &RunContext, name: &str) -> Result<Self, StepFailure> {
        let Some(datatable) = ctx.project.project.config.datatables.get(name) else {
            return Err(StepFailure::user(
                Code::UNKNOWN_PLACE,
                "find the datatable",
                format!("there is no datatable `{name}`"),
            )
            .with_help(format!("declare it in pintail.toml: `[datatable.{name}] url = \"${{DATABASE_URL}}\"`")));
        };
        Self::connect(name, &datatable.url, &ctx.runtime, &ctx.instance.redactor)
    }

    /// Connects to the datatable `name` at `url`.
    pub fn connect(name: &str, url: &SecretString, runtime: &Handle, redactor: &Redactor) -> Result<Self, StepFailure> {
        let unreachable = |error: &sqlx::Error| {
            let failed = failure("reach the datatable", error, redactor);
            let code = if failed.class == ErrorClass::User { failed.code } else { Code::PLACE_UNREACHABLE };
            let message = format!("datatable `{name}`: {}", failed.message);
            let help = "see that the server runs and that `url` in pintail.toml is right".to_owned();
            StepFailure { code, message, help: failed.help.clone().or(Some(help)), ..failed }
        };
        let location = PostgresLocation::parse(url.expose_secret(), None).map_err(|_| {
            StepFailure::user(
                Code::PLACE_UNREACHABLE,
                "reach the datatable",
                format!("datatable `{name}`: its `url` is no connection to Postgres"),
            )
        })?;
        let options = location.options()?.options([("TimeZone", "UTC"), ("client_min_messages", "warning")]);
        let opened = runtime.block_on(async {
            let connecting = PgConnection::connect_with(&options);
            let mut connection = match tokio::time::timeout(PATIENCE, connecting).await {
                Ok(connected) => connected?,
                Err(_) => return Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
            };
            let process: i32 = sqlx::query_scalar(OPENED).fetch_one(&mut connection).await?;
            Ok((connection, process))
        });
        let (connection, process) = opened.map_err(|error| unreachable(&error))?;
        let (runtime, redactor) = (runtime.clone(), redactor.clone());
        Ok(Self { connection, runtime, redactor, options, process, sent: Vec::new() })
    }

    /// Returns what interrupts whatever this connection is doing, from any thread.
    pub fn interrupt(&self) -> Arc<dyn Fn() + Send + Sync> {
        let (runtime, options, process) = (self.runtime.clone(), self.options.clone(), self.process);
        Arc::new(move || {
            let options = options.clone();
            runtime.spawn(async move {
                let sent = async {
                    let mut other = PgConnection::connect_with(&options).await?;
                    sqlx::query("SELECT pg_cancel_backend($1)").bind(process).execute(&mut other).await
                };
                if let Err(error) = sent.await {
                    tracing::warn!(%error, "a statement of Postgres could not be interrupted");
                }
            });
        })
    }

    /// Returns what was sent since the last call, in order.
    pub fn take_sent(&mut self) -> Vec<SentStatement> {
        std::mem::take(&mut self.sent)
    }

    /// Runs one statement and returns the number of rows that it changed.
    pub fn run(&mut self, statement: &Statement) -> Result<u64, StepFailure> {
        self.try_run(statement, PgArguments::default())
            .map_err(|error| failure(statement.purpose, &error, &self.redactor))
    }

    /// Runs one statement with bound values.
    pub fn try_run(&mut self, statement: &Statement, values: PgArguments) -> Result<u64, sqlx::Error> {
        let query = sqlx::query_with(AssertSqlSafe(statement.sql.clone()), values).persistent(false);
        let started = Instant::now();
        let outcome = self.runtime.block_on(query.execute(&mut self.connection));
        self.keep(statement.purpose, &statement.sql, started.elapsed());
        Ok(outcome?.rows_affected())
    }

    /// Sends our own words of a transaction; the only place where a text may hold several statements.
    pub fn batch(&mut self, purpose: &'static str, sql: &str) -> Result<(), StepFailure> {
        self.try_batch(purpose, sql).map_err(|error| failure(purpose, &error, &self.redactor))
    }

    /// Sends our own words of a transaction.
    pub fn try_batch(&mut self, purpose: &'static str, sql: &str) -> Result<(), sqlx::Error> {
        let started = Instant::now();
        let text = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        let outcome = self.runtime.block_on(self.connection.execute(text));
        self.keep(purpose, sql, started.elapsed());
        outcome.map(|_| ())
    }

    /// Runs a query and maps its rows.
    pub fn rows<T>(
        &mut self,
        purpose: &'static str,
        sql: &str,
        values: PgArguments,
        map: impl Fn(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<Vec<T>, StepFailure> {
        let query = sqlx::query_with(AssertSqlSafe(sql.to_owned()), values).persistent(false);
        let started = Instant::now();
        let outcome = self.runtime.block_on(query.fetch_all(&mut self.connection));
        self.keep(purpose, sql, started.elapsed());
        outcome
            .and_then(|rows| rows.iter().map(map).collect())
            .map_err(|error| failure(purpose, &error, &self.redactor))
    }

    /// Keeps the text of what was sent.
    pub(super) fn keep(&mut self, purpose: &'static str, sql: &str, elapsed: Duration) {
        tracing::debug!(purpose, elapsed_ms = elapsed.as_secs_f64() * 1e3, "statement of Postgres");
        self.sent.push(SentStatement { purpose: purpose.to_owned(), sql: self.redactor.redact(sql), elapsed });
    }

    /// Takes the open transaction back; a lost connection has done so already.
    pub fn roll_back(&mut self) {
        if let Err(error) = self.try_batch("roll back", "ROLLBACK") {
            tracing::debug!(class = ?class_of(&error), "the transaction ended with its connection");
        }
    }
}
