//! Finds and reads the files of a project.
//!
//! Invariant: the same files give the same project in the same order, on every machine; a file that cannot be read is a
//! diagnostic and nothing else is lost. `.gitignore` files of the project are honoured, also outside a git repository;
//! those above its root are not, since a project may well lie in a folder that a repository ignores.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use pintail_core::diagnostic::{Code, Diagnostic};
use pintail_core::id::{ScriptHash, ScriptName};
use pintail_core::source::{Language, SourceFile};
use sha2::{Digest, Sha256};

use super::config::Config;
use super::decode::{CONFIG_FILE, ConfigSource, read_config};
use super::environment::Environment;

const SCRIPTS: &str = "pipelines";
const TESTS: &str = "tests";
const MACROS: &str = "macros";

/// Folders of a project without `pipelines/` that are not looked into for scripts.
const OTHER_FOLDERS: [&str; 3] = ["hooks", "node_modules", "target"];

/// Where the scripts of a project are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Below `pipelines/`.
    Folder,
    /// Anywhere in a project without `pipelines/`, save in the folders of other things.
    Root,
}

impl Layout {
    fn of(root: &Path) -> Self {
        if root.join(SCRIPTS).is_dir() { Layout::Folder } else { Layout::Root }
    }

    /// Returns whether files below the entry `name` of the root can belong to the project.
    fn looks_into(self, name: &str) -> bool {
        match self {
            Layout::Folder => [SCRIPTS, TESTS, MACROS].contains(&name),
            Layout::Root => !OTHER_FOLDERS.contains(&name),
        }
    }

    /// Returns the part of `path` below the scripts' folder; `None` when no script can be there.
    fn below_scripts(self, path: &str) -> Option<&str> {
        match self {
            Layout::Folder => below(SCRIPTS, path),
            Layout::Root => Some(path).filter(|path| below(TESTS, path).is_none() && below(MACROS, path).is_none()),
        }
    }
}

/// Returns the part of `path` below `folder`.
fn below<'p>(folder: &str, path: &'p str) -> Option<&'p str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// Everything that a project says, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Project {
    /// The root folder.
    pub root: PathBuf,
    /// `pintail.toml`, as it was read; `None` when there is none.
    pub config_file: Option<SourceFile>,
    /// The configuration with the selected profile.
    pub config: Config,
    /// Scripts, by name.
    pub scripts: Vec<ScriptFile>,
    /// Test scripts, by path.
    pub tests: Vec<TestFile>,
    /// Files of DuckDB macros, by path.
    pub macros: Vec<SourceFile>,
    /// What is wrong with the configuration and the files.
    pub diagnostics: Vec<Diagnostic>,
}

/// One script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFile {
    /// The path below the scripts' folder without its extension.
    pub name: ScriptName,
    /// The language, from the extension.
    pub language: Language,
    /// Path and text, without a byte order mark.
    pub source: SourceFile,
    /// SHA-256 of the text with line ends as `\n`.
    pub hash: ScriptHash,
}

/// One test script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFile {
    /// The path below `tests/` without its extension.
    pub name: String,
    /// Path and text.
    pub source: SourceFile,
    /// SHA-256 of the text with line ends as `\n`.
    pub hash: ScriptHash,
}

/// Returns the nearest folder from `start` upwards that holds `pintail.toml` or `pipelines/`.
pub fn find_root(start: &Path) -> Option<PathBuf> {
    let is_root = |folder: &&Path| folder.join(CONFIG_FILE).is_file() || folder.join(SCRIPTS).is_dir();
    start.ancestors().find(is_root).map(Path::to_owned)
}

/// Reads the project in `root` with the selected profile and the environment that `${NAME}` refers to.
pub fn load_project(root: &Path, profile: Option<&str>, environment: &Environment) -> Project {
    let mut loader = Loader { root, diagnostics: Vec::new() };
    let config_file = loader.read_config_file();
    let source = ConfigSource { root, profile, environment };
    let (config, found) = read_config(config_file.as_ref().map(|file| file.text.as_str()), &source);
    loader.diagnostics.extend(found);
    let layout = Layout::of(root);
    let paths = loader.list(layout);
    let scripts = loader.read_scripts(layout, &paths);
    let tests = loader.read_tests(&paths);
    let macros = loader.read_sql(MACROS, &paths);
    Project { root: root.to_owned(), config_file, config, scripts, tests, macros, diagnostics: loader.diagnostics }
}

/// Reads files and collects what goes wrong.
struct Loader<'a> {
    root: &'a Path,
    diagnostics: Vec<Diagnostic>,
}

