//! `doctor`: what is found where, and what is missing.
//!
//! Each line is one fact. It reads what is there and makes nothing, so that it can be run anywhere.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use pintail_core::diagnostic::Severity;
use pintail_engine::lake::ServerFacts;
use pintail_engine::native::{DUCKDB_VERSION, Extension};
use pintail_engine::{EngineError, Instance, InstanceOptions, LakeLocation};
use pintail_runner::project::compile;
use pintail_runner::workspace::{Catalog, DataPath, Lake, Project, StoreUrl};
use pintail_runner::{Pintail, with_sources};
use serde_json::json;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal::Style;

/// Nothing to choose.
#[derive(Debug, Args)]
#[command(after_help = "Exit code 1 when something that is needed is missing.")]
pub struct DoctorArgs {}

/// How a fact is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it should be.
    Ok,
    /// Not needed now.
    Note,
    /// Needed, and not there.
    Missing,
}

/// One fact.
struct Fact {
    subject: String,
    state: State,
    text: String,
}

impl Fact {
    fn new(subject: impl Into<String>, state: State, text: impl Into<String>) -> Self {
        Self { subject: subject.into(), state, text: text.into() }
    }
}

/// Runs the command.
pub fn run(_args: &DoctorArgs, app: &App) -> Result<Exit, Failure> {
    let mut facts = vec![Fact::new("pintail", State::Ok, env!("CARGO_PKG_VERSION"))];
    look_at_engine(app, &mut facts);
    look_at_programs(app, &mut facts);
    match app.root() {
        Ok(root) => look_at_project(app, &root, &mut facts),
        Err(_) => facts.push(Fact::new("project", State::Note, "none here; `pintail init` makes one")),
    }
    let is_healthy = facts.iter().all(|fact| fact.state != State::Missing);
    if app.terminal.is_json {
        let facts: Vec<_> = facts
            .iter()
            .map(|fact| json!({"subject": fact.subject, "state": word(fact.state), "text": app.terminal.redact(&fact.text)}))
            .collect();
        app.terminal.json(&json!({"ok": is_healthy, "facts": facts}));
    } else {
        let width = facts.iter().map(|fact| fact.subject.chars().count()).max().unwrap_or(0);
        for fact in &facts {
            let style = match fact.state {
                State::Ok => Style::Good,
                State::Note => Style::Dim,
                State::Missing => Style::Error,
            };
            let mark = app.terminal.paint_data(style, &format!("{:7}", word(fact.state)));
            app.terminal.data(&format!("{mark} {:width$}  {}\n", fact.subject, app.terminal.redact(&fact.text)));
        }
    }
    Ok(if is_healthy { Exit::Ok } else { Exit::Failed })
}

fn word(state: State) -> &'static str {
    match state {
        State::Ok => "ok",
        State::Note => "note",
        State::Missing => "missing",
    }
}

fn look_at_engine(app: &App, facts: &mut Vec<Fact>) {
    let extensions = app.environment.extension_folders();
    let options = InstanceOptions { extensions: extensions.clone(), ..InstanceOptions::default() };
    let instance = match Instance::open(options) {
        Ok(instance) => instance,
        Err(error) => {
            facts.push(Fact::new("libduckdb", State::Missing, with_sources(&error)));
            return;
        }
    };
    let place = loaded_library().map_or_else(String::new, |path| format!(" from {}", path.display()));
    facts.push(Fact::new("libduckdb", State::Ok, format!("{DUCKDB_VERSION}{place}")));
    for extension in Extension::ALL {
        let is_needed = matches!(extension, Extension::DuckLake | Extension::SqliteScanner);
        let otherwise = if is_needed { State::Missing } else { State::Note };
        let name = format!("extension {}", extension.name());
        let found = extensions.find(extension).and_then(|path| instance.load(extension).map(|()| path));
        facts.push(match found {
            Ok(path) => Fact::new(name, State::Ok, path.display().to_string()),
            Err(error) => Fact::new(name, otherwise, missing_extension(&error)),
        });
    }
}

fn missing_extension(error: &EngineError) -> String {
    match error {
        EngineError::ExtensionMissing { folders, .. } => {
            let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
            format!("not in {}; run `cargo xtask setup`, or set PINTAIL_EXTENSION_DIR", folders.join(", "))
        }
        other => with_sources(other),
    }
}

/// Returns which libduckdb this process has loaded, as Linux tells it.
fn loaded_library() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("libduckdb"))?;
    line.split_whitespace().last().map(PathBuf::from)
}

fn look_at_programs(app: &App, facts: &mut Vec<Fact>) {
    for (program, purpose) in [("python3", "Python scripts"), ("node", "TypeScript scripts"), ("bash", "Bash scripts")]
    {
        facts.push(match app.environment.find_program(program) {
            Some(path) => Fact::new(program, State::Ok, path.display().to_string()),
            None => Fact::new(program, State::Note, format!("not in PATH; needed for {purpose}")),
        });
    }
}

