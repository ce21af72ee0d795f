//! `demo`: builds Pintail, makes a fresh copy of examples/flights, and walks through it in the terminal.
//!
//! The dev profile is used: the work is done by DuckDB, which is optimised either way. All targets are built, because
//! another command shape unifies features differently, and the tests would build DuckDB's bindings once more. What the tour shows and says is in `tour`; here are the copy and the guide that runs and echoes commands.

mod guide;
mod tour;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;

use crate::process;
use crate::repository::Repository;
use crate::setup::{self, Set};
use guide::Guide;

/// Builds, copies the example, and gives the tour.
pub fn demo(repository: &Repository) -> anyhow::Result<()> {
    setup::ensure(repository, &[Set::Engine, Set::Data])?;
    eprintln!("Building Pintail; the first time takes some minutes.");
    process::run(process::cargo(repository).args(["build", "--workspace", "--all-targets"]))?;
    let project = fresh_copy(repository)?;

    let started = Instant::now();
    let guide = Guide::new(repository.pintail("debug"), project.clone());
    tour::tour(&guide, &repository.root().join("examples/flights/broken"))?;

    println!(
        "\nThat took {:.0} seconds. The project is yours to try: {}",
        started.elapsed().as_secs_f64(),
        project.display()
    );
    Ok(())
}

/// Copies examples/flights into the target folder, without what an earlier demo left, and links the data.
fn fresh_copy(repository: &Repository) -> anyhow::Result<PathBuf> {
    let project = repository.target().join("demo").join("flights");
    if project.exists() {
        fs::remove_dir_all(&project).with_context(|| format!("cannot clear {}", project.display()))?;
    }
    copy_folder(&repository.root().join("examples/flights"), &project)?;
    let data = repository.vendor().join("data/nycflights13");
    symlink(&data, project.join("data")).with_context(|| format!("cannot link {}", data.display()))?;
    Ok(project)
}

/// Copies the files of a project; lakes, stores and links that someone made inside the example stay behind.
fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let name = entry.file_name();
        if kind.is_symlink() || name == ".pintail" || name == "data" {
            continue;
        }
        if kind.is_dir() {
            copy_folder(&entry.path(), &to.join(&name))?;
        } else {
            fs::copy(entry.path(), to.join(&name))
                .with_context(|| format!("cannot copy {}", entry.path().display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_leaves_lakes_and_data_behind() {
        let from = tempfile::tempdir().unwrap();
        let to = tempfile::tempdir().unwrap();
        for folder in ["pipelines/raw", ".pintail", "data"] {
            fs::create_dir_all(from.path().join(folder)).unwrap();
        }
        fs::write(from.path().join("pipelines/raw/a.sql"), "SELECT 1").unwrap();
        fs::write(from.path().join(".pintail/store.sqlite"), "").unwrap();
        fs::write(from.path().join("data/flights.csv"), "").unwrap();

        copy_folder(from.path(), to.path()).unwrap();

        assert_eq!(fs::read_to_string(to.path().join("pipelines/raw/a.sql")).unwrap(), "SELECT 1");
        assert!(!to.path().join(".pintail").exists());
        assert!(!to.path().join("data").exists());
    }
}
