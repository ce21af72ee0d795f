//! SHA-256 of a file, read in pieces.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::Context as _;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of the file at `path` in lower-case hex.
pub fn of_file(path: &Path) -> anyhow::Result<String> {
    let cannot_read = || format!("cannot read {}", path.display());
    let mut file = File::open(path).with_context(cannot_read)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut buffer).with_context(cannot_read)?;
        if length == 0 {
            break;
        }
        hasher.update(&buffer[..length]);
    }
    let mut hex = String::with_capacity(64);
    for byte in hasher.finalize() {
        write!(hex, "{byte:02x}").expect("writing to a String never fails");
    }
    Ok(hex)
}
