//! Which machines the fetched files run on.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// Fails with a sentence unless the fetched files run on `os` and `arch` (as `std::env::consts` names them).
pub fn require_supported(os: &str, arch: &str) -> anyhow::Result<()> {
    if (os, arch) == ("linux", "x86_64") {
        return Ok(());
    }
    bail!("Pintail is built for Linux on x86_64 only, for now; this machine is {os} on {arch}")
}

/// Sets the executable bits of the file at `path`.
pub fn make_executable(path: &Path) -> anyhow::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", path.display()))
}
