//! A Postgres server as Pintail reaches it: one connection text for DuckDB, one set of options for our own connections,
//! both made here, with the password in neither.
//!
//! DuckDB gets the password by a secret of its own; libpq and sqlx read the usual variables (`PGSSLMODE`, …) for what the
//! text leaves open. Our own connections are made by a runtime of this module, because what asks for them is synchronous.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr as _;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use pintail_core::connection::{BadConnection, pairs};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::runtime::Runtime;

use crate::classify::ErrorClass;
use crate::error::EngineError;

/// How long an attempt to connect may take.
const CONNECT_SECONDS: &str = "10";

/// Where a Postgres database is.
#[derive(Clone)]
pub struct PostgresLocation {
    /// Keys as libpq names them, without `password`; each once.
    keys: Vec<(String, String)>,
    password: Option<SecretString>,
}

impl PostgresLocation {
    /// Reads `key=value …` or `postgres://user@host:port/database?key=value`; `password` wins over one in the text.
    pub fn parse(text: &str, password: Option<SecretString>) -> Result<Self, BadConnection> {
        let mut keys: Vec<(String, String)> = Vec::new();
        let mut inner = None;
        for (key, value) in pairs(text)? {
            match key.as_str() {
                "password" => inner = Some(SecretString::from(value)),
                "service" | "passfile" => {
                    return Err(BadConnection(format!("`{key}` is not supported: name the host, user and password")));
                }
                _ => keys.push((key, value)),
            }
        }
        if !keys.iter().any(|(key, _)| key == "connect_timeout") {
            keys.push(("connect_timeout".to_owned(), CONNECT_SECONDS.to_owned()));
        }
        Ok(Self { keys, password: password.or(inner) })
    }

    /// Returns the text for DuckDB: every value quoted, no password.
    pub fn dsn(&self) -> String {
        let pairs = self.keys.iter().map(|(key, value)| format!("{key}={}", quoted(value)));
        pairs.collect::<Vec<_>>().join(" ")
    }

    /// Returns the password for DuckDB's secret.
    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_ref().map(|password| password.expose_secret())
    }

    /// Returns the database, as far as the text says.
    pub fn database(&self) -> Option<&str> {
        self.key("dbname")
    }

    /// Returns the user, as far as the text says.
    pub fn user(&self) -> Option<&str> {
        self.key("user")
    }

    fn key(&self, name: &str) -> Option<&str> {
        self.keys.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the options of our own connections.
    pub fn options(&self) -> Result<PgConnectOptions, EngineError> {
        let bad = |key: &str, value: &str| EngineError::Postgres {
            operation: "read the connection",
            place: self.to_string(),
            reason: format!("`{key}={value}` is no value for `{key}`"),
            class: ErrorClass::User,
        };
        let mut options = PgConnectOptions::new().application_name("pintail");
        for (key, value) in &self.keys {
            options = match key.as_str() {
                "host" if value.starts_with('/') => options.socket(value),
                "host" | "hostaddr" => options.host(value),
                "port" => options.port(value.parse().map_err(|_| bad(key, value))?),
                "user" => options.username(value),
                "dbname" => options.database(value),
                "sslmode" => options.ssl_mode(PgSslMode::from_str(value).map_err(|_| bad(key, value))?),
                "sslrootcert" => options.ssl_root_cert(value),
                "sslcert" => options.ssl_client_cert(value),
                "sslkey" => options.ssl_client_key(value),
                "application_name" => options.application_name(value),
                // What only libpq knows is for DuckDB's connections.
                _ => options,
            };
        }
        if let Some(password) = self.password() {
            options = options.password(password);
        }
        Ok(options.disable_statement_logging())
    }

    /// Returns the failure of our own connection, told from its kind.
    pub(crate) fn failed(&self, operation: &'static str, error: &sqlx::Error) -> EngineError {
        let code = error.as_database_error().and_then(|error| error.code());
        if let (Some("3D000"), Some(database)) = (code.as_deref(), self.database()) {
            return EngineError::DatabaseMissing { database: database.to_owned(), command: self.createdb(database) };
        }
        EngineError::Postgres {
            operation,
            place: self.to_string(),
            reason: crate::error::chain(error),
            class: class_of(error),
        }
    }

    fn createdb(&self, database: &str) -> String {
        let mut command = "createdb".to_owned();
        for (key, flag) in [("host", "-h"), ("port", "-p"), ("user", "-U")] {
            if let Some(value) = self.key(key) {
                command += &format!(" {flag} {}", shell_word(value));
            }
        }
        format!("{command} {}", shell_word(database))
    }

    /// Opens a connection. A server that has answered before is waited for when it restarts; one that has not is told at
    /// once.
    pub(crate) async fn connect(&self) -> Result<PgConnection, EngineError> {
        let connect = || async {
            let connected = PgConnection::connect_with(&self.options()?).await;
            connected.map_err(|error| self.failed("connect", &error))
        };
        let is_away = |error: &EngineError| error.class() == ErrorClass::Transient && self.has_answered();
        let connection = connect.retry(patience()).sleep(tokio::time::sleep).when(is_away).await?;
        answered().lock().unwrap_or_else(PoisonError::into_inner).insert(self.dsn());
        Ok(connection)
    }

    fn has_answered(&self) -> bool {
        answered().lock().unwrap_or_else(PoisonError::into_inner).contains(&self.dsn())
    }
}

