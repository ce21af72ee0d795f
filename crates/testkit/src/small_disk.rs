//! Disks that are full: a small file system of its own, or files that may not grow.

use std::path::Path;
use std::process::Command;

/// A file system of a few megabytes.
#[derive(Debug)]
pub struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts one; `None` where that is not allowed, and [`SMALL_FILES`] has to do.
    pub fn mount(megabytes: u32) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Makes it larger.
    pub fn grow(&self, megabytes: u32) {
        let options = format!("remount,size={megabytes}m");
        let grown = Command::new("mount")
            .args(["-o", &options])
            .arg(self.path())
            .status()
            .expect("whoever mounts can mount again");
        assert!(grown.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy"]).arg(self.path()).status();
    }
}

/// Limits the size of every file that a process writes: like a full disk, and possible for everyone. The signal that would
/// kill the process is ignored, so that it gets the error.
pub const SMALL_FILES: &str = "trap '' XFSZ; ulimit -S -f 8192";
