//! The text files of the repository, as git lists them.

use std::collections::BTreeMap;
use std::fs;

use anyhow::Context as _;

use crate::process;
use crate::repository::Repository;

/// Every text file that git tracks or would track, by its path with `/`.
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository; files that are not UTF-8 and files that were just deleted are left out.
    pub fn read(repository: &Repository) -> anyhow::Result<Self> {
        let listed = process::capture(std::process::Command::new("git").current_dir(repository.root()).args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ]))?;
        let mut files = BTreeMap::new();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            let place = repository.root().join(path);
            if !place.is_file() {
                continue;
            }
            let bytes = fs::read(&place).with_context(|| format!("cannot read {path}"))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.insert(path.to_owned(), text);
            }
        }
        Ok(Self { files })
    }

    /// Returns the text of the file at `path`.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns every file as path and text, in order of paths.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the Rust files of the crates and of this program.
    pub fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files()
            .filter(|(path, _)| path.ends_with(".rs") && (path.starts_with("crates/") || path.starts_with("xtask/")))
    }

    /// Returns whether `path` is a file or a folder of the repository.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// Returns the tree of these files.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect() }
    }
}
