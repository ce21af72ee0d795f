//! Scripts with `stream` among the consumers: what has come to them is run as a plan, as `pintail run` does it.

use pintail_core::diagnostic::Severity;
use pintail_runner::executors::StepOutcome;
use pintail_runner::pintail::PlanRequest;
use pintail_runner::project::CompiledScript;
use pintail_runner::run::{RunEvent, StepState};
use pintail_runner::{Pintail, RunnerError};
use serde_json::{Value, json};

use crate::app::App;
use crate::failure::Failure;
use crate::render::text::count;

/// After so many plans in a row that still found something, one that is not to go on ends: it would never.
const ROUNDS: usize = 100_000;

/// The scripts that a command means.
pub struct Scripts<'a> {
    pintail: &'a Pintail,
    select: String,
    /// What was said last of each failure: the same again is no news.
    last: String,
    /// Whether the newest pass has failed.
    pub has_failed: bool,
    /// Whether the end was asked for before nothing was left.
    pub was_stopped: bool,
    /// What was written, for `--json`.
    pub passes: Vec<Value>,
}

/// Returns the scripts with `stream`.
pub fn stream_scripts(pintail: &Pintail) -> Vec<&CompiledScript> {
    pintail.project().scripts.iter().filter(|script| script.header.stream.is_some()).collect()
}

impl<'a> Scripts<'a> {
    /// Returns those of `names`, or all when no name is given; `None` when there is none.
    pub fn of(pintail: &'a Pintail, names: &[String]) -> Option<Self> {
        let is_meant = |script: &&&CompiledScript| names.is_empty() || names.contains(&script.name().to_string());
        let names: Vec<String> =
            stream_scripts(pintail).iter().filter(is_meant).map(|script| script.name().to_string()).collect();
        let select = names.join(" ");
        let scripts =
            Self { pintail, select, last: String::new(), has_failed: false, was_stopped: false, passes: Vec::new() };
        (!names.is_empty()).then_some(scripts)
    }

    /// Says what is wrong with scripts that cannot run.
    pub fn show_errors(&self, app: &App) {
        let project = self.pintail.project();
        let paths: Vec<&str> =
            stream_scripts(self.pintail).iter().map(|script| script.file.source.path.as_str()).collect();
        let errors = project
            .diagnostics
            .iter()
            .filter(|found| found.severity == Severity::Error && paths.contains(&found.path.as_str()));
        app.show_diagnostics(project, errors);
    }

    /// Runs what has come until nothing is left.
    pub fn drain(&mut self, app: &App, is_followed: bool) -> Result<(), Failure> {
        for _ in 0..ROUNDS {
            if self.pintail.cancel().is_set() {
                self.was_stopped = true;
                return Ok(());
            }
            if !self.pass(app, is_followed)? || self.has_failed {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Plans and runs once; returns whether there was anything to do.
    fn pass(&mut self, app: &App, is_followed: bool) -> Result<bool, Failure> {
        let request = PlanRequest { select: Some(self.select.clone()), ..PlanRequest::default() };
        let (plan, seen) = match self.pintail.plan(&request) {
            Ok(planned) => planned,
            Err(error) => return self.fail(error, app, is_followed).map(|()| false),
        };
        self.has_failed = false;
        if plan.steps.is_empty() {
            return Ok(false);
        }
        let mut ended = Vec::new();
        let mut tell = |event: RunEvent| {
            if let RunEvent::StepFinished { index, state, report } = event {
                ended.push((plan.steps[index].name.to_string(), state, report));
            }
        };
        if let Err(error) = self.pintail.run(&plan, &seen, &mut tell) {
            return self.fail(error, app, is_followed).map(|()| false);
        }
        for (name, state, report) in ended {
            self.show(&name, state, report.map(|report| report.outcome), app, is_followed);
        }
        Ok(true)
    }

    /// In a follower what fails is said once and tried again; otherwise it ends the command.
    fn fail(&mut self, error: RunnerError, app: &App, is_followed: bool) -> Result<(), Failure> {
        self.has_failed = true;
        let failure = Failure::from(error);
        if !is_followed {
            return Err(failure);
        }
        self.say_once(&format!("scripts: {failure}; tried again"), app);
        Ok(())
    }

    fn say_once(&mut self, text: &str, app: &App) {
        if self.last != text {
            app.terminal.error(text);
            text.clone_into(&mut self.last);
        }
    }

    fn show(&mut self, name: &str, state: StepState, outcome: Option<StepOutcome>, app: &App, is_followed: bool) {
        match outcome {
            Some(StepOutcome::Materialized { snapshot, deleted, inserted, .. }) => {
                self.last.clear();
                let value = json!({
                    "consumer": name,
                    "script": true,
                    "snapshot": snapshot.map(|snapshot| snapshot.0),
                    "inserted": inserted,
                    "deleted": deleted,
                });
                if !app.terminal.is_json {
                    let rows = |number: u64, what| {
                        format!("{} {what}", count(usize::try_from(number).unwrap_or(usize::MAX), "row"))
                    };
                    app.terminal.data(&format!("{name}: {}, {}\n", rows(inserted, "in"), rows(deleted, "out")));
                } else if is_followed {
                    app.terminal.json_line(&value);
                } else {
                    self.passes.push(value);
                }
            }
            Some(StepOutcome::Failed(failure)) => {
                self.has_failed = true;
                let mut text = format!("{name}: {}; {}", failure.message, failure.committed);
                failure.help.iter().for_each(|help| text = format!("{text}; {help}"));
                if is_followed {
                    text.push_str("; it is tried again");
                }
                self.say_once(&text, app);
            }
            _ if state == StepState::Failed => self.has_failed = true,
            _ => {}
        }
    }
}
