//! The only place that reads the environment, the process's arguments and the clock.

use std::env;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use pintail_engine::fault::Faults;
use pintail_engine::native::ExtensionFolders;
use pintail_runner::workspace;

/// What the process was started with.
pub struct Environment {
    /// The variables that `${NAME}` in `pintail.toml` refers to.
    pub variables: workspace::Environment,
    /// The folder in which it was started.
    pub current_dir: PathBuf,
    /// The command line, word by word.
    pub arguments: Vec<String>,
    executable: Option<PathBuf>,
}

impl Environment {
    /// Reads the environment. A variable that is not UTF-8 is passed over: no configuration can name it.
    pub fn read() -> Self {
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self {
            variables,
            current_dir: env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            // Where the binary lies is not part of what was asked for.
            arguments: std::iter::once("pintail".to_owned())
                .chain(env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()))
                .collect(),
            executable: env::current_exe().ok(),
        }
    }

    /// Returns a variable that is set to something.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).filter(|value| !value.is_empty())
    }

    /// Returns the profile of `PINTAIL_PROFILE`.
    pub fn profile(&self) -> Option<&str> {
        self.get("PINTAIL_PROFILE")
    }

    /// Returns where extension files may lie; `PINTAIL_EXTENSION_DIR` comes first.
    pub fn extension_folders(&self) -> ExtensionFolders {
        let home = self.get("HOME").map(PathBuf::from);
        let configured = self.get("PINTAIL_EXTENSION_DIR").map(PathBuf::from);
        match configured {
            // A folder that was named is the one that is meant: a wrong one is told, not passed over.
            Some(folder) => ExtensionFolders(vec![folder]),
            None => ExtensionFolders::usual(None, self.executable.as_deref(), home.as_deref()),
        }
    }

    /// Returns the faults that a test asks for; none in a release build.
    pub fn faults(&self) -> Result<Faults, String> {
        match self.get("PINTAIL_FAULT").filter(|_| cfg!(debug_assertions)) {
            Some(text) => Faults::parse(text).map_err(|error| format!("PINTAIL_FAULT: {error}")),
            None => Ok(Faults::default()),
        }
    }

    /// Returns the file of `program` in the folders of `PATH`.
    pub fn find_program(&self, program: &str) -> Option<PathBuf> {
        let folders = env::split_paths(self.get("PATH")?).collect::<Vec<_>>();
        folders.into_iter().map(|folder| folder.join(program)).find(|file| file.is_file())
    }
}

/// Returns the time now.
pub fn now() -> DateTime<Utc> {
    Utc::now()
}
