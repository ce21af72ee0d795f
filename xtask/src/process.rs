//! Starting other programs: run one and see its output, or capture it, with errors that say what to install.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, IsTerminal as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, anyhow, bail};

use crate::repository::Repository;

/// Returns a `cargo` command in the repository.
pub fn cargo(repository: &Repository) -> Command {
    in_repository(repository, Path::new("cargo"))
}

/// Returns a command that runs `program` in the repository.
///
/// RUSTFLAGS would replace the `rustflags` of `.cargo/config.toml`, and with them the path where libduckdb is found.
pub fn in_repository(repository: &Repository, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(repository.root()).env_remove("RUSTFLAGS");
    command
}

/// Runs `command` with its output shown and fails unless it succeeds.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    succeeded(command, status)
}

/// Runs `command` and returns what it printed to stdout; what it printed to stderr goes into the error.
pub fn capture(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        let talk = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed:\n{}", shown(command), last_lines(&talk, 12));
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not UTF-8", shown(command)))
}

/// Runs `command` with its output shown and returns the last line of its stderr for which `wanted` holds.
pub fn run_and_keep_line(command: &mut Command, wanted: fn(&str) -> bool) -> anyhow::Result<Option<String>> {
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(|error| not_started(command, &error))?;
    let stderr = child.stderr.take().expect("stderr was piped one line above");
    let mut kept = None;
    for line in BufReader::new(stderr).lines() {
        let line = line?;
        eprintln!("{line}");
        if wanted(&line) {
            kept = Some(line);
        }
    }
    let status = child.wait()?;
    succeeded(command, status)?;
    Ok(kept)
}

/// Returns whether people watch stderr, so that a program whose stderr is piped may still colour it.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns the command line as a person would type it.
pub fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        write!(text, " {}", quoted(&argument.to_string_lossy())).expect("writing to a String never fails");
    }
    text
}

/// Returns `argument` quoted for a shell when it needs it.
pub fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+@,%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else if argument.contains('\'') {
        format!("\"{}\"", argument.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$"))
    } else {
        format!("'{argument}'")
    }
}

fn succeeded(command: &Command, status: ExitStatus) -> anyhow::Result<()> {
    if status.success() {
        return Ok(());
    }
    bail!("`{}` ended with {status}", shown(command))
}

fn not_started(command: &Command, error: &io::Error) -> anyhow::Error {
    let program = command.get_program().to_string_lossy();
    if error.kind() != io::ErrorKind::NotFound {
        return anyhow!("cannot start `{program}`: {error}");
    }
    match package_of(&program) {
        Some(package) => anyhow!("`{program}` is not installed; on Debian or Ubuntu: apt-get install {package}"),
        None => anyhow!("`{program}` is not installed"),
    }
}

fn package_of(program: &str) -> Option<&'static str> {
    match program {
        "npm" => Some("npm"),
        "python3" => Some("python3 python3-pip"),
        "tar" => Some("tar"),
        "git" => Some("git"),
        _ => None,
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_a_shell_takes_them() {
        let mut command = Command::new("pintail");
        command.args(["query", "--at", "7", "SELECT 1", "SELECT 'a'", ""]);
        assert_eq!(shown(&command), r#"pintail query --at 7 'SELECT 1' "SELECT 'a'" ''"#);
    }

    #[test]
    fn a_missing_program_names_the_package() {
        let error = run(&mut Command::new("no-such-program-here")).unwrap_err();
        assert_eq!(error.to_string(), "`no-such-program-here` is not installed");
        let missing = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(
            not_started(&Command::new("npm"), &missing).to_string(),
            "`npm` is not installed; on Debian or Ubuntu: apt-get install npm"
        );
    }

    #[test]
    fn a_failed_capture_shows_the_end_of_stderr() {
        let error = capture(Command::new("sh").args(["-c", "echo lost >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c 'echo lost >&2; exit 3'` failed:\nlost");
    }

    #[test]
    fn the_last_wanted_line_is_kept() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo Summary 1 >&2; echo Summary 2 >&2; echo end >&2"]);
        let kept = run_and_keep_line(&mut command, |line| line.starts_with("Summary")).unwrap();
        assert_eq!(kept.as_deref(), Some("Summary 2"));
    }
}
