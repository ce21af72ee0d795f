//! Backfills: what one would do, how one ended, and how the jobs stand.

use pintail_core::plan::backfill::JobState;
use pintail_runner::duration_text;
use pintail_runner::pintail::{BackfillInfo, BackfillPlan, BackfillSummary, Estimate, UnwrittenUpstream};
use pintail_store::BackfillPartition;
use serde_json::{Value, json};

use super::table::{Align, listing};
use super::text::{count, moment, rfc3339, thousands};

/// Returns the word for where a job stands.
pub fn state_word(state: JobState) -> &'static str {
    match state {
        JobState::Running => "running",
        JobState::Done => "done",
        JobState::Failed => "failed",
        JobState::Cancelled => "stopped",
    }
}

/// Returns `3 partitions to make, 2 up to date`.
pub fn to_make(plan: &BackfillPlan) -> String {
    let skipped = match plan.up_to_date {
        0 => String::new(),
        number => format!(", {} up to date", thousands(number)),
    };
    format!("{} to make{skipped}", partitions(plan.total))
}

fn partitions(number: u64) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), "partition")
}

/// Returns what a backfill would do: first, last, count, the first few, and how long it may take.
pub fn plan_text(plan: &BackfillPlan) -> String {
    let (first, last) = (plan.ranges.first(), plan.ranges.last());
    let ends = first.zip(last).map(|(first, last)| format!("{first} … {last}")).unwrap_or_default();
    let mut text = format!("{}: {}, {ends}\n\n", plan.script, to_make(plan));
    for partition in &plan.first {
        text.push_str(&format!("  {partition}\n"));
    }
    let more = plan.total.saturating_sub(plan.first.len() as u64);
    if 0 < more {
        text.push_str(&format!("  … {} more\n", thousands(more)));
    }
    text.push_str(&format!("\n{}\n", estimate(plan.estimate.as_ref())));
    text
}

fn estimate(estimate: Option<&Estimate>) -> String {
    match estimate {
        None => "no estimate: it has written nothing here yet".to_owned(),
        Some(estimate) => format!(
            "about {}: {} each by the median of the last {}, {} at once",
            duration_text(estimate.total),
            duration_text(estimate.each),
            estimate.samples,
            estimate.at_once
        ),
    }
}

/// Returns what is missing upstream.
pub fn unwritten(upstream: &UnwrittenUpstream) -> String {
    match upstream.partitions {
        None => format!("`{}`, which it reads, was never written", upstream.script),
        Some(1) => format!("1 partition of `{}`, which it reads, was never written", upstream.script),
        Some(number) => {
            format!("{} partitions of `{}`, which it reads, were never written", thousands(number), upstream.script)
        }
    }
}

/// Returns the command that asked for the plan.
pub fn command(plan: &BackfillPlan) -> String {
    format!("pintail backfill {} {}", plan.script, plan.request_text()).trim_end().to_owned()
}

/// Returns the last line of a job: `backfill 3 failed: 23 done, 2 failed in 3.1 s`.
pub fn end(summary: &BackfillSummary, paint: impl Fn(&str) -> String) -> String {
    let word = match summary.state {
        JobState::Cancelled => "was stopped",
        state => state_word(state),
    };
    let counts = summary.counts;
    let numbers = [(counts.done, "done"), (counts.failed, "failed"), (counts.open(summary.total), "left")];
    let numbers: Vec<String> = numbers
        .into_iter()
        .filter(|(number, _)| 0 < *number)
        .map(|(number, word)| format!("{} {word}", thousands(number)))
        .collect();
    format!("backfill {} {}: {} in {}", summary.id, paint(word), numbers.join(", "), duration_text(summary.elapsed))
}

/// Returns the jobs, a line each.
pub fn listing_of(jobs: &[BackfillInfo]) -> String {
    let columns = [
        ("job", Align::Right),
        ("script", Align::Left),
        ("state", Align::Left),
        ("done", Align::Right),
        ("failed", Align::Right),
        ("of", Align::Right),
        ("began (UTC)", Align::Left),
        ("asked for", Align::Left),
    ];
    let row = |info: &BackfillInfo| {
        let job = &info.backfill.job;
        vec![
            info.backfill.id.to_string(),
            job.script.to_string(),
            standing(info).to_owned(),
            thousands(info.counts.done),
            thousands(info.counts.failed),
            thousands(job.total),
            moment(job.created),
            job.request.clone(),
        ]
    };
    listing(&columns, jobs.iter().map(row).collect())
}

fn standing(info: &BackfillInfo) -> &'static str {
    match (info.is_interrupted, info.backfill.is_stopping) {
        (true, _) => "interrupted",
        (false, true) => "stopping",
        (false, false) => state_word(info.backfill.state),
    }
}

