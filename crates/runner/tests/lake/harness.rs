//! A project in a temp folder, opened and run as a face does it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::Utc;
use pintail_core::id::SnapshotId;
use pintail_engine::fault::Faults;
use pintail_engine::native::ExtensionFolders;
use pintail_runner::executors::{StepFailure, StepOutcome};
use pintail_runner::pintail::PlanRequest;
use pintail_runner::project::compile;
use pintail_runner::run::{RunEvent, RunSummary, StepState};
use pintail_runner::workspace::{Environment, load_project};
use pintail_runner::{Pintail, Settings};

/// A project folder that vanishes with the test.
pub struct Folder {
    temp: tempfile::TempDir,
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
    /// Makes a project of the files in `text`: each begins with `//- <path>`.
    pub fn new(text: &str) -> Self {
        let folder = Self { temp: tempfile::tempdir().unwrap() };
        folder.write(text);
        folder
    }

    /// Writes more files, over those that are there.
    pub fn write(&self, text: &str) {
        for file in text.split("//- ").skip(1) {
            let (path, body) = file.split_once('\n').unwrap();
            let path = self.path().join(path.trim());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, body).unwrap();
        }
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        self.temp.path()
    }

    /// Opens the project.
    pub fn open(&self) -> Pintail {
        let project = load_project(self.path(), None, &Environment::default());
        let compiled = compile(project).unwrap();
        let errors: Vec<String> = compiled
            .diagnostics
            .iter()
            .filter(|d| d.severity == pintail_core::diagnostic::Severity::Error)
            .map(|d| format!("{}: {} {}", d.path, d.code, d.message))
            .collect();
        assert_eq!(errors, Vec::<String>::new());
        Pintail::open(Arc::new(compiled), settings()).unwrap()
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
                    StepOutcome::Failed(failure) => ended.failure = Some(*failure),
                    StepOutcome::Superseded { .. } => {}
                }
            }
            steps.push(ended);
        }
    };
    let summary = pintail.run(&plan, &seen, &mut tell).unwrap();
    Told { summary, steps }
}

impl Told {
    /// Returns the step named `name`.
    pub fn step(&self, name: &str) -> &Ended {
        self.steps.iter().find(|step| step.name == name).unwrap_or_else(|| panic!("no step {name}: {}", self.text()))
    }

    /// Returns one line per step.
    pub fn text(&self) -> String {
        let line = |step: &Ended| match &step.failure {
            Some(failure) => format!("{}: {:?}: {}", step.name, step.state, failure.message),
            None => {
                format!("{}: {:?} rows {:?} -{} +{}", step.name, step.state, step.rows, step.changed.0, step.changed.1)
            }
        };
        self.steps.iter().map(line).collect::<Vec<_>>().join("\n")
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
