//! How long the binary takes to start without a lake, beside a process that does nothing.

use std::process::Command;

use super::measure::{Sides, time};
use super::{Bench, Benchmark};

/// `pintail --version` beside `true`: most of the difference is loading libduckdb.
pub const BENCHMARK: Benchmark =
    Benchmark { name: "start", about: "start of the binary without a lake, beside an empty process", prepare };

fn prepare(bench: &Bench) -> anyhow::Result<Sides> {
    let pintail = bench.pintail.clone();
    Ok(Sides {
        ours: Box::new(move || time(Command::new(&pintail).arg("--version"))),
        plain: Box::new(|| time(&mut Command::new("true"))),
    })
}