impl fmt::Display for PostgresLocation {
    /// As a person names it: `host=db port=5432 dbname=lake`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.keys.iter().filter(|(key, _)| matches!(key.as_str(), "host" | "port" | "user" | "dbname"));
        let shown: Vec<String> = shown.map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&shown.join(" "))
    }
}

impl fmt::Debug for PostgresLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresLocation").field("keys", &self.keys).finish_non_exhaustive()
    }
}

impl PartialEq for PostgresLocation {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys && self.password() == other.password()
    }
}

impl Eq for PostgresLocation {}

/// Returns how to react to an error of our own connection.
pub(crate) fn class_of(error: &sqlx::Error) -> ErrorClass {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
            ErrorClass::Transient
        }
        sqlx::Error::Database(error) => match error.code().as_deref() {
            // Lost, refused or too many connections, a server that starts or ends, a deadlock or failed serialization.
            Some(code) if ["08", "57P", "53300", "40"].iter().any(|start| code.starts_with(start)) => {
                ErrorClass::Transient
            }
            _ => ErrorClass::User,
        },
        sqlx::Error::Tls(_) | sqlx::Error::Configuration(_) => ErrorClass::User,
        _ => ErrorClass::Bug,
    }
}

/// Runs `future` on this module's runtime and waits for it; may be called from anywhere, also from asynchronous code.
pub(crate) fn wait<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, EngineError> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("pintail-postgres").enable_all().build().ok()
    });
    let failed = |detail: &str| EngineError::Answer { purpose: "talk to Postgres", detail: detail.to_owned() };
    let runtime = runtime.as_ref().ok_or_else(|| failed("no thread could be started"))?;
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    runtime.spawn(async move {
        // Nobody else could want the answer of a caller that is gone.
        let _ = sender.send(future.await);
    });
    receiver.recv().map_err(|_| failed("the connection's task has ended"))
}

/// Servers that have answered this process, by connection text.
fn answered() -> &'static Mutex<HashSet<String>> {
    static ANSWERED: OnceLock<Mutex<HashSet<String>>> = OnceLock::new();
    ANSWERED.get_or_init(Mutex::default)
}

/// Returns how a server that is away is waited for: often at first, and for a minute in all.
pub(crate) fn patience() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_secs(2))
        .with_max_times(200)
        .with_total_delay(Some(Duration::from_secs(60)))
        .with_jitter()
}

/// Connections that wait for their next use, by connection text.
fn idle() -> &'static Mutex<HashMap<String, Vec<PgConnection>>> {
    static IDLE: OnceLock<Mutex<HashMap<String, Vec<PgConnection>>>> = OnceLock::new();
    IDLE.get_or_init(Mutex::default)
}

/// Returns a connection that answers: one that was used before, or a new one.
pub(crate) async fn take(location: &PostgresLocation) -> Result<PgConnection, EngineError> {
    loop {
        let kept = {
            let mut idle = idle().lock().unwrap_or_else(PoisonError::into_inner);
            idle.get_mut(&location.dsn()).and_then(Vec::pop)
        };
        let Some(mut connection) = kept else { return location.connect().await };
        // One that the server has closed meanwhile is dropped, and the next one is tried.
        if connection.ping().await.is_ok() {
            return Ok(connection);
        }
    }
}

/// Keeps a connection that is in no transaction for its next use.
pub(crate) fn put_back(location: &PostgresLocation, connection: PgConnection) {
    /// More are not needed at once.
    const KEPT: usize = 2;
    let mut idle = idle().lock().unwrap_or_else(PoisonError::into_inner);
    let kept = idle.entry(location.dsn()).or_default();
    if kept.len() < KEPT {
        kept.push(connection);
    }
}

/// Returns `value` as libpq reads it.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
}

fn shell_word(value: &str) -> String {
    let is_plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    if is_plain { value.to_owned() } else { format!("'{}'", value.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::PostgresLocation;

    fn parsed(text: &str) -> String {
        match PostgresLocation::parse(text, None) {
            Ok(location) => {
                let dsn = location.dsn().replace(" connect_timeout='10'", "");
                format!("{dsn} / {}", location.password().unwrap_or("-"))
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn case_u88_the_connection_text_is_built_with_every_value_quoted() {
        assert_eq!(parsed("host=db dbname=lake"), "host='db' dbname='lake' / -");
        assert_eq!(
            parsed(r#"host=db user='it\'s a' password='p\' w\\ "x' dbname='a b'"#),
            r#"host='db' user='it\'s a' dbname='a b' / p' w\ "x"#
        );
        assert_eq!(
            parsed("postgres://us%40er:p%2Fw@db:5433/lake?sslmode=require"),
            "user='us@er' host='db' port='5433' dbname='lake' sslmode='require' / p/w"
        );
        assert_eq!(parsed("postgresql://[::1]:5433/lake"), "host='::1' port='5433' dbname='lake' / -");
        assert_eq!(parsed("postgres://db"), "host='db' / -");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        assert_eq!(parsed("service=x"), "`service` is not supported: name the host, user and password");
        assert_eq!(parsed("host=db prt=1"), "`prt` is no key of a Postgres connection; did you mean `port`?");
    }

    #[test]
    fn neither_debug_nor_display_holds_the_password() {
        let location = PostgresLocation::parse("host=db dbname=lake", Some(SecretString::from("hunter2"))).unwrap();
        assert_eq!(location.to_string(), "host=db dbname=lake");
        assert!(!format!("{location:?} {}", location.dsn()).contains("hunter2"));
    }
}
