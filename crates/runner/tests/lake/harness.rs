//! A project in a temp folder, opened and run as a face does it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, Utc};
use pintail_core::id::SnapshotId;
use pintail_core::plan::Plan;
use pintail_engine::fault::Faults;
use pintail_engine::guard::{Guard, Pin, PinKind};
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, Instance, InstanceOptions, LakeLocation, PostgresLocation};
use pintail_runner::executors::{Cancel, StepFailure, StepOutcome};
use pintail_runner::pintail::{MaintainRequest, Observation, PlanRequest};
use pintail_runner::project::{CompiledProject, compile};
use pintail_runner::run::{RunEvent, RunSummary, StepState};
use pintail_runner::workspace::{Environment, Project, load_project};
use pintail_runner::{Pintail, Settings};

use pintail_testkit::services::Database;
use pintail_testkit::wait_until;

use crate::catalogs::{self, Places};

/// A project folder that vanishes with the test.
pub struct Folder {
    temp: tempfile::TempDir,
    places: Mutex<Places>,
}

/// What a run told.
pub struct Told {
    /// The summary.
    pub summary: RunSummary,
    /// The steps by script and partition, in the order in which they ended.
    pub steps: Vec<Ended>,
}

/// One step's end.
pub struct Ended {
    /// `script` or `script partition`.
    pub name: String,
    /// How.
    pub state: StepState,
    /// Rows in the slice.
    pub rows: Option<u64>,
    /// Deleted and inserted.
    pub changed: (u64, u64),
    /// The snapshot.
    pub snapshot: Option<SnapshotId>,
    /// Why it failed.
    pub failure: Option<StepFailure>,
    /// What it said besides.
    pub notes: Vec<String>,
}