fn look_at_project(app: &App, root: &Path, facts: &mut Vec<Fact>) {
    let project = app.load_at(root);
    facts.push(Fact::new("project", State::Ok, root.display().to_string()));
    let config = match (&project.config_file, &project.config.profile) {
        (None, _) => "no pintail.toml; everything is as it is by default".to_owned(),
        (Some(file), None) => file.path.clone(),
        (Some(file), Some(profile)) => format!("{} with the profile `{profile}`", file.path),
    };
    let errors = project.diagnostics.iter().filter(|found| found.severity == Severity::Error).count();
    facts.push(match errors {
        0 => Fact::new("configuration", State::Ok, config),
        _ => Fact::new("configuration", State::Missing, format!("{config} has errors; `pintail check` shows them")),
    });
    for (name, lake) in &project.config.lakes {
        let data = match &lake.data {
            DataPath::Local(path) => path.display().to_string(),
            DataPath::Url(url) => url.clone(),
        };
        facts.push(Fact::new(format!("lake {name}"), State::Ok, lake_text(lake, &data)));
    }
    if errors == 0 && stores_exist(&project) {
        look_at_state(app, project, facts);
    }
}

fn lake_text(lake: &Lake, data: &str) -> String {
    match &lake.catalog {
        Catalog::Sqlite { path } if path.exists() => {
            let journal = if is_wal(path) { "WAL" } else { "no WAL" };
            format!("catalog {} ({journal}), data {data}", path.display())
        }
        Catalog::Sqlite { path } => format!("not made yet; the first run makes {}", path.display()),
        Catalog::Postgres { connection, .. } => format!("catalog postgres:{connection}, data {data}"),
    }
}

/// Reads from the file's header whether a SQLite file is in WAL mode. Nothing of this process has the file open yet,
/// so that closing it cannot drop a lock.
fn is_wal(path: &Path) -> bool {
    let mut header = [0_u8; 20];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.is_ok() && header[18] == 2
}

/// Opening makes a file that is not there; a look must not. On a server only the opening can tell.
fn stores_exist(project: &Project) -> bool {
    match &project.config.store {
        StoreUrl::Sqlite { path } => path.exists(),
        StoreUrl::Postgres { .. } => true,
    }
}

fn look_at_state(app: &App, project: Project, facts: &mut Vec<Fact>) {
    let opened = compile(project).map_err(Failure::from).and_then(|project| app.open_as_reader(Arc::new(project)));
    let pintail = match opened {
        Ok(pintail) => pintail,
        Err(failure) => {
            facts.push(Fact::new("store", State::Missing, failure.to_string()));
            return;
        }
    };
    facts.push(Fact::new("store", State::Ok, store_text(&pintail)));
    look_at_servers(&pintail, facts);
    match pintail.observe([]) {
        Ok(seen) => {
            for (lake, head) in &seen.heads {
                let location = pintail.lakes().get(lake);
                let guard = location.map(guard_text).unwrap_or_default();
                facts.push(Fact::new(format!("head of {lake}"), State::Ok, format!("snapshot {head}; {guard}")));
            }
        }
        Err(error) => facts.push(Fact::new("lakes", State::Missing, Failure::from(error).to_string())),
    }
}

fn store_text(pintail: &Pintail) -> String {
    match pintail.runs(1) {
        Ok(runs) => match runs.first() {
            Some(run) => format!("readable; the newest run is {} ({})", run.id, run.status),
            None => "readable; no run yet".to_owned(),
        },
        Err(error) => with_sources(&error),
    }
}

/// Asks the server of each Postgres catalog who it is and what it can still take.
fn look_at_servers(pintail: &Pintail, facts: &mut Vec<Fact>) {
    for lake in pintail.lakes().values() {
        let name = format!("server of {}", lake.name);
        match lake.server() {
            Ok(None) => {}
            Ok(Some(server)) => {
                let ServerFacts { version, limit, used } = server;
                let text = format!("Postgres {version}, {used} of {limit} connections in use");
                facts.push(Fact::new(name, State::Ok, text));
            }
            Err(error) => facts.push(Fact::new(name, State::Missing, Failure::from(error).to_string())),
        }
    }
}

fn guard_text(lake: &LakeLocation) -> String {
    let Some(catalog) = lake.catalog_file() else { return "guard in the schema `pintail`".to_owned() };
    let mut name = catalog.as_os_str().to_owned();
    name.push(".guard.sqlite");
    let guard = PathBuf::from(name);
    if guard.exists() { format!("guard {}", guard.display()) } else { "no guard yet".to_owned() }
}
