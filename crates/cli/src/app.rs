//! What every command begins with: the project found, loaded, compiled and opened.
//!
//! Nothing is opened that a command did not ask for: loading reads files, compiling starts the engine's parser, opening
//! opens the store.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintail_core::diagnostic::{Diagnostic, Severity};
use pintail_core::graph::NodeId;
use pintail_engine::Redactor;
use pintail_runner::pintail::asks_for_state;
use pintail_runner::project::{CompiledProject, compile};
use pintail_runner::workspace::{Project, find_root, load_project};
use pintail_runner::{Pintail, RunnerError, Settings};

use crate::args::{Globals, SelectArgs};
use crate::environment::{Environment, now};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::{diagnostics, text};
use crate::terminal::Terminal;

/// What a command works with.
pub struct App {
    /// The options that every command has.
    pub globals: Globals,
    /// The environment.
    pub environment: Environment,
    /// The terminal.
    pub terminal: Terminal,
}

impl App {
    /// Returns the project's root: `--project`, or the nearest folder upwards that is one.
    pub fn root(&self) -> Result<PathBuf, Failure> {
        if let Some(folder) = &self.globals.project {
            let folder = self.environment.current_dir.join(folder);
            return match folder.is_dir() {
                true => Ok(folder.canonicalize().unwrap_or(folder)),
                false => Err(Failure::usage(format!("`--project {}` is not a folder", folder.display()))),
            };
        }
        let start = &self.environment.current_dir;
        find_root(start).ok_or_else(|| {
            Failure::usage(format!("no project in {} or above: no pintail.toml and no pipelines/", start.display()))
                .with_hint("`pintail init` makes one; `--project <dir>` names one elsewhere")
        })
    }

    /// Reads the project's files.
    pub fn load(&self) -> Result<Project, Failure> {
        let mut project = self.load_at(&self.root()?);
        for text in &self.globals.vars {
            project.config.set_variable(text).map_err(|error| Failure::usage(format!("`--var`: {error}")))?;
        }
        Ok(project)
    }

    /// Reads the files of the project in `root`.
    pub fn load_at(&self, root: &Path) -> Project {
        let profile = self.globals.profile.as_deref().or(self.environment.profile());
        let project = load_project(root, profile, &self.environment.variables);
        self.terminal.redact_with(Redactor::new(project.config.secrets.expose()));
        project
    }

    /// Reads and compiles the project.
    pub fn compile(&self) -> Result<Arc<CompiledProject>, Failure> {
        Ok(Arc::new(compile(self.load()?)?))
    }

    /// Opens a compiled project.
    pub fn open(&self, project: Arc<CompiledProject>) -> Result<Pintail, Failure> {
        Ok(Pintail::open(project, self.settings()?)?)
    }

    /// Opens `project` to ask only: a lake is reached as its `reader`, which may be a role that only reads.
    pub fn open_as_reader(&self, project: Arc<CompiledProject>) -> Result<Pintail, Failure> {
        Ok(Pintail::open_for_questions(project, self.settings()?)?)
    }

    fn settings(&self) -> Result<Settings, Failure> {
        Ok(Settings {
            extensions: self.environment.extension_folders(),
            command: self.environment.arguments.clone(),
            faults: self.environment.faults().map_err(Failure::usage)?,
            now,
        })
    }

    /// Compiles and opens the project for a question that its scripts cannot spoil; broken configuration can.
    pub fn open_for_question(&self) -> Result<Pintail, Failure> {
        self.open(self.compile_for_question()?)
    }

    /// Does the same for a question that changes nothing: a lake is reached as its `reader`.
    pub fn open_for_reading(&self) -> Result<Pintail, Failure> {
        self.open_as_reader(self.compile_for_question()?)
    }

    fn compile_for_question(&self) -> Result<Arc<CompiledProject>, Failure> {
        let project = self.compile()?;
        let scripts: Vec<&str> = project.project.scripts.iter().map(|script| script.source.path.as_str()).collect();
        let tests: Vec<&str> = project.project.tests.iter().map(|test| test.source.path.as_str()).collect();
        let in_config = |diagnostic: &&Diagnostic| {
            let path = diagnostic.path.as_str();
            diagnostic.severity == Severity::Error && !scripts.contains(&path) && !tests.contains(&path)
        };
        let errors: Vec<&Diagnostic> = project.diagnostics.iter().filter(in_config).collect();
        if !errors.is_empty() {
            self.show_diagnostics(&project, errors);
            return Err(Failure::Told(Exit::CheckErrors));
        }
        Ok(project)
    }