impl Folder {
    /// Removes the store of runs, which lies in a file, once nobody in this process has it open any more: SQLite would remove
    /// the files of the next one when it closes.
    pub fn lose_store(&self) {
        let path = |ending: &str| self.path().join(format!(".pintail/store.sqlite{ending}"));
        let is_ours = |target: PathBuf| target.display().to_string().starts_with(&path("").display().to_string());
        wait_until("the store is closed", || {
            let open = std::fs::read_dir("/proc/self/fd").unwrap();
            !open.flatten().filter_map(|descriptor| descriptor.path().read_link().ok()).any(is_ours)
        });
        std::fs::remove_file(path("")).unwrap();
        for ending in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(path(ending));
        }
    }

    /// Makes a project of the files in `text`: each begins with `//- <path>`.
    pub fn new(text: &str) -> Self {
        let folder = Self { temp: tempfile::tempdir().unwrap(), places: Mutex::default() };
        folder.write(text);
        folder
    }

    /// Makes a project whose lake `main` lies on Postgres, whatever the run of the tests wants.
    pub fn on_postgres(text: &str, database: Database) -> Self {
        let folder = Self { temp: tempfile::tempdir().unwrap(), places: Mutex::new(Places::on(database)) };
        folder.write(text);
        folder
    }

    /// Asks the database of the lake `main`, past everything.
    pub fn database_sql(&self, sql: &str) -> String {
        self.places.lock().unwrap().database().sql(sql)
    }

    /// Lets somebody `go_on` to a COMMIT that is stored and never answered.
    pub fn lose_the_answer_of_a_commit(&self, go_on: impl FnOnce()) {
        self.places.lock().unwrap().database().lose_the_answer_of_a_commit(go_on);
    }

    /// Returns `lake`, which lies on Postgres, as another process has it: the connection text tells their lanes apart.
    pub fn as_another_process(&self, lake: &LakeLocation) -> LakeLocation {
        let places = self.places.lock().unwrap();
        let text = format!("{} application_name=other", places.database().connection_without_password());
        let place = PostgresLocation::parse(&text, Some(places.database().password().into())).unwrap();
        LakeLocation { catalog: Catalog::Postgres(place), ..lake.clone() }
    }

    /// Writes more files, over those that are there.
    pub fn write(&self, text: &str) {
        for file in text.split("//- ").skip(1) {
            let (path, body) = file.split_once('\n').unwrap();
            let path = self.path().join(path.trim());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, body).unwrap();
        }
        self.places.lock().unwrap().make(self.path());
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    /// Returns what `check` says, one finding a line: severity, code, file and line, message.
    pub fn check(&self) -> Vec<String> {
        let compiled = compile(catalogs::load(self.path())).unwrap();
        let line = |path: &str, at: usize| {
            let text = std::fs::read_to_string(self.path().join(path)).unwrap_or_default();
            text.get(..at).unwrap_or_default().matches('\n').count() + 1
        };
        compiled
            .diagnostics
            .iter()
            .map(|d| {
                let path = d.path.to_string();
                format!(
                    "{:?} {} {path}:{} {}",
                    d.severity,
                    d.code,
                    line(&path, d.span.map_or(0, |span| span.start)),
                    d.message
                )
            })
            .collect()
    }

    /// Returns the lake's own text of a failed step: everything that the user is told.
    pub fn told_of(&self, told: &Told, name: &str) -> String {
        let script = name.split(' ').next().unwrap();
        let file = std::fs::read_to_string(self.path().join(format!("pipelines/{script}.sql"))).unwrap_or_default();
        failure_text(told.failure(name), &file)
    }

    /// Opens the project.
    pub fn open(&self) -> Pintail {
        self.open_at(Utc::now)
    }

    /// Opens the project at another time.
    pub fn open_at(&self, now: fn() -> DateTime<Utc>) -> Pintail {
        Pintail::open(Arc::new(compiled(catalogs::load(self.path()))), Settings { now, ..settings() }).unwrap()
    }

    /// Opens the project as it is after `change`, for runs or to ask only.
    pub fn open_changed(&self, is_for_questions: bool, change: impl FnOnce(&mut Project)) -> Pintail {
        let mut project = catalogs::load(self.path());
        change(&mut project);
        let (project, settings) = (Arc::new(compiled(project)), settings());
        let opened = if is_for_questions { Pintail::open_for_questions } else { Pintail::open };
        opened(project, settings).unwrap()
    }

    /// Opens the project with an environment for `${NAME}`.
    pub fn open_with(&self, environment: &Environment) -> Pintail {
        Pintail::open(Arc::new(compiled(catalogs::load_with(self.path(), environment))), settings()).unwrap()
    }

    /// Opens the project with a profile; its lakes are where its configuration says.
    pub fn open_as(&self, profile: &str) -> Pintail {
        let project = load_project(self.path(), Some(profile), &Environment::default());
        Pintail::open(Arc::new(compiled(project)), settings()).unwrap()
    }

    /// Plans and runs.
    pub fn run(&self, request: &PlanRequest) -> Told {
        run(&self.open(), request)
    }

    /// Plans and runs everything.
    pub fn run_all(&self) -> Told {
        self.run(&PlanRequest::default())
    }

    /// Runs a query and returns its rows as text.
    pub fn query(&self, sql: &str) -> Vec<String> {
        query(&self.open(), sql, None)
    }
}

/// Returns the environment that the project in `folder` sees: the `NAME=value` lines of its file `test.env`.
pub fn environment(folder: &Path) -> Environment {
    let text = std::fs::read_to_string(folder.join("test.env")).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once('=')).collect()
}

/// Compiles a project that has no errors.
fn compiled(project: Project) -> CompiledProject {
    let compiled = compile(project).unwrap();
    let errors: Vec<String> = compiled
        .diagnostics
        .iter()
        .filter(|d| d.severity == pintail_core::diagnostic::Severity::Error)
        .map(|d| format!("{}: {} {}", d.path, d.code, d.message))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    compiled
}

