//! `setup`: puts every file of `native.toml` into `vendor/`, checked by its hash.
//!
//! A file is unpacked into a scratch folder inside `vendor/`, checked, and only then renamed to its place: what stands
//! in `vendor/` is whole and right, whenever the machine stopped. A second run reads sizes and times only. Files of the
//! engine come from the folder `PINTAIL_NATIVE_DIR` when it is set, under the same check; all else comes through the
//! registries' own clients, so that their mirrors, proxies and caches are honoured.

mod fetch;
mod hash;
mod manifest;
mod platform;
mod stamps;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

pub use manifest::{Manifest, Package, Registry, Set};

use crate::repository::Repository;
use manifest::NativeFile;
use stamps::Stamps;

/// The environment variable that names a folder with libduckdb.so and the extensions.
const NATIVE_DIR: &str = "PINTAIL_NATIVE_DIR";

/// Whether files that are already in place are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Talk {
    All,
    ChangesOnly,
}

/// Fetches what building, running and the demo need, and lists every file.
pub fn setup(repository: &Repository) -> anyhow::Result<()> {
    Installation::prepare(repository, Talk::All)?.install(|package| package.set != Set::Tools)
}

/// Fetches what is missing of `sets`, silent about what is there.
pub fn ensure(repository: &Repository, sets: &[Set]) -> anyhow::Result<()> {
    Installation::prepare(repository, Talk::ChangesOnly)?.install(|package| sets.contains(&package.set))
}

/// Returns the program `name`: the installed one, or else the one that the manifest pins, fetched when it is missing.
pub fn tool(repository: &Repository, name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(installed) = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|place| place.is_file())
    {
        return Ok(installed);
    }
    let is_it = |package: &Package| package.files.iter().any(|file| file.executable && file.name == name);
    Installation::prepare(repository, Talk::ChangesOnly)?.install(is_it)?;
    Ok(repository.vendor().join("tools").join(name))
}

/// Returns the place of the file `name` of the manifest, fetched when it is missing.
pub fn file(repository: &Repository, name: &str) -> anyhow::Result<PathBuf> {
    let manifest = Manifest::read();
    let file = manifest.packages.iter().flat_map(|package| &package.files).find(|file| file.name == name);
    let file = file.with_context(|| format!("native.toml has no file {name}"))?;
    let has_it = |package: &Package| package.files.iter().any(|file| file.name == name);
    Installation::prepare(repository, Talk::ChangesOnly)?.install(has_it)?;
    Ok(repository.vendor().join(&file.to))
}

/// Everything that one run of `setup` knows.
struct Installation {
    vendor: PathBuf,
    native_dir: Option<PathBuf>,
    talk: Talk,
}

impl Installation {
    fn prepare(repository: &Repository, talk: Talk) -> anyhow::Result<Self> {
        platform::require_supported(std::env::consts::OS, std::env::consts::ARCH)?;
        let native_dir = std::env::var_os(NATIVE_DIR).filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(Self { vendor: repository.vendor(), native_dir, talk })
    }

    fn install(&self, is_wanted: impl Fn(&Package) -> bool) -> anyhow::Result<()> {
        let manifest = Manifest::read();
        let mut stamps = Stamps::load(&self.vendor);
        for package in manifest.packages.iter().filter(|package| is_wanted(package)) {
            self.install_package(package, &mut stamps)?;
        }
        Ok(())
    }

    fn install_package(&self, package: &Package, stamps: &mut Stamps) -> anyhow::Result<()> {
        let mut missing = Vec::new();
        for file in &package.files {
            if stamps.fits(file)? {
                self.say_in_place(file);
            } else {
                missing.push(file);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let scratch = Scratch::create(&self.vendor)?;
        match &self.native_dir {
            Some(folder) if package.set == Set::Engine => {
                for file in missing {
                    let found = find_in_native_dir(folder, file)?;
                    let copy = scratch.path().join(file.file_name());
                    fs::copy(&found, &copy).with_context(|| format!("cannot copy {}", found.display()))?;
                    self.publish(package, file, &copy, &found.display().to_string(), stamps)?;
                }
            }
            _ => {
                let archive = fetch::download(package, scratch.path()).with_context(|| cannot_fetch(package))?;
                for file in missing {
                    let unpacked = fetch::unpack(&archive, file, scratch.path())?;
                    self.publish(package, file, &unpacked, &package.spec(), stamps)?;
                }
            }
        }
        Ok(())
    }

    /// Checks `candidate` and renames it into place.
    fn publish(
        &self,
        package: &Package,
        file: &NativeFile,
        candidate: &Path,
        origin: &str,
        stamps: &mut Stamps,
    ) -> anyhow::Result<()> {
        let found = hash::of_file(candidate)?;
        if found != file.sha256 {
            bail!(
                "{} from {origin} is not the file that Pintail is built for (version {})\n  \
                 expected sha256 {}\n  found    sha256 {found}",
                file.name,
                package.version,
                file.sha256,
            );
        }
        if file.executable {
            platform::make_executable(candidate)?;
        }
        let place = self.vendor.join(&file.to);
        let folder = place.parent().expect("every file of the manifest lies in a folder of vendor/");
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::rename(candidate, &place).with_context(|| format!("cannot write {}", place.display()))?;
        stamps.record(file)?;
        println!("new {} {} from {origin}", file.name, package.version);
        Ok(())
    }

    fn say_in_place(&self, file: &NativeFile) {
        if self.talk == Talk::All {
            println!("ok  {}", file.name);
        }
    }
}

/// Finds `file` in the folder of `PINTAIL_NATIVE_DIR`, flat or with `extensions/` as in `vendor/duckdb`.
fn find_in_native_dir(folder: &Path, file: &NativeFile) -> anyhow::Result<PathBuf> {
    let places = [folder.join(file.file_name()), folder.join("extensions").join(file.file_name())];
    let Some(found) = places.iter().find(|place| place.is_file()) else {
        bail!(
            "{NATIVE_DIR} is {}, but {} is not in it; copy it there, or unset {NATIVE_DIR} to fetch it",
            folder.display(),
            file.file_name(),
        );
    };
    Ok(found.clone())
}

fn cannot_fetch(package: &Package) -> String {
    let way_out = match package.set {
        Set::Engine => format!(
            "without a network, set {NATIVE_DIR} to a folder that holds libduckdb.so and the *.duckdb_extension files"
        ),
        Set::Data => "the data is needed by the demo and its test; run `cargo xtask setup` again with a network".into(),
        Set::Tools => "without a network, install it yourself, so that it is on PATH".into(),
    };
    format!("cannot fetch {} by {}; {way_out}", package.spec(), package.registry.client())
}

/// A folder inside `vendor/`, so that renames out of it stay on one file system; removed on drop.
struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn create(vendor: &Path) -> anyhow::Result<Self> {
        let path = vendor.join(format!(".scratch-{}", std::process::id()));
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("cannot clear {}", path.display()))?;
        }
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { path })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is ignored by git and by the next run.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests;
