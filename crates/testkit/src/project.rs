//! A project in a temporary folder, made from one string.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that is gone when the value is.
#[derive(Debug)]
pub struct Project {
    folder: TempDir,
    root: PathBuf,
}

impl Project {
    /// Makes a folder with the files of `text`: each begins with a line `//- /path`.
    pub fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let root = folder.path().canonicalize().expect("the folder was just made");
        let project = Self { folder, root };
        for (path, content) in files(text) {
            project.write(path, &content);
        }
        project
    }

    /// Makes an empty folder.
    pub fn empty() -> Self {
        Self::new("")
    }

    /// Returns the folder.
    pub fn root(&self) -> &Path {
        debug_assert!(self.folder.path().exists(), "the folder lives as long as the value");
        &self.root
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, path: &str, text: &str) {
        let place = self.place(path);
        fs::create_dir_all(place.parent().expect("a file lies in a folder")).expect("folders can be made");
        fs::write(place, text).expect("the file can be written");
    }

    /// Replaces `from`, which must be there, in a file.
    pub fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} does not hold {from:?}");
        self.write(path, &text.replace(from, to));
    }

    /// Returns the text of a file.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.place(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Returns whether there is a file or folder.
    pub fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Returns the place of a file of the project.
    pub fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// Splits a fixture at its `//- /path` lines.
fn files(text: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("//- "), files.last_mut()) {
            (Some(path), _) => files.push((path.trim(), String::new())),
            (None, Some((_, content))) => {
                content.push_str(line);
                content.push('\n');
            }
            (None, None) => assert!(line.trim().is_empty(), "a fixture begins with `//- /path`, not with {line:?}"),
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::Project;

    #[test]
    fn every_file_of_a_fixture_is_written() {
        let project = Project::new("\n//- /pipelines/a.sql\nSELECT 1\n\nFROM b\n//- /pintail.toml\n");
        assert_eq!(project.read("pipelines/a.sql"), "SELECT 1\n\nFROM b\n");
        assert_eq!(project.read("pintail.toml"), "");
        assert!(!project.exists("tests"));
    }
}
