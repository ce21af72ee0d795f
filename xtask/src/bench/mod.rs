//! `bench`: Pintail beside hand-sent SQL, on the same lake and in the same minute.
//!
//! A benchmark has two sides. They are measured in turn (ours, plain, ours, plain, …), so that whatever else the
//! machine does falls on both, and the table shows medians and their ratio. Nothing is asserted: a slow machine is no
//! failed test. One file per benchmark, one line in `BENCHMARKS`; the plain side of a benchmark that writes a lake is
//! the engine's example `plain`, so that both sides load the same library.

mod backfill;
mod catalogs;
mod decode;
mod graph;
mod ingest;
mod lake;
mod measure;
mod memory;
mod scaling;
mod scripts;
mod start;
mod table;
mod upkeep;
mod versions;
mod writes;

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::process;
use crate::repository::Repository;
use crate::setup::{self, Set};
use measure::{Outcome, Sides};

/// One benchmark.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    prepare: fn(&Bench) -> anyhow::Result<Sides>,
}

/// The benchmarks in the order in which they run.
const BENCHMARKS: &[Benchmark] = &[
    start::BENCHMARK,
    scripts::LIST,
    scripts::CHECK,
    scripts::PLAN,
    graph::HUNDRED,
    graph::HUNDRED_ATOMIC,
    graph::HUNDRED_AGAIN,
    graph::UNCHANGED,
    writes::REPLACE,
    writes::MERGE,
    writes::IF_CHANGED,
    versions::ROLLBACK,
    versions::DIFF,
];

/// One that has no plain side, and writes a report of its own.
struct Report {
    name: &'static str,
    about: &'static str,
    report: fn(&Bench) -> anyhow::Result<String>,
}

/// The reports in the order in which they run, after the benchmarks.
const REPORTS: &[Report] = &[
    Report {
        name: "backfill-365",
        about: "time per partition of a backfill of 365 days, first to last, by phase",
        report: backfill::report,
    },
    Report {
        name: "backfill-scaling",
        about: "a backfill of 48 partitions at concurrency 1, 2 and 4",
        report: scaling::report,
    },
    Report {
        name: "catalog-latency",
        about: "small commands with the catalog in a SQLite file and in a Postgres on this machine",
        report: catalogs::report,
    },
    Report {
        name: "ingest-http",
        about: "durable events of 1 KB over 1, 16 and 128 connections, beside a bare append with the same grouping",
        report: ingest::http,
    },
    Report {
        name: "ingest-sink",
        about: "200,000 events into the lake, beside a plain INSERT … SELECT of the same rows",
        report: ingest::sink,
    },
    Report {
        name: "maintain-10k-files",
        about: "upkeep of a table with 10,000 small files, beside the same merge by hand",
        report: upkeep::report,
    },
    Report {
        name: "decode",
        about: "raw events to signals and what is newest, by phase, beside a plain INSERT of the decoded rows",
        report: decode::report,
    },
    Report {
        name: "consume-passes",
        about: "2,000 small passes of a consumer one after the other, beside a plain INSERT of the decoded rows",
        report: decode::passes,
    },
    Report {
        name: "merge-20m-512mb",
        about: "a merge of 20 million rows with a memory limit of 512 MB: time and peak resident size",
        report: memory::report,
    },
];

/// What every benchmark gets.
struct Bench<'r> {
    /// The checkout, for the servers that it can start.
    repository: &'r Repository,
    /// The release binary.
    pintail: PathBuf,
    /// The engine's example that sends SQL by hand.
    plain: PathBuf,
    /// Where the extensions are.
    extensions: PathBuf,
    /// Where projects are made.
    folder: PathBuf,
}

/// The arguments of `cargo xtask bench`.
#[derive(Args)]
pub struct BenchArguments {
    /// The benchmarks to run; all of them when none is named
    names: Vec<String>,
    /// Lists the benchmarks and runs none
    #[arg(long)]
    list: bool,
    /// How often each side is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// Builds the release binary and measures.
pub fn bench(repository: &Repository, arguments: &BenchArguments) -> anyhow::Result<()> {
    if arguments.list {
        for benchmark in BENCHMARKS {
            println!("{:<18} {}", benchmark.name, benchmark.about);
        }
        for report in REPORTS {
            println!("{:<18} {}", report.name, report.about);
        }
        return Ok(());
    }
    let (reports, named): (Vec<String>, Vec<String>) =
        arguments.names.iter().cloned().partition(|name| REPORTS.iter().any(|report| report.name == name));
    let is_everything = arguments.names.is_empty();
    let chosen = if is_everything || !named.is_empty() { choose(&named)? } else { Vec::new() };
    setup::ensure(repository, &[Set::Engine])?;
    process::run(process::cargo(repository).args(["build", "--release", "--workspace", "--bins", "--examples"]))?;
    let bench = Bench {
        repository,
        pintail: repository.pintail("release"),
        plain: repository.target().join("release/examples/plain"),
        extensions: repository.vendor().join("duckdb/extensions"),
        folder: repository.target().join("bench"),
    };
    let mut outcomes: Vec<Outcome> = Vec::new();
    for benchmark in chosen {
        eprintln!("{}: {}", benchmark.name, benchmark.about);
        outcomes.push(measure::interleaved(benchmark.name, arguments.rounds, (benchmark.prepare)(&bench)?)?);
    }
    if !outcomes.is_empty() {
        print!("{}", table::render(&outcomes));
    }
    for report in REPORTS.iter().filter(|report| is_everything || reports.iter().any(|name| name == report.name)) {
        eprintln!("{}: {}", report.name, report.about);
        print!("{}", (report.report)(&bench)?);
    }
    Ok(())
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Benchmark>> {
    if names.is_empty() {
        return Ok(BENCHMARKS.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        let Some(benchmark) = BENCHMARKS.iter().find(|benchmark| benchmark.name == name) else {
            let reports = REPORTS.iter().map(|report| report.name);
            let known: Vec<&str> = BENCHMARKS.iter().map(|benchmark| benchmark.name).chain(reports).collect();
            bail!("there is no benchmark `{name}`; there are: {}", known.join(", "));
        };
        chosen.push(benchmark);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_every_benchmark_and_an_unknown_one_lists_them() {
        assert_eq!(choose(&[]).unwrap().len(), BENCHMARKS.len());
        assert_eq!(choose(&["start".into()]).unwrap()[0].name, "start");
        let error = choose(&["strat".into()]).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("there is no benchmark `strat`; there are: start"), "{error}");
    }
}
