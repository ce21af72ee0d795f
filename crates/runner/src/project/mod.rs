//! A project, compiled: every file parsed, its reads and writes resolved, the graph built, every finding collected.
//!
//! Nothing here opens a lake. What `check`, `list`, `graph`, `plan` and `run` know of scripts is this, so that they cannot
//! disagree.

mod compile;
mod consumers;
mod deferral;
mod files;
mod objects;
mod script;
mod streams;
mod tests_of_project;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use pintail_core::diagnostic::{Diagnostic, Severity};
use pintail_core::graph::{Graph, NodeId};
use pintail_core::id::{LakeName, ScriptName};

pub use compile::{CompileError, compile};
pub use deferral::Deferral;
pub use files::fingerprint;
pub use objects::{object_address, reads_objects};
pub use script::{CompiledScript, ParsedText};
pub use streams::Maker;
pub use tests_of_project::{CompiledTest, TestKind, is_this};

use crate::workspace::Project;

/// A compiled project.
pub struct CompiledProject {
    /// The files and the configuration.
    pub project: Project,
    /// The scripts, by name.
    pub scripts: Vec<CompiledScript>,
    /// The test scripts, by name.
    pub tests: Vec<CompiledTest>,
    /// The graph of the scripts.
    pub graph: Graph,
    /// Everything that was found, by file and place.
    pub diagnostics: Vec<Diagnostic>,
    /// The lake of unqualified names.
    pub default_lake: LakeName,
    /// The profile that is read where the selected one has built nothing.
    pub deferral: Option<Arc<Deferral>>,
    by_name: HashMap<ScriptName, usize>,
}

impl CompiledProject {
    /// Returns the script named `name`.
    pub fn script(&self, name: &ScriptName) -> Option<&CompiledScript> {
        self.by_name.get(name).map(|position| &self.scripts[*position])
    }

    /// Returns the script at a node of the graph.
    pub fn script_at(&self, node: NodeId) -> Option<&CompiledScript> {
        self.script(self.graph.name(node))
    }

    /// Returns the test script named `name`.
    pub fn test(&self, name: &str) -> Option<&CompiledTest> {
        self.tests.iter().find(|test| test.name == name)
    }

    /// Returns the text of the file `path`, for carets.
    pub fn source(&self, path: &str) -> Option<&str> {
        let scripts = self.project.scripts.iter().map(|script| &script.source);
        let tests = self.project.tests.iter().map(|test| &test.source);
        scripts
            .chain(tests)
            .chain(&self.project.macros)
            .chain(&self.project.config_file)
            .find(|file| file.path == path)
            .map(|file| file.text.as_str())
    }

    /// Returns whether anything was found that must be mended before a run.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Returns the project's root folder.
    pub fn root(&self) -> &PathBuf {
        &self.project.root
    }
}
