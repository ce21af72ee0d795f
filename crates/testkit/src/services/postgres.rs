//! Postgres: a server in a folder of its own, and a database per test.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tempfile::TempDir;

use super::server::{Server, Unprivileged, become_unprivileged, free_ports, give, unprivileged};
use super::{fresh_name, value_of};

/// Names the shared server as `key=value` pairs without a database.
pub const POSTGRES: &str = "PINTAIL_TEST_POSTGRES";

/// Names the folder of Postgres's programs.
pub const POSTGRES_BIN: &str = "PINTAIL_TEST_POSTGRES_BIN";

/// Longer than any start on a busy machine.
const START: Duration = Duration::from_secs(60);

/// A running Postgres whose data are of no value: nothing waits for the disk.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    data: PathBuf,
    log: PathBuf,
    user: Option<Unprivileged>,
    port: u16,
    password: String,
    server: Option<Server>,
    _folder: Option<TempDir>,
}

/// One database, dropped with the value.
#[derive(Debug)]
pub struct Database {
    server: String,
    /// Its name.
    pub name: String,
}

impl PostgresServer {
    /// Makes a server in `folder`, which must not exist, and starts it with the programs in `programs`.
    pub fn start(programs: PathBuf, folder: &Path) -> anyhow::Result<Self> {
        let user = unprivileged()?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        give(folder, user)?;
        let password = format!("pw{}", fresh_name());
        let port = free_ports(1)?[0];
        let (data, log) = (folder.join("data"), folder.join("log"));
        let mut made = Self { programs, data, log, user, port, password, server: None, _folder: None };
        made.make_data()?;
        made.resume()?;
        Ok(made)
    }

    /// Does the same in a temporary folder, which goes with the server.
    pub fn start_in_own(programs: PathBuf, folder: TempDir) -> anyhow::Result<Self> {
        let started = Self::start(programs, folder.path())?;
        Ok(Self { _folder: Some(folder), ..started })
    }

    /// Returns how to connect, without a database.
    pub fn connection(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres password={}", self.port, self.password)
    }

    /// Returns a fresh database.
    pub fn database(&self) -> Database {
        Database::create(&self.connection())
    }

