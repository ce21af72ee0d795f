//! Looks after jobs that have begun: lists them, shows one, stops one.

use pintail_core::plan::backfill::PartitionState;
use pintail_runner::pintail::CancelledBackfill;
use serde_json::json;

use super::JobArgs;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::backfill;

/// How many failed partitions are shown of a job.
const SHOWN_FAILURES: u32 = 50;

/// Lists the newest jobs.
pub fn list(limit: u32, app: &App) -> Result<Exit, Failure> {
    let jobs = app.open_for_question()?.backfills(limit)?;
    if app.terminal.is_json {
        app.terminal.json(&json!({"backfills": jobs.iter().map(backfill::job_json).collect::<Vec<_>>()}));
        return Ok(Exit::Ok);
    }
    if jobs.is_empty() {
        app.terminal.data("there was no backfill yet\n");
        return Ok(Exit::Ok);
    }
    app.terminal.data(&backfill::listing_of(&jobs));
    app.terminal.hint("`pintail backfill show <job>` tells all of one, `pintail backfill show last` of the newest");
    Ok(Exit::Ok)
}

/// Shows where the partitions of a job stand.
pub fn show(job: &JobArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let info = pintail.backfill(job.resolve(&pintail)?)?;
    let id = info.backfill.id;
    let failed = pintail.backfill_partitions_in(id, PartitionState::Failed, SHOWN_FAILURES)?;
    if app.terminal.is_json {
        let mut value = backfill::job_json(&info);
        value["failures"] = failed.iter().map(backfill::partition_json).collect();
        app.terminal.json(&value);
        return Ok(Exit::Ok);
    }
    app.terminal.data(&backfill::job_text(&info, &failed));
    let is_over = info.is_interrupted || info.backfill.finished.is_some();
    if is_over && 0 < info.counts.open(info.backfill.job.total) {
        app.terminal.hint(&format!("`pintail backfill resume {id}` does what is left"));
    }
    if is_over && 0 < info.counts.failed {
        app.terminal.hint(&format!("`pintail backfill retry {id}` does what failed once more"));
    }
    Ok(Exit::Ok)
}

/// Stops a job.
pub fn cancel(job: &JobArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let id = job.resolve(&pintail)?;
    let (word, sentence) = match pintail.cancel_backfill(id)? {
        CancelledBackfill::Asked => {
            ("asked", "its process was asked to stop; it rolls back what is not committed".to_owned())
        }
        CancelledBackfill::Cancelled => ("cancelled", "cancelled; its process was dead".to_owned()),
        CancelledBackfill::HadEnded(state) => {
            ("had_ended", format!("had ended before: {}", backfill::state_word(state)))
        }
    };
    if app.terminal.is_json {
        app.terminal.json(&json!({"backfill": id.0, "result": word}));
        return Ok(Exit::Ok);
    }
    app.terminal.data(&format!("backfill {id}: {sentence}\n"));
    if word != "had_ended" {
        app.terminal.hint(&format!("`pintail backfill resume {id}` goes on with it"));
    }
    Ok(Exit::Ok)
}
