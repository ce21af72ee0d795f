//! Begins a job or goes on with one, shows what happens, and says what is left.

use pintail_core::plan::backfill::JobState;
use pintail_runner::pintail::{BackfillEvent, BackfillPlan, BackfillRange, BackfillRequest, BackfillSummary};
use pintail_runner::{Pintail, RunnerError};
use pintail_store::BackfillId;
use serde_json::json;

use super::{BackfillArgs, JobArgs};
use crate::app::App;
use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;
use crate::render::backfill;
use crate::render::plan::step_name;
use crate::render::text::{count, thousands};
use crate::render::{diagnostics, findings};
use crate::terminal::Style;

/// Begins a job.
pub fn run(args: &BackfillArgs, app: &App) -> Result<Exit, Failure> {
    let pintail = app.open_for_question()?;
    let text = args.script.as_deref().unwrap_or_default();
    let name = pintail.find_script(text)?.name().to_string();
    stop_at_errors(&pintail, &name, args.upstream, app)?;
    let plan = pintail.plan_backfill(&BackfillRequest {
        range: BackfillRange {
            script: name.clone(),
            from: args.from.clone(),
            to: args.to.clone(),
            missing: args.missing,
            failed: args.failed,
            stale: args.stale,
            upstream: args.upstream,
            keys: None,
        },
        force: args.force,
        concurrency: args.concurrency,
    })?;
    if args.dry_run {
        show_plan(&plan, app);
        return Ok(Exit::Ok);
    }
    if plan.total == 0 {
        say_nothing_to_do(&plan, app);
        return Ok(Exit::Ok);
    }
    if !app.terminal.is_json {
        app.terminal.talk(&backfill::to_make(&plan));
        say_besides(&plan, app);
    }
    work(&pintail, app, |tell| pintail.start_backfill(&plan, tell))
}

/// Goes on with a job.
pub fn resume(job: &JobArgs, app: &App) -> Result<Exit, Failure> {
    let (pintail, id) = open_job(job, app)?;
    work(&pintail, app, |tell| pintail.resume_backfill(id, tell))
}

/// Does what failed of a job once more.
pub fn retry(job: &JobArgs, app: &App) -> Result<Exit, Failure> {
    let (pintail, id) = open_job(job, app)?;
    work(&pintail, app, |tell| pintail.retry_backfill(id, tell))
}

fn open_job(job: &JobArgs, app: &App) -> Result<(Pintail, BackfillId), Failure> {
    let pintail = app.open_for_question()?;
    let id = job.resolve(&pintail)?;
    let stored = pintail.backfill(id)?.backfill.job;
    let name = pintail.find_script(stored.script.as_str())?.name().to_string();
    stop_at_errors(&pintail, &name, stored.options.upstream, app)?;
    Ok((pintail, id))
}

fn stop_at_errors(pintail: &Pintail, script: &str, upstream: bool, app: &App) -> Result<(), Failure> {
    let select = SelectArgs::of(&if upstream { format!("+{script}") } else { script.to_owned() });
    app.stop_at_errors(pintail.project(), &select)
}

fn show_plan(plan: &BackfillPlan, app: &App) {
    if app.terminal.is_json {
        app.terminal.json(&backfill::plan_json(plan));
        return;
    }
    if plan.total == 0 {
        return say_nothing_to_do(plan, app);
    }
    app.terminal.data(&backfill::plan_text(plan));
    say_besides(plan, app);
}

/// Says what else there is to know: upstream partitions that are missing, jobs that were left.
fn say_besides(plan: &BackfillPlan, app: &App) {
    for unwritten in &plan.unwritten {
        app.terminal.warning(&backfill::unwritten(unwritten));
    }
    if !plan.unwritten.is_empty() {
        app.terminal.hint(&format!("`{} --upstream` makes them first", backfill::command(plan)));
    }
    for id in &plan.interrupted {
        app.terminal
            .hint(&format!("backfill {id} of it was interrupted: `pintail backfill resume {id}` goes on with it"));
    }
}

fn say_nothing_to_do(plan: &BackfillPlan, app: &App) {
    if app.terminal.is_json {
        app.terminal.json_line(&json!({"event": "nothing_to_do", "up_to_date": plan.up_to_date}));
        return;
    }
    let why = match plan.up_to_date {
        0 => format!("no partition of `{}` is in what was asked for", plan.script),
        1 => "1 partition is up to date".to_owned(),
        number => format!("{} partitions are up to date", thousands(number)),
    };
    app.terminal.data(&format!("nothing to do: {why}\n"));
}

/// Does a job by `work`, shows what happens, and returns the exit code.
fn work(
    pintail: &Pintail,
    app: &App,
    work: impl FnOnce(&mut dyn FnMut(BackfillEvent)) -> Result<BackfillSummary, RunnerError>,
) -> Result<Exit, Failure> {
    let mut progress = Progress::of_job(&app.terminal);
    interrupt::listen(pintail.cancel(), progress.drawing())?;
    let result = work(&mut |event| progress.see_job(event));
    progress.end_job();
    let summary = result?;
    if app.terminal.is_json {
        app.terminal.json_line(&backfill::summary_json(&summary));
    } else {
        show_end(pintail, &summary, &progress, app);
    }
    Ok(if summary.state == JobState::Done { Exit::Ok } else { Exit::Failed })
}

fn show_end(pintail: &Pintail, summary: &BackfillSummary, progress: &Progress<'_>, app: &App) {
    let terminal = &app.terminal;
    let steps = progress.steps();
    findings::notes(steps, &progress.ended).iter().for_each(|note| terminal.talk(&format!("note: {note}")));
    let warnings = findings::warnings(steps, &progress.ended);
    warnings.iter().for_each(|warning| terminal.warning(warning));
    let failures = findings::failures(steps, &progress.ended);
    for (step, failure) in failures.shown {
        let script = pintail.project().script(&step.name);
        let source = script.map(|script| (script.file.source.path.as_str(), script.file.source.text.as_str()));
        terminal.talk(&diagnostics::step_failure(failure, &step_name(step), source, terminal.colors_talk()));
    }
    failures.more.iter().for_each(|more| terminal.error(more));
    let style = if summary.state == JobState::Done { Style::Good } else { Style::Error };
    terminal.data(&format!("{}\n", backfill::end(summary, |word| terminal.paint_data(style, word))));
    if let Some(reason) = &summary.reason {
        terminal.warning(&format!("it ended early: {reason}"));
    }
    if !warnings.is_empty() {
        terminal.hint("`pintail show last` has the rows that the tests of the last run warn of");
    }
    let id = summary.id;
    if 0 < summary.counts.failed {
        let failed = count(usize::try_from(summary.counts.failed).unwrap_or(usize::MAX), "partition");
        terminal.hint(&format!(
            "`pintail backfill show {id}` names what failed, `pintail backfill retry {id}` does the {failed} once more"
        ));
    }
    if 0 < summary.counts.open(summary.total) {
        terminal.hint(&format!("what is written stays written; `pintail backfill resume {id}` does what is left"));
    }
}