    /// Compiles the project, shows what was found about the selected scripts, and stops at errors.
    pub fn compile_checked(&self, select: &SelectArgs) -> Result<Arc<CompiledProject>, Failure> {
        let project = self.compile()?;
        self.stop_at_errors(&project, select)?;
        Ok(project)
    }

    /// Shows what was found about the selected scripts, and stops at errors.
    pub fn stop_at_errors(&self, project: &CompiledProject, select: &SelectArgs) -> Result<(), Failure> {
        let (about_selected, elsewhere) = self.split_diagnostics(project, select)?;
        let shown = about_selected.iter().copied().filter(|diagnostic| diagnostic.severity != Severity::Info);
        self.show_diagnostics(project, shown);
        let errors = about_selected.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        if 0 < errors {
            self.terminal.error(&format!("{} in the project; nothing was done", text::count(errors, "error")));
            return Err(Failure::Told(Exit::CheckErrors));
        }
        let others = elsewhere.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        if 0 < others {
            let message = format!("{} in scripts that are not selected", text::count(others, "error"));
            self.terminal.warning(&message);
            self.terminal.hint("`pintail check` shows them");
        }
        Ok(())
    }

    /// Shows the errors in the file `path`, and stops when there are any.
    pub fn show_errors_of(&self, project: &CompiledProject, path: &str) -> Result<(), Failure> {
        let is_error = |diagnostic: &&Diagnostic| diagnostic.path == path && diagnostic.severity == Severity::Error;
        let errors: Vec<&Diagnostic> = project.diagnostics.iter().filter(is_error).collect();
        if errors.is_empty() {
            return Ok(());
        }
        self.show_diagnostics(project, errors);
        Err(Failure::Told(Exit::CheckErrors))
    }

    /// Returns the scripts that a selection means, in topological order; one that asks for states opens the project.
    pub fn select(&self, project: &Arc<CompiledProject>, select: &SelectArgs) -> Result<Vec<NodeId>, Failure> {
        let (chosen, left_out) = (select.select(), select.exclude());
        if !asks_for_state(chosen.as_deref(), left_out.as_deref()) {
            return project
                .select(chosen.as_deref(), left_out.as_deref())
                .map_err(|failure| Failure::from(RunnerError::Select(failure)).in_selection(select));
        }
        self.open(project.clone())?
            .select(chosen.as_deref(), left_out.as_deref())
            .map_err(|error| Failure::from(error).in_selection(select))
    }

    /// Splits what was found into what concerns the selected scripts (and the project as a whole), and the rest.
    pub fn split_diagnostics<'p>(
        &self,
        project: &'p CompiledProject,
        select: &SelectArgs,
    ) -> Result<(Vec<&'p Diagnostic>, Vec<&'p Diagnostic>), Failure> {
        let nodes = project
            .select_widest(select.select().as_deref(), select.exclude().as_deref())
            .map_err(|failure| Failure::from(RunnerError::Select(failure)).in_selection(select))?;
        let path_of = |node| project.script_at(node).map(|script| script.file.source.path.as_str());
        let chosen: HashSet<&str> = nodes.into_iter().filter_map(path_of).collect();
        let all: HashSet<&str> = project.project.scripts.iter().map(|script| script.source.path.as_str()).collect();
        Ok(project.diagnostics.iter().partition(|diagnostic| {
            let path = diagnostic.path.as_str();
            chosen.contains(path) || !all.contains(path)
        }))
    }

    /// Shows findings with the code that they are about.
    pub fn show_diagnostics<'d>(&self, project: &CompiledProject, found: impl IntoIterator<Item = &'d Diagnostic>) {
        for diagnostic in found {
            let source = project.source(&diagnostic.path);
            self.terminal.talk(&diagnostics::render(diagnostic, source, self.terminal.colors_talk()));
        }
    }

    /// Fails when there is something in `missing`, which the command needs and most others do not, after showing it.
    pub fn require(&self, project: &CompiledProject, missing: &[Diagnostic]) -> Result<(), Failure> {
        if missing.is_empty() {
            return Ok(());
        }
        self.show_diagnostics(project, missing);
        Err(Failure::Told(Exit::CheckErrors))
    }
}
