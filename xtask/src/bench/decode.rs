//! Decoding end to end: raw events through a consumer into signals and what is newest, beside a plain INSERT … SELECT of
//! the rows that came of them, into a table of the same layout.
//!
//! Both sides are the example `decode` of the telemetry crate, since the plain one copies what the other has just decoded.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::Bench;

/// Events in a snapshot, with five signals each, and how many snapshots are consumed one after the other.
const SIZES: [(&str, &str); 2] = [("20000", "6"), ("100000", "4")];

/// Runs both sizes and renders the lines of each; the ratio is plain over ours, and 1 would be a decoder without cost.
pub fn report(bench: &Bench) -> anyhow::Result<String> {
    let program = bench.plain.with_file_name("decode");
    let mut text = String::new();
    for (events, snapshots) in SIZES {
        let folder = bench.folder.join("decode");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let output = Command::new(&program)
            .arg(&folder)
            .arg(&bench.extensions)
            .args([events, snapshots])
            .output()
            .with_context(|| format!("{} did not start", program.display()))?;
        if !output.status.success() {
            bail!("the benchmark failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        text += &format!("decode: {events} events a snapshot, seconds\n{}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(text)
}
