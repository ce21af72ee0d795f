//! The servers that tests use: Postgres, S3, NATS and Kafka, one of each, started for one run of the tests and stopped after it.
//!
//! A server that is named in the environment already is used as it is. Nothing of a server outlives its run: the data lie
//! in a folder of the run, and whatever ends this program ends the servers too.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, anyhow};
use pintail_testkit::services::{
    Database, KAFKA, KAFKA_PROGRAM, KafkaServer, NATS, NATS_PROGRAM, NatsServer, POSTGRES, POSTGRES_BIN,
    PostgresServer, S3, S3Server, postgres_programs,
};

use crate::process;
use crate::repository::Repository;
use crate::setup;

/// What one run of the tests has started.
pub struct Services {
    // Declared in this order so that the servers end before their folder goes.
    postgres: Option<(PostgresServer, PathBuf)>,
    s3: Option<S3Server>,
    nats: Option<NatsServer>,
    kafka: Option<KafkaServer>,
    /// For tests that start a broker of their own.
    broker_programs: [(&'static str, PathBuf); 2],
    _folder: Folder,
}

impl Services {
    /// Starts what the environment does not name.
    pub fn start(repository: &Repository) -> anyhow::Result<Self> {
        let folder = Folder::create(repository)?;
        let is_wanted = |name: &str| env::var_os(name).is_none_or(|value| value.is_empty());
        // Found before the threads start: what is missing is fetched, one at a time.
        let programs = is_wanted(POSTGRES).then(|| programs(repository, &folder)).transpose()?;
        let weed = is_wanted(S3).then(|| setup::tool(repository, "weed")).transpose()?;
        let tool = |program| setup::tool(repository, program);
        let broker_programs = [(NATS_PROGRAM, tool("nats-server")?), (KAFKA_PROGRAM, tool("tansu")?)];
        let [(_, nats), (_, tansu)] = &broker_programs;
        let nats = is_wanted(NATS).then(|| NatsServer::start(nats, &folder.path.join("nats"))).transpose();
        let kafka = is_wanted(KAFKA).then(|| KafkaServer::start(tansu, &folder.path.join("kafka"))).transpose();
        let (postgres, s3) = thread::scope(|scope| {
            let s3 = scope.spawn(|| weed.map(|weed| S3Server::start(&weed, &folder.path.join("s3"))).transpose());
            let postgres = programs.map(|programs| {
                PostgresServer::start(programs.clone(), &folder.path.join("postgres")).map(|server| (server, programs))
            });
            (postgres.transpose(), s3.join())
        });
        let s3 = s3.map_err(|_| anyhow!("starting the S3 server panicked"))?;
        Ok(Self {
            postgres: postgres.context("cannot start a Postgres for the tests")?,
            s3: s3.context("cannot start an S3 server for the tests")?,
            nats: nats.context("cannot start a NATS server for the tests")?,
            kafka: kafka.context("cannot start a broker of Kafka for the tests")?,
            broker_programs,
            _folder: folder,
        })
    }

    /// Returns a fresh database of the Postgres that was started, or of the one that the environment names.
    pub fn database(&self) -> Database {
        match &self.postgres {
            Some((server, _)) => server.database(),
            None => pintail_testkit::services::database(),
        }
    }

    /// Names the servers to what `command` starts.
    pub fn name_to(&self, command: &mut Command) {
        if let Some((server, programs)) = &self.postgres {
            command.env(POSTGRES, server.connection()).env(POSTGRES_BIN, programs);
        }
        if let Some(server) = &self.s3 {
            command.env(S3, server.connection());
        }
        if let Some(server) = &self.nats {
            command.env(NATS, server.url());
        }
        if let Some(server) = &self.kafka {
            command.env(KAFKA, server.address());
        }
        for (name, program) in &self.broker_programs {
            command.env(name, program);
        }
    }
}

/// Runs `words` as a command while the servers are up.
pub fn run_with(repository: &Repository, words: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = words.split_first().context("the command is empty")?;
    let services = Services::start(repository)?;
    let mut command = process::in_repository(repository, Path::new(program));
    command.args(arguments);
    services.name_to(&mut command);
    process::run(&mut command)
}

/// Returns the folder of Postgres's programs; where none is installed, that of the package which the manifest pins.
fn programs(repository: &Repository, folder: &Folder) -> anyhow::Result<PathBuf> {
    if let Some(found) = postgres_programs() {
        return Ok(found);
    }
    let archive = setup::file(repository, "postgres")?;
    let place = folder.path.join("programs");
    process::capture(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&archive).arg(&place))?;
    let programs = place.join("pgserver/pginstall/bin");
    for entry in fs::read_dir(&programs).with_context(|| format!("cannot list {}", programs.display()))? {
        fs::set_permissions(entry?.path(), fs::Permissions::from_mode(0o755))?;
    }
    Ok(programs)
}

/// How the folder of a run is called; its process id follows.
const FOLDER: &str = "pintail-services-";

/// The folder of one run; removed with the value.
struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes it under target/, or, where the user that Postgres runs as may not look, in the system's temporary folder.
    fn create(repository: &Repository) -> anyhow::Result<Self> {
        let target = repository.target();
        let place = if is_open_to_all(&target) { target } else { env::temp_dir() };
        remove_left_folders(&place);
        let path = place.join(format!("{FOLDER}{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("warning: cannot remove {}: {error}", self.path.display());
        }
    }
}

/// Removes the folders of runs that were killed.
fn remove_left_folders(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.strip_prefix(FOLDER)) else { continue };
        if !Path::new("/proc").join(process).exists() {
            // One that another user made stays that user's.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether every user may look into `path`.
fn is_open_to_all(path: &Path) -> bool {
    path.ancestors().all(|folder| {
        fs::metadata(folder).is_ok_and(|metadata| metadata.is_dir() && metadata.permissions().mode() & 0o001 != 0)
    })
}
