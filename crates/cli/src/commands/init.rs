//! `init`: makes a project that works: configuration, folders, and an example that can be run at once.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where to make it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail init                             in this folder
  pintail init shop                        in the folder shop
  pintail init shop --example quickstart   with three scripts that build on each other

Nothing that exists is overwritten. Data will lie in .pintail/, which git is told to ignore.")]
pub struct InitArgs {
    /// The folder; it is made when it does not exist
    #[arg(default_value = ".")]
    dir: PathBuf,
    /// The scripts to begin with
    #[arg(long, value_enum, default_value_t)]
    example: Example,
}

/// The examples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Example {
    /// One script and one test
    #[default]
    Small,
    /// Orders of a small shop: three scripts that build on each other
    Quickstart,
}

const IGNORED: &str = "/.pintail";

type NewFile = (&'static str, &'static str);

const SMALL: &[NewFile] = &[
    ("pipelines/example.sql", include_str!("scaffold/example.sql")),
    ("tests/example_lies_in_one_week.sql", include_str!("scaffold/example_test.sql")),
];

const QUICKSTART: &[NewFile] = &[
    ("pipelines/orders.sql", include_str!("../../../../examples/quickstart/pipelines/orders.sql")),
    ("pipelines/revenue_by_day.sql", include_str!("../../../../examples/quickstart/pipelines/revenue_by_day.sql")),
    ("pipelines/best_customers.sql", include_str!("../../../../examples/quickstart/pipelines/best_customers.sql")),
];

/// Runs the command.
pub fn run(args: &InitArgs, app: &App) -> Result<Exit, Failure> {
    let root = app.environment.current_dir.join(&args.dir);
    let example = match args.example {
        Example::Small => SMALL,
        Example::Quickstart => QUICKSTART,
    };
    let mut files: Vec<NewFile> = vec![("pintail.toml", include_str!("scaffold/pintail.toml"))];
    files.extend(example);
    let taken: Vec<&str> = files.iter().map(|(path, _)| *path).filter(|path| root.join(path).exists()).collect();
    if !taken.is_empty() {
        let message = format!("already there: {}; nothing was written", taken.join(", "));
        return Err(Failure::usage(message).with_hint("`pintail new` adds a script to a project"));
    }
    for (path, text) in &files {
        write_new(&root.join(path), text)?;
    }
    fs::create_dir_all(root.join("tests")).map_err(|error| cannot("create", &root.join("tests"), &error))?;
    let ignore = ignore_data(&root)?;
    let mut made: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    made.extend(ignore);
    if app.terminal.is_json {
        app.terminal.json(&json!({"root": root.display().to_string(), "made": made}));
        return Ok(Exit::Ok);
    }
    let is_here = args.dir == Path::new(".");
    for path in made {
        let place = if is_here { PathBuf::from(path) } else { args.dir.join(path) };
        app.terminal.data(&format!("made {}\n", place.display()));
    }
    let change = if is_here { String::new() } else { format!("cd {} && ", args.dir.display()) };
    app.terminal
        .hint(&format!("`{change}pintail run` writes the example; `pintail plan` says before what it would do"));
    Ok(Exit::Ok)
}

/// Lets git ignore the data, beside what a `.gitignore` says already.
fn ignore_data(root: &Path) -> Result<Option<&'static str>, Failure> {
    let path = root.join(".gitignore");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let is_ignored = |line: &str| line.trim().trim_matches('/') == IGNORED.trim_matches('/');
    if before.lines().any(is_ignored) {
        return Ok(None);
    }
    let separator = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let mut file =
        fs::OpenOptions::new().create(true).append(true).open(&path).map_err(|error| cannot("write", &path, &error))?;
    writeln!(file, "{separator}{IGNORED}").map_err(|error| cannot("write", &path, &error))?;
    Ok(Some(".gitignore"))
}

/// Writes a file that must not exist yet, and the folders above it.
pub fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
    }
    let file = fs::OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| cannot("write", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("could not {verb} {}: {error}", path.display()))
}
