//! `native.toml` as values: which files are fetched, from which package, and their hashes.

use serde::Deserialize;

/// The whole of `native.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The packages in the order in which they are fetched.
    #[serde(rename = "package")]
    pub packages: Vec<Package>,
}

impl Manifest {
    /// Returns the manifest that this program was built with.
    pub fn read() -> Self {
        toml::from_str(include_str!("../../native.toml")).expect("a test parses native.toml")
    }
}

/// One archive of a registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Where the archive is published.
    pub registry: Registry,
    /// The package's name there.
    pub name: String,
    /// The exact version.
    pub version: String,
    /// Its licence, as an SPDX expression.
    pub licence: String,
    /// What it is needed for.
    pub set: Set,
    /// The version of Python whose archive is taken, where there is one for each.
    pub python: Option<String>,
    /// The files that are taken out of it.
    #[serde(rename = "file")]
    pub files: Vec<NativeFile>,
}

impl Package {
    /// Returns name and version as the registry's client takes them.
    pub fn spec(&self) -> String {
        match self.registry {
            Registry::Npm => format!("{}@{}", self.name, self.version),
            Registry::Pypi => format!("{}=={}", self.name, self.version),
        }
    }
}

/// A package registry, reached only through its own client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// JavaScript packages.
    Npm,
    /// Python packages.
    Pypi,
}

impl Registry {
    /// Returns the client's name for messages.
    pub fn client(self) -> &'static str {
        match self {
            Registry::Npm => "npm",
            Registry::Pypi => "pip",
        }
    }
}

/// What a file is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// The binary links or loads it.
    Engine,
    /// The demo reads it.
    Data,
    /// `cargo xtask` runs it, when it is not installed.
    Tools,
}

/// The member that stands for the archive itself.
pub const WHOLE_ARCHIVE: &str = ".";

/// One file and its place.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeFile {
    /// What messages call it.
    pub name: String,
    /// Its path inside the archive; [`WHOLE_ARCHIVE`] for the archive itself.
    pub member: String,
    /// When the member is a zip, the file inside that.
    pub inner: Option<String>,
    /// Its path under `vendor/`.
    pub to: String,
    /// SHA-256 of the file, in lower-case hex.
    pub sha256: String,
    /// Whether it is a program.
    #[serde(default)]
    pub executable: bool,
}

impl NativeFile {
    /// Returns the last part of the file's place.
    pub fn file_name(&self) -> &str {
        self.to.rsplit('/').next().unwrap_or(&self.to)
    }
}
