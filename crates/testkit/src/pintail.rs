//! The built binary, run in a project's folder with an environment that is the same everywhere.

use std::ffi::OsStr;
use std::fmt;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::{env, thread};

use crate::normal::normalised;
use crate::project::Project;
use crate::waiting::wait_until;

/// A command line that has not been run yet.
#[derive(Debug)]
pub struct Pintail {
    command: Command,
    root: PathBuf,
    stdin: String,
}

/// What a command did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout, normalised.
    pub stdout: String,
    /// What it wrote to stderr, normalised.
    pub stderr: String,
    /// What it wrote to stdout, as it was.
    pub raw_stdout: String,
}

/// A command that is running.
#[derive(Debug)]
pub struct Running {
    child: Child,
    root: PathBuf,
    stderr: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

/// Returns `pintail` in the folder of `project`, without arguments.
pub fn pintail(project: &Project) -> Pintail {
    let mut command = Command::new(binary());
    command
        .current_dir(project.root())
        .env("NO_COLOR", "1")
        .env("COLUMNS", "120")
        .env_remove("RUST_BACKTRACE")
        .env_remove("PINTAIL_PROFILE")
        .env_remove("PINTAIL_FAULT")
        .env("TZ", "Asia/Kolkata");
    Pintail { command, root: project.root().to_owned(), stdin: String::new() }
}

/// The binary: as the test runner names it, or beside the test's own.
fn binary() -> PathBuf {
    let named = ["NEXTEST_BIN_EXE_pintail", "CARGO_BIN_EXE_pintail"].into_iter().find_map(env::var_os);
    named.map_or_else(
        || {
            let test = env::current_exe().expect("a test knows its own file");
            let folder = test.parent().and_then(Path::parent).expect("tests lie in target/<profile>/deps");
            folder.join("pintail")
        },
        PathBuf::from,
    )
}

impl Pintail {
    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Adds the words of `line`.
    pub fn words(self, line: &str) -> Self {
        self.args(line.split_whitespace())
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it in another folder of the project.
    pub fn in_folder(mut self, path: &str) -> Self {
        self.command.current_dir(self.root.join(path));
        self
    }

    /// Gives it `text` on stdin.
    pub fn stdin(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdin);
        self
    }

    /// Runs it behind shell commands, such as limits.
    pub fn behind(mut self, shell: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\"")]);
        command.arg(self.command.get_program()).args(self.command.get_args());
        if let Some(folder) = self.command.get_current_dir() {
            command.current_dir(folder);
        }
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.command = command;
        self
    }

    /// Asks for faults, such as `staged=kill`.
    pub fn fault(self, text: &str) -> Self {
        self.env("PINTAIL_FAULT", text)
    }

    /// Runs it to its end.
    pub fn run(self) -> Outcome {
        self.start().finish()
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.command));
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let text = self.stdin;
        // A program that does not read its stdin closes it; a long text must not block.
        thread::spawn(move || stdin.write_all(text.as_bytes()));
        let mut pipe = child.stderr.take().expect("stderr is a pipe");
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let said = stderr.clone();
        let reader = thread::spawn(move || {
            let mut buffer = [0_u8; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                said.lock().expect("no reader panics").extend_from_slice(&buffer[..length]);
            }
        });
        Running { child, root: self.root, stderr, reader }
    }
}

impl Running {
    /// Waits until the file at `path` exists.
    pub fn wait_for(&self, path: &Path) {
        wait_until(&format!("{} exists", path.display()), || path.exists());
    }

    /// Waits until stderr holds `text`.
    pub fn wait_for_talk(&self, text: &str) {
        wait_until(&format!("it says {text:?}"), || self.talk().contains(text));
    }

    /// Returns what it has written to stderr so far.
    pub fn talk(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().expect("no reader panics")).into_owned()
    }

    /// Returns the process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `INT`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "the process takes signals while it lives");
    }

    /// Waits for its end.
    pub fn finish(self) -> Outcome {
        let mut output = self.child.wait_with_output().expect("the process can be awaited");
        self.reader.join().expect("no reader panics");
        output.stderr = std::mem::take(&mut self.stderr.lock().expect("no reader panics"));
        Outcome::of(&output, &self.root)
    }
}

impl Outcome {
    fn of(output: &Output, root: &Path) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let raw_stdout = text(&output.stdout);
        Self {
            code: output.status.code(),
            stdout: normalised(&raw_stdout, root),
            stderr: normalised(&text(&output.stderr), root),
            raw_stdout,
        }
    }

    /// Fails with all output unless it ended with `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Fails with all output unless it succeeded.
    #[track_caller]
    pub fn expect_ok(self) -> Self {
        self.expect_code(0)
    }
}

impl fmt::Display for Outcome {
    /// Everything that a person would see, and the exit code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit code {code}")?,
            None => writeln!(f, "ended by a signal")?,
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "--- {name}\n{text}")?;
            }
        }
        Ok(())
    }
}
