//! Where things are in the repository.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The checkout that this program was built from.
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// Finds the checkout: the folder above this crate.
    pub fn find() -> anyhow::Result<Self> {
        let manifest = env::var("CARGO_MANIFEST_DIR").context("this program is started by `cargo xtask`")?;
        let root = Path::new(&manifest).parent().context("the xtask crate lies in the repository")?;
        Ok(Self { root: root.to_path_buf() })
    }

    /// Returns the repository at `root`.
    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// Returns the top folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the ignored folder of fetched files.
    pub fn vendor(&self) -> PathBuf {
        self.root.join("vendor")
    }

    /// Returns cargo's target folder.
    pub fn target(&self) -> PathBuf {
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), |target| self.root.join(target))
    }

    /// Returns the place of the built `pintail` of a profile's folder (`debug` or `release`).
    pub fn pintail(&self, profile_folder: &str) -> PathBuf {
        self.target().join(profile_folder).join("pintail")
    }
}
