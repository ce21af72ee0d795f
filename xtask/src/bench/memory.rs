//! A keyed merge of twenty million rows with 512 MB for DuckDB: whether it completes, and how much memory is resident at
//! most.
//!
//! There is no plain side: the question is whether the process stays below two gigabytes. The kernel keeps the largest
//! resident size of a process, so looking from time to time loses nothing but the last moment.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::Bench;
use super::lake::Project;

/// More resident memory than this is a failure.
const MOST: u64 = 2_000_000_000;

const CONFIG: &str = "[run]\nslots = 1\nmemory_limit = \"512MB\"\n";

const SOURCE: &str = "-- materialize ducklake://main/source
SELECT i AS id, i % 1000 AS customer, (i * 37 % 10007)::DECIMAL(12,2) AS amount, 'note ' || (i % 97) AS note
FROM range(20000000) t(i)
";

const MERGED: &str = "-- materialize ducklake://main/merged key=id
SELECT id, customer, amount * 2 AS amount, note FROM source
";

/// Writes the table, merges every row of it anew, and renders what that took.
pub fn report(bench: &Bench) -> anyhow::Result<String> {
    let project = Project::new(bench, "merge-20m")?;
    project.config(CONFIG)?;
    project.script("source", SOURCE)?;
    project.script("merged", MERGED)?;
    project.run(&["run"])?;
    let started = Instant::now();
    let mut merge = project.pintail(&["run", "--select", "merged", "--force"]);
    let child = merge.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("the merge did not start")?;
    let peak = watch(child)?;
    if MOST < peak {
        bail!("{} MB were resident, and {} MB may be", peak / 1_000_000, MOST / 1_000_000);
    }
    Ok(format!(
        "merge-20m-512mb: 20 million rows merged in {:.1} s, at most {} MB resident\n",
        started.elapsed().as_secs_f64(),
        peak / 1_000_000
    ))
}

/// Waits for the end of `child` and returns its largest resident size in bytes.
fn watch(mut child: Child) -> anyhow::Result<u64> {
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        peak = peak.max(peak_in(&status).unwrap_or(0));
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(peak),
            Some(status) => bail!("the merge failed: {status}"),
            None => thread::park_timeout(Duration::from_millis(20)),
        }
    }
}

/// Reads `VmHWM` of `/proc/<pid>/status`; a process that has ended has none.
fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(peak_in("Name:\tpintail\nVmHWM:\t  1500 kB\nVmRSS:\t 900 kB\n"), Some(1_536_000));
        assert_eq!(peak_in("Name:\tpintail\n"), None);
    }
}
