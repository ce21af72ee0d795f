//! The Postgres server of the tests, and databases on it that go away with their tests.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use pintail_store::StoreLocation;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgConnection, Row as _};

/// Names the variable with the connection text of the server, without a database.
const VARIABLE: &str = "PINTAIL_TEST_POSTGRES";

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A fresh database.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Makes one on the shared server.
    pub async fn create() -> Self {
        let server = std::env::var(VARIABLE)
            .unwrap_or_else(|_| panic!("{VARIABLE} is not set: tests on Postgres are run by `cargo xtask test`"));
        Self::on(server).await
    }

    async fn on(server: String) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let database = Self { name: format!("pintail_store_{}_{number}", std::process::id()), server };
        let mut connection = options(&database.server, "postgres").connect().await.unwrap();
        // A process id comes back; what an earlier one left is old.
        let name = &database.name;
        for sql in [format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"), format!("CREATE DATABASE {name}")] {
            sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        }
        database
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn location(&self) -> StoreLocation {
        StoreLocation::Postgres { connection: format!("{} dbname={}", self.server, self.name), password: None }
    }

    pub async fn connect(&self) -> PgConnection {
        options(&self.server, &self.name).connect().await.unwrap()
    }

    /// Ends every other connection to the database, as an administrator would.
    pub async fn end_connections(&self) {
        let sql = "
            SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sqlx::query(sql).execute(&mut self.connect().await).await.unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        let drop_database = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                // The server may be gone already, with everything in it.
                let Ok(mut connection) = options(&server, "postgres").connect().await else { return };
                let sql = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
                let _ = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await;
            });
        };
        // A runtime cannot be started inside another one's thread.
        let _ = std::thread::spawn(drop_database).join();
    }
}

fn options(server: &str, database: &str) -> PgConnectOptions {
    let mut options = PgConnectOptions::new().database(database);
    for pair in server.split_whitespace() {
        let (key, value) =
            pair.split_once('=').unwrap_or_else(|| panic!("{VARIABLE}: expected key=value, found {pair}"));
        options = match key {
            "host" => options.host(value),
            "port" => options.port(value.parse().unwrap()),
            "user" => options.username(value),
            "password" => options.password(value),
            other => panic!("{VARIABLE}: the tests know host, port, user and password, not {other}"),
        };
    }
    options
}

/// Waits until `sql`, a count, is `wanted`.
pub async fn until(database: &Database, sql: &'static str, wanted: i64) {
    let mut connection = database.connect().await;
    loop {
        let row = sqlx::query(sql).fetch_one(&mut connection).await.unwrap();
        if row.get::<i64, _>(0) == wanted {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// A server of one test, which may be restarted.
pub struct Own {
    folder: tempfile::TempDir,
    port: u16,
}

impl Own {
    /// Starts one on a port that was free just now.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let own = Self { folder: tempfile::tempdir().unwrap(), port };
        own.give_to_postgres();
        own.command("initdb", &["-A", "trust", "-U", "postgres", "-N", "-D", &own.data()]);
        own.control("start");
        own
    }

    /// Stops it at once, as a crash does, and starts it again.
    pub fn restart(&self) {
        self.control("stop");
        self.control("start");
    }

    pub async fn database(&self) -> Database {
        Database::on(format!("host=127.0.0.1 port={} user=postgres", self.port)).await
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn control(&self, action: &str) {
        let options = format!("-p {} -c listen_addresses=127.0.0.1 -k {}", self.port, self.folder.path().display());
        let log = self.folder.path().join("log").display().to_string();
        let data = self.data();
        let arguments: &[&str] = match action {
            "start" => &["start", "-w", "-D", &data, "-l", &log, "-o", &options],
            _ => &["stop", "-w", "-m", "immediate", "-D", &data],
        };
        self.command("pg_ctl", arguments);
    }

    /// Postgres refuses to run as root; then its own user runs it.
    fn is_root() -> bool {
        let id = Command::new("id").arg("-u").output().unwrap();
        String::from_utf8_lossy(&id.stdout).trim() == "0"
    }

    fn give_to_postgres(&self) {
        if Self::is_root() {
            let done = Command::new("chown").arg("postgres").arg(self.folder.path()).status().unwrap();
            assert!(done.success(), "give the folder to the user postgres");
        }
    }

    fn command(&self, program: &str, arguments: &[&str]) {
        let program = find(program).display().to_string();
        let mut command = match Self::is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--", &program]);
                command
            }
            false => Command::new(&program),
        };
        // The server inherits what is open; a pipe of the test runner would stay open with it.
        let log = std::fs::File::create(self.folder.path().join(format!("{}.out", arguments[0]))).unwrap();
        let done = command
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(std::process::Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .status()
            .unwrap();
        assert!(done.success(), "{program} {arguments:?} failed; its output is in {}", self.folder.path().display());
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.control("stop");
    }
}

/// Finds a program of the server: on the path, or where Debian puts it.
fn find(program: &str) -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&on_path).collect();
    if let Ok(versions) = std::fs::read_dir("/usr/lib/postgresql") {
        folders.extend(versions.flatten().map(|version| version.path().join("bin")));
    }
    let found = folders.iter().map(|folder| folder.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{program} is not installed: tests on Postgres need a Postgres server"))
}