/// Returns everything that a failure tells, the place as the text that stands there.
fn failure_text(failure: &StepFailure, file: &str) -> String {
    let mut lines = vec![format!("{} {}: {}", failure.code, failure.stage, failure.message)];
    if let Some(span) = failure.span {
        let line = file[..span.start].matches('\n').count() + 1;
        let there = &file[span.start..];
        let text = match span.start < span.end {
            true => &file[span.start..span.end],
            false => there.lines().next().unwrap_or_default(),
        };
        lines.push(format!("at line {line}: {text}"));
    }
    lines.extend(failure.help.iter().map(|help| format!("help: {help}")));
    if let Some(sample) = &failure.sample {
        lines.push(format!("sample: {}", sample.columns.join("|")));
        for row in &sample.rows {
            let row: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
            lines.push(format!("  {}", row.join("|")));
        }
    }
    lines.push(format!("committed: {}", failure.committed));
    lines.join("\n")
}

/// Requests one partition.
pub fn at(partition: &str) -> PlanRequest {
    PlanRequest { partition: Some(partition.to_owned()), ..PlanRequest::default() }
}

/// Requests one partition of one script, whether it is due or not.
pub fn force_at(script: &str, partition: &str) -> PlanRequest {
    PlanRequest { force: true, ..only_at(script, partition) }
}

/// Requests one partition of one script.
pub fn only_at(script: &str, partition: &str) -> PlanRequest {
    PlanRequest { select: Some(script.to_owned()), ..at(partition) }
}

/// Requests one script.
pub fn only(script: &str) -> PlanRequest {
    PlanRequest { select: Some(script.to_owned()), ..PlanRequest::default() }
}

/// Requests one script, whether it is due or not.
pub fn force(script: &str) -> PlanRequest {
    PlanRequest { force: true, ..only(script) }
}

/// Requests everything, whether it is due or not.
pub fn forced() -> PlanRequest {
    PlanRequest { force: true, ..PlanRequest::default() }
}

/// Requests everything anew.
pub fn refreshed() -> PlanRequest {
    PlanRequest { full_refresh: true, ..PlanRequest::default() }
}

/// Requests an upkeep that takes all that nobody needs, however young.
pub fn upkeep() -> MaintainRequest {
    MaintainRequest {
        lake: None,
        keep: Duration::ZERO,
        grace: Duration::ZERO,
        stale_after: Duration::from_secs(3_600),
        compaction: None,
        dry_run: false,
        cancel: Cancel::default(),
    }
}

/// Plans without running; one line per step with its reason.
pub fn planned(pintail: &Pintail, request: &PlanRequest) -> Vec<String> {
    let (plan, _) = pintail.plan(request).unwrap();
    let name = |step: &pintail_core::plan::Step| match &step.partition {
        Some(partition) => format!("{} {partition}: {}", step.name, step.reason),
        None => format!("{}: {}", step.name, step.reason),
    };
    plan.steps.iter().map(name).collect()
}

/// Returns what the catalog says of a table of the default lake.
pub fn facts(pintail: &Pintail, table: &str) -> pintail_engine::lake::TableFacts {
    pintail.table(&pintail.parse_asset(table).unwrap()).unwrap().unwrap().facts
}

/// Runs SQL on the default lake as somebody else would, without any stamp; `lake` is the alias.
pub fn foreign(pintail: &Pintail, sql: &str) {
    foreign_result(pintail, sql).unwrap();
}

/// Does the same and returns what became of it.
pub fn foreign_result(pintail: &Pintail, sql: &str) -> Result<(), pintail_engine::EngineError> {
    let instance = Instance::open(options(pintail)).unwrap();
    let session = instance.session().unwrap();
    let location = pintail.lakes().values().find(|lake| lake.name.as_str() == "main").unwrap();
    location.attach_for_writing(&instance, &session).unwrap();
    session.batch("name the lake", &format!("USE {}", location.write_alias())).unwrap();
    session.batch("write from outside", sql)
}

/// Returns how an instance is opened that reads and writes the lakes of `pintail`.
pub fn options(pintail: &Pintail) -> InstanceOptions {
    let object_stores = catalogs::stores_of(&pintail.project().project);
    InstanceOptions { extensions: settings().extensions, object_stores, ..InstanceOptions::default() }
}

