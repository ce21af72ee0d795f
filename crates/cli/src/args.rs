//! The command line's grammar: the options that every command has, and the list of commands.
//!
//! The options of one command stand in its own file; groups that several share stand here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands;
use crate::failure::Failure;

/// Versioned, incremental lake tables from a folder of annotated SQL.
#[derive(Debug, Parser)]
#[command(
    name = "pintail",
    version,
    max_term_width = 100,
    after_help = "\
A first project:
  pintail init shop && cd shop
  pintail check                          finds mistakes, reads no data
  pintail plan                           what would be done, and why
  pintail run                            does exactly that
  pintail query 'FROM example'           add --at <snapshot> to read an older version

Scripts write lake tables (ducklake://), Postgres tables (datatable://, also from .pg.sql) and Parquet files (s3://, volume://).

Exit codes:
  0 ok, 1 failed steps or tests, 2 usage, 3 errors in the project, 4 something is missing or broken"
)]
pub struct Cli {
    /// The options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The options that every command has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Globals {
    /// The project's folder; otherwise the nearest one upwards with pintail.toml or pipelines/
    #[arg(long, global = true, value_name = "DIR")]
    pub project: Option<PathBuf>,
    /// The profile of pintail.toml to use; otherwise PINTAIL_PROFILE
    #[arg(long, global = true, value_name = "NAME")]
    pub profile: Option<String>,
    /// Another value for a variable of `[vars]`; may be repeated
    #[arg(long = "var", global = true, value_name = "NAME=VALUE")]
    pub vars: Vec<String>,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// When to use colour: always, never, or auto: in a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", hide_possible_values = true)]
    pub color: ColorChoice,
    /// Say more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// When output has colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// In a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands, in the order in which a person meets them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a new project
    Init(commands::init::InitArgs),
    /// Make a new script from a scaffold
    New(commands::new::NewArgs),
    /// Find mistakes in the project without reading data
    Check(commands::check::CheckArgs),
    /// Show what a run would do, and why
    Plan(commands::plan::PlanCommand),
    /// Show the state of every slice, and why
    Status(commands::status::StatusArgs),
    /// Do what is due
    Run(commands::run::RunArgs),
    /// Make partitions of one script, as a job that can be resumed
    Backfill(commands::backfill::BackfillArgs),
    /// Show what a script's query gives, without writing it
    Preview(commands::preview::PreviewArgs),
    /// Ask the lakes something
    Query(commands::query::QueryArgs),
    /// List scripts, or what a selection means
    List(commands::list::ListArgs),
    /// Show everything that is known of a script, an asset or a run
    Show(commands::show::ShowArgs),
    /// Show which script needs which, and why
    Graph(commands::graph::GraphArgs),
    /// List the versions of an asset, or the last runs
    History(commands::history::HistoryArgs),
    /// Show what changed between two versions of an asset
    Diff(commands::diff::DiffArgs),
    /// Bring an older version of an asset back, as a new version
    Rollback(commands::rollback::RollbackArgs),
    /// Compute a past run again and compare
    Replay(commands::replay::ReplayArgs),
    /// Hold a snapshot of a lake, so that it stays readable
    Pin(commands::pins::PinArgs),
    /// Let a pin go
    Unpin(commands::pins::UnpinArgs),
    /// List the pins, who holds them and why
    Pins(commands::pins::PinsArgs),
    /// Take events in: CloudEvents over HTTP, NATS and Kafka, or from files
    Ingest(commands::ingest::IngestArgs),
    /// Show what could not be taken in, and try it again
    Deadletter(commands::deadletter::DeadletterArgs),
    /// Check every invariant of a lake: files, rows, stamps, pins, consumers
    Audit(commands::audit::AuditArgs),
    /// Look at a lake as a whole
    Lake(commands::lake::LakeArgs),
    /// Merge small files, expire what nobody needs, and delete its files
    Maintain(commands::maintain::MaintainArgs),
    /// Consume change feeds: decode what has come, look, reset, replay
    Consume(commands::consume::ConsumeArgs),
    /// Run the data tests on what is committed
    Test(commands::test::TestArgs),
    /// Take over a table that something else made
    Adopt(commands::adopt::AdoptArgs),
    /// Look after the metadata store
    State(commands::state::StateArgs),
    /// Say what is found where, and what is missing
    Doctor(commands::doctor::DoctorArgs),
    /// Explain a diagnostic code
    Explain(commands::explain::ExplainArgs),
    /// Print the completions of a shell
    Completions(commands::completions::CompletionsArgs),
}

/// Which scripts.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectArgs {
    /// Scripts by name, glob, folder, asset, tag:…, owner:… or state (stale, failed, missing, partial, fresh); `+x` adds
    /// what x needs, `x+` what needs x
    #[arg(short, long, value_name = "SELECTION", num_args = 1..)]
    select: Vec<String>,
    /// Leave these out
    #[arg(long, value_name = "SELECTION", num_args = 1..)]
    exclude: Vec<String>,
}

impl SelectArgs {
    /// Returns the selection of `text`.
    pub fn of(text: &str) -> Self {
        Self { select: vec![text.to_owned()], exclude: Vec::new() }
    }

    /// Returns the same exclusion with another selection.
    pub fn with(&self, words: &[String]) -> Self {
        Self { select: words.to_vec(), exclude: self.exclude.clone() }
    }

    /// Returns whether nothing was given, which means everything.
    pub fn is_empty(&self) -> bool {
        self.select.is_empty() && self.exclude.is_empty()
    }

    /// Returns the selection; several words are a union.
    pub fn select(&self) -> Option<String> {
        joined(&self.select)
    }

    /// Returns the exclusion.
    pub fn exclude(&self) -> Option<String> {
        joined(&self.exclude)
    }
}

fn joined(words: &[String]) -> Option<String> {
    Some(words.join(" ")).filter(|_| !words.is_empty())
}

/// What is to be planned.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanArgs {
    /// Which scripts.
    #[command(flatten)]
    pub select: SelectArgs,
    /// The partition of the partitioned scripts; otherwise the last one that has closed
    #[arg(short, long, value_name = "PARTITION")]
    pub partition: Option<String>,
    /// JSON, or @FILE, in which scripts with `partitioned dynamic key=$.…` find their partition
    #[arg(long, value_name = "JSON", conflicts_with = "partition")]
    pub payload: Option<String>,
    /// Also do what is up to date
    #[arg(long)]
    pub force: bool,
    /// Write merge and append targets anew
    #[arg(long)]
    pub full_refresh: bool,
    /// All steps in one transaction: readers see the whole new state or nothing of it, and every test gates all of it
    #[arg(long)]
    pub atomic: bool,
}

impl PlanArgs {
    /// Returns the request for the planner.
    pub fn request(&self) -> Result<pintail_runner::pintail::PlanRequest, Failure> {
        Ok(pintail_runner::pintail::PlanRequest {
            select: self.select.select(),
            exclude: self.select.exclude(),
            partition: self.partition.clone(),
            payload: self.payload.as_deref().map(read_payload).transpose()?,
            force: self.force,
            full_refresh: self.full_refresh,
            atomic: self.atomic,
            backfill: None,
        })
    }
}

/// Returns a payload, which `@` takes from a file.
fn read_payload(text: &str) -> Result<String, Failure> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("`--payload @{path}`: {error}")))
}