impl Loader<'_> {
    fn read_config_file(&mut self) -> Option<SourceFile> {
        let exists = self.root.join(CONFIG_FILE).exists();
        if exists { self.read(CONFIG_FILE.to_owned()) } else { None }
    }

    fn read_scripts(&mut self, layout: Layout, paths: &[String]) -> Vec<ScriptFile> {
        let mut by_name: BTreeMap<ScriptName, ScriptFile> = BTreeMap::new();
        for path in paths {
            let Some((language, name)) = layout.below_scripts(path).and_then(script_name) else { continue };
            if let Some(first) = by_name.get(&name) {
                let message = format!("two scripts have the name `{name}`: {} and {path}", first.source.path);
                let found = Diagnostic::new(Code::DUPLICATE_SCRIPT, path, None, message);
                self.diagnostics.push(found.with_help("rename one of the two files"));
                continue;
            }
            let Some(source) = self.read(path.clone()) else { continue };
            let hash = hash_of(&source.text);
            by_name.insert(name.clone(), ScriptFile { name, language, source, hash });
        }
        if by_name.is_empty() {
            let found = Diagnostic::new(Code::NO_SCRIPTS, "", None, "no scripts found");
            self.diagnostics.push(found.with_help("put one into `pipelines/`, such as `pipelines/orders.sql`"));
        }
        by_name.into_values().collect()
    }

    fn read_tests(&mut self, paths: &[String]) -> Vec<TestFile> {
        let named = |source: SourceFile| {
            let name = below(TESTS, &source.path).and_then(|below| below.strip_suffix(".sql"));
            let name = name.expect("the file was chosen by its folder and ending").to_owned();
            let hash = hash_of(&source.text);
            TestFile { name, source, hash }
        };
        self.read_sql(TESTS, paths).into_iter().map(named).collect()
    }

    /// Reads the `.sql` files below `folder`.
    fn read_sql(&mut self, folder: &str, paths: &[String]) -> Vec<SourceFile> {
        let chosen = paths.iter().filter(|path| below(folder, path).is_some_and(|below| below.ends_with(".sql")));
        chosen.filter_map(|path| self.read(path.clone())).collect()
    }

    /// Returns the files that can belong to the project, relative to the root with `/`, sorted; hidden and ignored ones
    /// are left out.
    fn list(&mut self, layout: Layout) -> Vec<String> {
        let walk = WalkBuilder::new(self.root)
            .parents(false)
            .require_git(false)
            .git_global(false)
            .git_exclude(false)
            .ignore(false)
            .filter_entry(move |entry| {
                entry.depth() != 1 || entry.file_name().to_str().is_none_or(|name| layout.looks_into(name))
            })
            .build();
        let mut paths = Vec::new();
        for entry in walk {
            match entry {
                Ok(entry) if entry.file_type().is_some_and(|kind| !kind.is_dir()) => {
                    paths.extend(self.relative(entry.path()));
                }
                Ok(_) => {}
                Err(error) => {
                    let message = format!("the project cannot be listed: {error}");
                    self.diagnostics.push(Diagnostic::new(Code::UNREADABLE_FILE, "", None, message));
                }
            }
        }
        paths.sort();
        paths
    }

    /// Returns the path below the root with `/`; a path that is not UTF-8 is noted.
    fn relative(&mut self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(self.root).expect("a walk stays below its root");
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        if parts.is_none() {
            let shown = below.to_string_lossy().into_owned();
            self.diagnostics.push(Diagnostic::new(Code::NOT_UTF8, shown, None, "the file's name is not UTF-8"));
        }
        parts.map(|parts| parts.join("/"))
    }

    /// Reads one file; one that cannot be read, or is not UTF-8, is noted.
    fn read(&mut self, path: String) -> Option<SourceFile> {
        match read_text(&self.root.join(&path)) {
            Ok(text) => Some(SourceFile { path, text }),
            Err(ReadProblem::Io(error)) => {
                self.diagnostics.push(Diagnostic::new(
                    Code::UNREADABLE_FILE,
                    path,
                    None,
                    format!("cannot be read: {error}"),
                ));
                None
            }
            Err(ReadProblem::NotUtf8 { line }) => {
                let message = format!("is not UTF-8: the first bad byte is in line {line}");
                let found = Diagnostic::new(Code::NOT_UTF8, path, None, message);
                self.diagnostics.push(found.with_help("save the file as UTF-8"));
                None
            }
        }
    }
}

enum ReadProblem {
    Io(io::Error),
    NotUtf8 { line: usize },
}

/// Reads a text without its byte order mark.
fn read_text(path: &Path) -> Result<String, ReadProblem> {
    let bytes = fs::read(path).map_err(ReadProblem::Io)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        ReadProblem::NotUtf8 { line: 1 + good.iter().filter(|byte| **byte == b'\n').count() }
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Returns the language and the name of the script at `path` below the scripts' folder; `None` for another file.
fn script_name(path: &str) -> Option<(Language, ScriptName)> {
    let (parent, file_name) = path.rsplit_once('/').unwrap_or(("", path));
    let (language, stem) = Language::of_file_name(file_name)?;
    let name = if parent.is_empty() { stem.to_owned() } else { format!("{parent}/{stem}") };
    Some((language, ScriptName(name)))
}

fn hash_of(text: &str) -> ScriptHash {
    let digest = Sha256::digest(text.replace("\r\n", "\n").as_bytes());
    ScriptHash(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
