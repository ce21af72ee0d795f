//! `query`: asks the lakes something, now or at a snapshot; nothing can be changed by it.

use std::io::Read as _;

use clap::Args;
use pintail_core::id::SnapshotId;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::render::result;
use crate::render::text::count;

/// What to ask.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail query 'FROM orders'                    names without a lake are of the lake `main`
  pintail query --at 7 'FROM orders'             as it was at snapshot 7: `pintail history orders`
  pintail query --csv 'FROM orders' > orders.csv
  echo 'SELECT count(*) FROM orders' | pintail query -

In SQL the lake `main` is `lake`, every other one has its own name. Each is attached read-only.")]
pub struct QueryArgs {
    /// The query; `-` reads it from stdin
    sql: String,
    /// Read the default lake as of this snapshot
    #[arg(long, value_name = "SNAPSHOT")]
    at: Option<i64>,
    /// Show at most so many rows
    #[arg(long, value_name = "ROWS")]
    limit: Option<u64>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// Runs the command.
pub fn run(args: &QueryArgs, app: &App) -> Result<Exit, Failure> {
    let sql = match args.sql.as_str() {
        "-" => read_stdin()?,
        sql => sql.to_owned(),
    };
    let sql = sql.trim().trim_end_matches(';');
    if sql.is_empty() {
        return Err(Failure::usage("there is no query").with_hint("give it as text, or on stdin with `-`"));
    }
    let pintail = app.open_for_reading()?;
    interrupt::listen(pintail.cancel(), None)?;
    let answer = pintail
        .query(sql, args.at.map(SnapshotId), args.limit)
        .map_err(|error| Failure::from(error).in_file("query", sql));
    let has_lake = !pintail.existing_lakes()?.is_empty();
    if answer.is_err() && !has_lake {
        return Err(Failure::usage("there is no lake to ask yet").with_hint("`pintail run` makes it"));
    }
    let answer = answer?;
    show(&answer, args.csv, app)?;
    Ok(Exit::Ok)
}

fn read_stdin() -> Result<String, Failure> {
    let mut sql = String::new();
    std::io::stdin()
        .read_to_string(&mut sql)
        .map_err(|error| Failure::usage(format!("could not read the query from stdin: {error}")))?;
    Ok(sql)
}

/// Shows rows.
pub fn show(answer: &pintail_engine::result::ResultSet, as_csv: bool, app: &App) -> Result<(), Failure> {
    let terminal = &app.terminal;
    if terminal.is_json {
        terminal.json(&result::json_rows(answer)?);
        return Ok(());
    }
    if as_csv {
        terminal.data(&result::csv(answer)?);
        return Ok(());
    }
    let drawn = result::draw(answer, terminal.width, terminal.colors_data())?;
    terminal.data(&drawn.text);
    terminal.talk(&format!("({})", count(answer.row_count(), "row")));
    if 0 < drawn.hidden_columns {
        let columns = count(drawn.hidden_columns, "column");
        terminal.hint(&format!("{columns} did not fit; `--csv` and `--json` show all"));
    }
    Ok(())
}