fn settings() -> Settings {
    let vendor = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    Settings {
        extensions: ExtensionFolders(vec![vendor]),
        command: vec!["test".to_owned()],
        faults: Faults::default(),
        now: Utc::now,
    }
}

/// Plans and runs on an open project.
pub fn run(pintail: &Pintail, request: &PlanRequest) -> Told {
    let (plan, seen) = pintail.plan(request).unwrap();
    run_plan(pintail, &plan, &seen)
}

/// Runs a plan that was made before.
pub fn run_plan(pintail: &Pintail, plan: &Plan, seen: &Observation) -> Told {
    let mut steps = Vec::new();
    let mut tell = |event: RunEvent| {
        if let RunEvent::StepFinished { index, state, report } = event {
            let step = &plan.steps[index];
            let name = match &step.partition {
                Some(partition) => format!("{} {partition}", step.name),
                None => step.name.to_string(),
            };
            let mut ended =
                Ended { name, state, rows: None, changed: (0, 0), snapshot: None, failure: None, notes: Vec::new() };
            if let Some(report) = report {
                ended.notes = report.notes.clone();
                match report.outcome {
                    StepOutcome::Materialized { snapshot, deleted, inserted, rows } => {
                        ended.rows = rows;
                        ended.changed = (deleted, inserted);
                        ended.snapshot = snapshot;
                    }
                    StepOutcome::Unchanged { snapshot, rows } => {
                        ended.rows = rows;
                        ended.snapshot = Some(snapshot);
                    }
                    StepOutcome::Failed(failure) => ended.failure = Some(*failure),
                    StepOutcome::Superseded { .. } | StepOutcome::RolledBack { .. } => {}
                }
            }
            steps.push(ended);
        }
    };
    let summary = pintail.run(plan, seen, &mut tell).unwrap();
    Told { summary, steps }
}

impl Told {
    /// Returns the step named `name`.
    pub fn step(&self, name: &str) -> &Ended {
        self.steps.iter().find(|step| step.name == name).unwrap_or_else(|| panic!("no step {name}: {}", self.text()))
    }

    /// Returns one line of notes per step.
    pub fn notes(&self) -> Vec<String> {
        self.steps.iter().flat_map(|step| step.notes.iter().map(|note| format!("{}: {note}", step.name))).collect()
    }

    /// Returns one line per step.
    pub fn text(&self) -> String {
        let line = |step: &Ended| match &step.failure {
            Some(failure) => format!("{}: {:?}: {}", step.name, step.state, failure.message),
            None => {
                format!("{}: {:?} rows {:?} -{} +{}", step.name, step.state, step.rows, step.changed.0, step.changed.1)
            }
        };
        let mut lines: Vec<String> = self.steps.iter().map(line).collect();
        // Two slots end their steps in any order.
        lines.sort_unstable();
        lines.join("\n")
    }

    /// Asserts that every step was materialized.
    pub fn assert_good(&self) -> &Self {
        assert!(self.steps.iter().all(|step| step.state == StepState::Materialized), "{}", self.text());
        self
    }

    /// Returns the failure of the step named `name`.
    pub fn failure(&self, name: &str) -> &StepFailure {
        self.step(name).failure.as_ref().unwrap_or_else(|| panic!("{name} did not fail: {}", self.text()))
    }
}

/// Returns what processes hold; the holds on the inputs of past runs outlive them.
pub fn pins_of_processes(pintail: &Pintail, guard: &Guard) -> Vec<Pin> {
    let pins = pintail.block_on(guard.pins()).unwrap();
    pins.into_iter().filter(|pin| pin.kind == PinKind::Process).collect()
}

/// Runs a query and returns its rows as text.
pub fn query(pintail: &Pintail, sql: &str, at: Option<SnapshotId>) -> Vec<String> {
    let result = pintail.query(sql, at, None).unwrap();
    result
        .text_rows()
        .unwrap()
        .into_iter()
        .map(|row| {
            row.into_iter().map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect::<Vec<_>>().join("|")
        })
        .collect()
}