/// Returns all that is known of a job.
pub fn job_text(info: &BackfillInfo, failed: &[BackfillPartition]) -> String {
    let (backfill, counts) = (&info.backfill, info.counts);
    let job = &backfill.job;
    let mut text = format!("backfill {} of {}: {}\n\n", backfill.id, job.script, standing(info));
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:<11}{value}\n"));
    let ends = job.ranges.first().zip(job.ranges.last()).map(|(first, last)| format!(", {first} … {last}"));
    line("partitions", format!("{}{}", thousands(job.total), ends.unwrap_or_default()));
    line("asked for", if job.request.is_empty() { "everything".to_owned() } else { job.request.clone() });
    line("began", format!("{} UTC", moment(job.created)));
    if let Some(finished) = backfill.finished {
        line("ended", format!("{} UTC", moment(finished)));
    }
    if let Some(error) = &backfill.error {
        line("because", error.clone());
    }
    let numbers = [
        (counts.done, "done"),
        (counts.failed, "failed"),
        (counts.running, "running"),
        (counts.cancelled, "stopped"),
        (counts.queued(job.total), "queued"),
    ];
    let numbers = numbers.into_iter().filter(|(number, _)| 0 < *number);
    let numbers: Vec<String> = numbers.map(|(number, word)| format!("{} {word}", thousands(number))).collect();
    line("now", numbers.join(", "));
    if !failed.is_empty() {
        let columns = [("failed", Align::Left), ("run", Align::Left), ("why", Align::Left)];
        let row = |part: &BackfillPartition| {
            let run = part.run.as_ref().map_or("-", |run| run.as_str());
            let why = part.error.as_deref().unwrap_or("-").lines().next().unwrap_or_default();
            vec![part.partition.to_string(), run.to_owned(), why.to_owned()]
        };
        text.push_str(&format!("\n{}", listing(&columns, failed.iter().map(row).collect())));
        let more = counts.failed.saturating_sub(failed.len() as u64);
        if 0 < more {
            text.push_str(&format!("… {} more\n", thousands(more)));
        }
    }
    text
}

/// Returns a plan for machines.
pub fn plan_json(plan: &BackfillPlan) -> Value {
    json!({
        "script": plan.script.as_str(),
        "partitions": plan.total,
        "up_to_date": plan.up_to_date,
        "ranges": plan.ranges.as_slice().iter().map(|range| json!({"first": range.first.as_str(), "last": range.last.as_str()}))
            .collect::<Vec<_>>(),
        "first": plan.first.iter().map(|key| key.as_str()).collect::<Vec<_>>(),
        "estimate": plan.estimate.map(|estimate| json!({
            "seconds": estimate.total.as_secs_f64(),
            "seconds_each": estimate.each.as_secs_f64(),
            "samples": estimate.samples,
            "at_once": estimate.at_once,
        })),
        "unwritten_upstream": plan.unwritten.iter()
            .map(|upstream| json!({"script": upstream.script.as_str(), "partitions": upstream.partitions}))
            .collect::<Vec<_>>(),
        "interrupted": plan.interrupted.iter().map(|id| id.0).collect::<Vec<_>>(),
    })
}

/// Returns a job for machines.
pub fn job_json(info: &BackfillInfo) -> Value {
    let (backfill, counts) = (&info.backfill, info.counts);
    let job = &backfill.job;
    json!({
        "backfill": backfill.id.0,
        "script": job.script.as_str(),
        "asset": job.asset.as_ref().map(|asset| asset.as_str()),
        "state": standing(info),
        "asked_for": job.request,
        "upstream": job.options.upstream,
        "force": job.options.force,
        "concurrency": job.options.concurrency,
        "partitions": job.total,
        "done": counts.done,
        "failed": counts.failed,
        "running": counts.running,
        "stopped": counts.cancelled,
        "queued": counts.queued(job.total),
        "began": rfc3339(job.created),
        "ended": backfill.finished.map(rfc3339),
        "reason": backfill.error,
    })
}

/// Returns a partition of a job for machines.
pub fn partition_json(part: &BackfillPartition) -> Value {
    json!({
        "partition": part.partition.as_str(),
        "run": part.run.as_ref().map(|run| run.as_str()),
        "error": part.error,
    })
}

/// Returns the end of a job for machines.
pub fn summary_json(summary: &BackfillSummary) -> Value {
    json!({
        "event": "backfill_finished",
        "backfill": summary.id.0,
        "state": state_word(summary.state),
        "partitions": summary.total,
        "done": summary.counts.done,
        "failed": summary.counts.failed,
        "left": summary.counts.open(summary.total),
        "reason": summary.reason,
        "failures": summary.failures.iter().map(partition_json).collect::<Vec<_>>(),
        "seconds": summary.elapsed.as_secs_f64(),
    })
}
