//! What the benchmarks on a lake share: a project folder, its runs, and the same lake for SQL that is sent by hand.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::Bench;
use super::measure::time;
use crate::process;

/// A project folder below `target/bench`, made anew.
pub struct Project {
    folder: PathBuf,
    pintail: PathBuf,
    plain: PathBuf,
    extensions: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Project {
    /// Makes an empty project named `name`.
    pub fn new(bench: &Bench, name: &str) -> anyhow::Result<Self> {
        let folder = bench.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("pipelines"))?;
        Ok(Self {
            folder,
            pintail: bench.pintail.clone(),
            plain: bench.plain.clone(),
            extensions: bench.extensions.clone(),
            variables: Vec::new(),
        })
    }

    /// Sets a variable of the environment for every `pintail` of this project.
    pub fn with_variable(mut self, name: &'static str, value: String) -> Self {
        self.variables.push((name, value));
        self
    }

    /// Writes pintail.toml.
    pub fn config(&self, text: &str) -> anyhow::Result<()> {
        Ok(fs::write(self.folder.join("pintail.toml"), text)?)
    }

    /// Writes the script `name`.
    pub fn script(&self, name: &str, text: &str) -> anyhow::Result<()> {
        Ok(fs::write(self.folder.join("pipelines").join(format!("{name}.sql")), text)?)
    }

    /// Writes a file of the project and returns its place.
    pub fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Returns the command `pintail` with `arguments` in this project.
    pub fn pintail(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.pintail);
        command.arg("--project").arg(&self.folder).args(arguments).stderr(std::process::Stdio::null());
        command.envs(self.variables.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// Runs `pintail` with `arguments`, not measured.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<()> {
        process::run(self.pintail(arguments).stdout(std::process::Stdio::null()))
    }

    /// Returns how long `pintail` takes with `arguments`.
    pub fn time(&self, arguments: &[&str]) -> anyhow::Result<Duration> {
        time(&mut self.pintail(arguments))
    }

    /// Returns how long it takes to send `statements` by hand to this project's lake.
    pub fn time_plain(&self, statements: &str) -> anyhow::Result<Duration> {
        self.time_plain_in("main", statements)
    }

    /// Returns how long it takes to send `statements` by hand to the lake `name` beside the project's own.
    pub fn time_plain_in(&self, name: &str, statements: &str) -> anyhow::Result<Duration> {
        let file = self.folder.join("plain.sql");
        fs::write(&file, statements)?;
        let lake = self.folder.join(".pintail");
        fs::create_dir_all(lake.join("data").join(name))?;
        time(
            Command::new(&self.plain)
                .arg(lake.join(format!("{name}.sqlite")))
                .arg(lake.join("data").join(name))
                .arg(&self.extensions)
                .arg(&file),
        )
    }

    /// Removes every lake and the store.
    pub fn forget(&self) -> anyhow::Result<()> {
        let state = self.folder.join(".pintail");
        if state.exists() {
            fs::remove_dir_all(state)?;
        }
        Ok(())
    }
}
