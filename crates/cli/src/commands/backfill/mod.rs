//! `backfill`: durable jobs that make partitions of one script, each with a state of its own.
//!
//! Not here: what a job does (runner); this says what was asked, what happens and what is left.

mod begin;
mod jobs;

use std::num::NonZeroU32;

use clap::{Args, Subcommand};
use pintail_store::BackfillId;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to make, or which job to look after.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    subcommand_help_heading = "Jobs",
    after_help = "\
Examples:
  pintail backfill flights_daily --from 2013-01-01 --to 2013-02-01   January: it stops before --to
  pintail backfill flights_daily --from 2013-01 --to 2013-02         the same
  pintail backfill flights_daily --missing                           all that should exist
  pintail backfill flights_daily --failed --stale                    what failed or is out of date
  pintail backfill flights_daily --missing --dry-run                 which, and how long it may take
  pintail backfill resume 3                                          goes on with a job where it was

Each partition is written, tested and recorded by itself; small ones may share a commit. A job that
was stopped, by a crash or by Ctrl-C, is resumed where it was; a retry does only what failed. Exit
code 1 when something failed or is left."
)]
pub struct BackfillArgs {
    /// The partitioned script, or the asset that it writes
    #[arg(required = true)]
    script: Option<String>,
    /// The first partition; otherwise that of `start=`
    #[arg(long, value_name = "PARTITION")]
    from: Option<String>,
    /// The partition to stop before; otherwise after the last one that has closed
    #[arg(long, value_name = "PARTITION")]
    to: Option<String>,
    /// Only partitions that were never written
    #[arg(long)]
    missing: bool,
    /// Only partitions that failed last time
    #[arg(long)]
    failed: bool,
    /// Only partitions that are older than the script or what it reads
    #[arg(long)]
    stale: bool,
    /// What the script reads, too, before it
    #[arg(long)]
    upstream: bool,
    /// Also make what is up to date
    #[arg(long)]
    force: bool,
    /// Partitions at once; otherwise `[run] slots`
    #[arg(long, value_name = "N")]
    concurrency: Option<NonZeroU32>,
    /// Show which partitions, how many and how long it may take, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// What to do with a job.
    #[command(subcommand)]
    job: Option<JobCommand>,
}

/// What can be done with a job that has begun.
#[derive(Debug, Subcommand)]
enum JobCommand {
    /// List the newest jobs
    List {
        /// How many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        limit: u32,
    },
    /// Show where the partitions of a job stand, and why some failed
    Show(JobArgs),
    /// Go on with a job where it was
    Resume(JobArgs),
    /// Do the partitions of a job once more that failed, and no others
    Retry(JobArgs),
    /// Stop a job; what is done stays done
    Cancel(JobArgs),
}

/// Which job.
#[derive(Debug, Args)]
struct JobArgs {
    /// The job's number, or `last`
    #[arg(value_name = "JOB")]
    id: String,
}

/// Runs the command.
pub fn run(args: &BackfillArgs, app: &App) -> Result<Exit, Failure> {
    let Some(command) = &args.job else { return begin::run(args, app) };
    match command {
        JobCommand::List { limit } => jobs::list(*limit, app),
        JobCommand::Show(job) => jobs::show(job, app),
        JobCommand::Resume(job) => begin::resume(job, app),
        JobCommand::Retry(job) => begin::retry(job, app),
        JobCommand::Cancel(job) => jobs::cancel(job, app),
    }
}

impl JobArgs {
    /// Returns the job that is meant.
    fn resolve(&self, pintail: &pintail_runner::Pintail) -> Result<BackfillId, Failure> {
        if self.id == "last" {
            let newest = pintail.backfills(1)?;
            let newest = newest.first().ok_or_else(|| Failure::usage("there was no backfill yet"))?;
            return Ok(newest.backfill.id);
        }
        let number = self.id.parse::<i64>().map(BackfillId);
        number.map_err(|_| {
            Failure::usage(format!("`{}` is no job: expected its number, or `last`", self.id))
                .with_hint("`pintail backfill list` lists the jobs")
        })
    }
}
