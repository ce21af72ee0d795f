//! `adopt`: takes over a table that something else made, in a commit that changes no row.

use clap::Args;
use serde_json::json;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::text::thousands;

/// What to take over.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail adopt orders
  pintail adopt ducklake://main/events --partition 'year(ts), month(ts), day(ts)'

Pintail does not write over a table that it does not know. After this, the script that names the
table writes it like any other.")]
pub struct AdoptArgs {
    /// The asset, or a table of the default lake
    asset: String,
    /// Partition keys for files written from now on, such as `year(ts), month(ts)` or a column
    #[arg(long, value_name = "EXPRESSIONS")]
    partition: Option<String>,
}

/// Runs the command.
pub fn run(args: &AdoptArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let adopted = pintail.adopt(&args.asset, args.partition.as_deref())?;
    let partition: Vec<String> = adopted
        .table
        .partition
        .iter()
        .map(|(column, transform)| match transform.as_str() {
            "identity" => column.clone(),
            transform => format!("{transform}({column})"),
        })
        .collect();
    if app.terminal.is_json {
        app.terminal.json(&json!({
            "asset": adopted.asset.to_string(),
            "snapshot": adopted.snapshot.0,
            "rows": adopted.rows,
            "partition": partition,
        }));
        return Ok(Exit::Ok);
    }
    app.terminal.data(&format!(
        "adopted {} with {} rows in snapshot {}\n",
        adopted.asset,
        thousands(adopted.rows),
        adopted.snapshot
    ));
    if !partition.is_empty() {
        app.terminal.data(&format!("its files are partitioned by {}\n", partition.join(", ")));
    }
    Ok(Exit::Ok)
}