    /// Stops it as an administrator does: whoever is connected is cut off.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        let pid = fs::read_to_string(self.data.join("postmaster.pid")).expect("a running server has written its id");
        let pid = pid.lines().next().expect("the id is the first line").to_owned();
        let status = Command::new("kill").args(["-QUIT", &pid]).status();
        assert!(status.is_ok_and(|status| status.success()), "the server takes signals while it lives");
        self.stop();
    }

    /// Starts it again on the same port.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        // A commit reaches the system, not the disk: it outlives a crash of the server, and that is all that tests need.
        const SETTINGS: [&str; 9] = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=300",
            "fsync=off",
            "full_page_writes=off",
            "wal_level=logical",
            "shared_buffers=64MB",
            "log_min_messages=warning",
            "timezone=UTC",
        ];
        let mut arguments = vec!["-D".to_owned(), self.data.display().to_string(), "-p".to_owned()];
        arguments.push(self.port.to_string());
        arguments.extend(SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
        let program = self.programs.join("postgres");
        // INT is what Postgres calls a fast shutdown.
        let server = Server::start_as(self.user, &program, &arguments, "INT", &self.log)?;
        self.wait_for(server)
    }

    fn wait_for(&mut self, mut server: Server) -> anyhow::Result<()> {
        let started = Instant::now();
        while psql(&self.programs, &self.connection(), "postgres", "SELECT 1").is_err() {
            if server.has_ended() || START < started.elapsed() {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                bail!("Postgres did not start; it said:\n{log}");
            }
            thread::park_timeout(Duration::from_millis(50));
        }
        self.server = Some(server);
        Ok(())
    }

    fn make_data(&self) -> anyhow::Result<()> {
        let secret = self.data.with_extension("password");
        fs::write(&secret, &self.password)?;
        let mut command = Command::new(self.programs.join("initdb"));
        command
            .args(["-U", "postgres", "-A", "scram-sha-256", "--locale=C", "--encoding=UTF8", "--no-sync"])
            .arg(format!("--pwfile={}", secret.display()))
            .arg("-D")
            .arg(&self.data);
        // The folder of whoever starts it may be closed to the other user.
        command.current_dir("/");
        become_unprivileged(&mut command, self.user);
        let output = command.stdin(Stdio::null()).output().context("cannot start initdb")?;
        fs::remove_file(&secret)?;
        if !output.status.success() {
            bail!("initdb failed:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }
}

impl Database {
    pub(super) fn create(server: &str) -> Self {
        let name = fresh_name();
        run(server, "postgres", &format!("CREATE DATABASE {name}"));
        Self { server: server.to_owned(), name }
    }

    /// Returns how to connect, with the password: `host=… dbname=… password=…`.
    pub fn connection(&self) -> String {
        format!("{} dbname={}", self.server, self.name)
    }

    /// Returns how to connect, without the password.
    pub fn connection_without_password(&self) -> String {
        let part = |key: &str| format!("{key}={}", value_of(&self.server, key).unwrap_or_default());
        format!("{} {} {} dbname={}", part("host"), part("port"), part("user"), self.name)
    }

    /// Returns the password.
    pub fn password(&self) -> String {
        value_of(&self.server, "password").unwrap_or_default()
    }

    /// Returns how to connect as a URL, with the password.
    pub fn url(&self) -> String {
        let part = |key: &str| value_of(&self.server, key).unwrap_or_default();
        let (user, password, host, port) = (part("user"), part("password"), part("host"), part("port"));
        format!("postgres://{user}:{password}@{host}:{port}/{}", self.name)
    }

    /// Lets somebody `go_on` to a COMMIT that is stored and never answered. The server must be the test's own.
    pub fn lose_the_answer_of_a_commit(&self, go_on: impl FnOnce()) {
        // With a standby that never answers, a COMMIT is stored and then waits; whoever is cut off there gets no answer.
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
        self.sql("SELECT pg_reload_conf()");
        let waiting =
            |text: &str| format!("FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query ILIKE '{text}%'");
        let is_waiting = |text: &str| self.sql(&format!("SELECT count(*) {}", waiting(text))) != "0";
        let has_begun = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // The server reads its settings some time after it was asked to: a write that waits shows that it has.
            scope.spawn(|| {
                while !has_begun.load(Ordering::Relaxed) {
                    self.sql("COMMENT ON SCHEMA public IS 'written to see whether it waits'");
                }
            });
            crate::wait_until("writes wait for their answers", || is_waiting("COMMENT"));
            has_begun.store(true, Ordering::Relaxed);
            go_on();
            crate::wait_until("a COMMIT waits for its answer", || is_waiting("COMMIT"));
            self.sql(&format!("SELECT pg_terminate_backend(pid) {}", waiting("COMMIT")));
            self.sql("ALTER SYSTEM RESET synchronous_standby_names");
            self.sql("SELECT pg_reload_conf()");
        });
    }

    /// Runs `sql` and returns the rows as lines, their values separated by `|`; NULL is empty.
    #[track_caller]
    pub fn sql(&self, sql: &str) -> String {
        run(&self.server, &self.name, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The server may have been stopped by the test; what is left goes with the server's folder.
        if let Some(programs) = postgres_programs() {
            let _ = psql(&programs, &self.server, "postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.name));
        }
    }
}

/// Returns the folder of Postgres's programs: the named one, one on PATH, or that of the newest installed version.
pub fn postgres_programs() -> Option<PathBuf> {
    let holds_all = |folder: &PathBuf| ["postgres", "initdb", "psql"].iter().all(|name| folder.join(name).is_file());
    if let Some(named) = env::var_os(POSTGRES_BIN) {
        return Some(PathBuf::from(named)).filter(holds_all);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    if let Some(found) = env::split_paths(&path).find(holds_all) {
        return Some(found);
    }
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| holds_all(folder))
        .collect();
    versions.sort();
    versions.pop().map(|(_, folder)| folder)
}

/// Returns `value` as libpq reads it in a connection text.
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
}

#[track_caller]
fn run(server: &str, database: &str, sql: &str) -> String {
    let programs = postgres_programs().expect("who has a server has its programs");
    psql(&programs, server, database, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn psql(programs: &Path, server: &str, database: &str, sql: &str) -> anyhow::Result<String> {
    let mut command = Command::new(programs.join("psql"));
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-w", "-d"]);
    // The password is not among the arguments, which everyone on the machine can read.
    command.arg(format!("{} dbname={database} connect_timeout=10", without_password(server)));
    command.env("PGPASSWORD", value_of(server, "password").unwrap_or_default());
    command.args(["-c", sql]).stdin(Stdio::null());
    let output = command.output().context("cannot start psql")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

fn without_password(server: &str) -> String {
    ["host", "port", "user"]
        .into_iter()
        .filter_map(|key| Some(format!("{key}={}", quoted(&value_of(server, key)?))))
        .collect::<Vec<_>>()
        .join(" ")
}
