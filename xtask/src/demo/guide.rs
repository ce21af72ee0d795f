//! The guide of the tour: says a sentence, echoes a command as a person would type it, and runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::process;

/// The exit code of a run with failed steps, as documented with the command line.
const FAILED_STEPS: i32 = 1;

/// Runs the built `pintail` in one project.
pub struct Guide {
    pintail: PathBuf,
    project: PathBuf,
}

impl Guide {
    /// Returns the guide for `project` with the program at `pintail`.
    pub fn new(pintail: PathBuf, project: PathBuf) -> Self {
        Self { pintail, project }
    }

    /// Returns the place of a file of the project.
    pub fn place(&self, path: &str) -> PathBuf {
        self.project.join(path)
    }

    /// Says what comes next.
    pub fn say(&self, sentence: &str) {
        println!("\n\n{sentence}");
    }

    /// Runs `pintail` and fails unless it succeeds.
    pub fn pintail(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let code = self.echo_and_run(arguments)?;
        if code != 0 {
            bail!("the tour ends here: `{}` gave exit code {code}", echo(arguments));
        }
        Ok(())
    }

    /// Runs `pintail` and fails unless it reports failed steps, which this part of the tour is about.
    pub fn pintail_fails(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let code = self.echo_and_run(arguments)?;
        if code != FAILED_STEPS {
            bail!("the tour ends here: `{}` gave exit code {code}, expected {FAILED_STEPS}", echo(arguments));
        }
        println!("(exit code {FAILED_STEPS}: steps failed)");
        Ok(())
    }

    /// Returns the newest snapshot of the default lake.
    pub fn newest_snapshot(&self) -> anyhow::Result<i64> {
        let sql = "SELECT max(snapshot_id) AS newest FROM lake.snapshots()";
        let printed = process::capture(self.command(&["query", "--json", sql]).stdin(Stdio::null()))?;
        let rows: Value = serde_json::from_str(&printed).context("`pintail query --json` printed no JSON")?;
        integer_named("newest", &rows).context("`pintail query --json` printed no column `newest`")
    }

    fn echo_and_run(&self, arguments: &[&str]) -> anyhow::Result<i32> {
        println!("\n$ {}", echo(arguments));
        let status =
            self.command(arguments).status().with_context(|| format!("cannot start {}", self.pintail.display()))?;
        status.code().with_context(|| format!("`{}` was stopped by a signal", echo(arguments)))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.pintail);
        command.args(arguments).current_dir(&self.project).env_remove("PINTAIL_PROFILE");
        command
    }
}

/// A file of the project that holds another text for a while.
pub struct Swapped {
    place: PathBuf,
    original: Vec<u8>,
}

impl Swapped {
    /// Swaps the file at `place` for the file at `variant`.
    pub fn swap(variant: &Path, place: PathBuf) -> anyhow::Result<Self> {
        let original = std::fs::read(&place).with_context(|| format!("cannot read {}", place.display()))?;
        std::fs::copy(variant, &place).with_context(|| format!("cannot copy {}", variant.display()))?;
        Ok(Self { place, original })
    }

    /// Puts the original back.
    pub fn restore(self) -> anyhow::Result<()> {
        std::fs::write(&self.place, &self.original).with_context(|| format!("cannot write {}", self.place.display()))
    }
}

fn echo(arguments: &[&str]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|argument| process::quoted(argument)).collect();
    format!("pintail {}", quoted.join(" "))
}

/// Returns the first integer under the name `name`, however deep, so that the frame around the rows does not matter.
fn integer_named(name: &str, value: &Value) -> Option<i64> {
    match value {
        Value::Object(fields) => fields
            .get(name)
            .and_then(Value::as_i64)
            .or_else(|| fields.values().find_map(|inner| integer_named(name, inner))),
        Value::Array(items) => items.iter().find_map(|inner| integer_named(name, inner)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_echoed_as_typed() {
        assert_eq!(echo(&["query", "--at", "7", "FROM flights"]), "pintail query --at 7 'FROM flights'");
    }

    #[test]
    fn a_number_is_found_in_any_frame_of_rows() {
        for text in [r#"[{"newest": 7}]"#, r#"{"rows": [{"newest": 7}]}"#, r#"{"newest": 7}"#] {
            assert_eq!(integer_named("newest", &serde_json::from_str(text).unwrap()), Some(7), "{text}");
        }
        assert_eq!(integer_named("newest", &serde_json::from_str(r#"[{"newest": null}]"#).unwrap()), None);
    }

    #[test]
    fn a_failing_program_ends_the_tour_unless_failing_is_the_point() {
        let folder = tempfile::tempdir().unwrap();
        let guide = Guide::new(PathBuf::from("false"), folder.path().to_path_buf());
        assert_eq!(
            guide.pintail(&["run"]).unwrap_err().to_string(),
            "the tour ends here: `pintail run` gave exit code 1"
        );
        guide.pintail_fails(&["run"]).unwrap();
        let guide = Guide::new(PathBuf::from("true"), folder.path().to_path_buf());
        assert_eq!(
            guide.pintail_fails(&["run"]).unwrap_err().to_string(),
            "the tour ends here: `pintail run` gave exit code 0, expected 1"
        );
    }

    #[test]
    fn a_swapped_file_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let [good, bad] = ["good.sql", "bad.sql"].map(|name| folder.path().join(name));
        std::fs::write(&good, "good").unwrap();
        std::fs::write(&bad, "bad").unwrap();
        let swapped = Swapped::swap(&bad, good.clone()).unwrap();
        assert_eq!(std::fs::read_to_string(&good).unwrap(), "bad");
        swapped.restore().unwrap();
        assert_eq!(std::fs::read_to_string(&good).unwrap(), "good");
    }
}
