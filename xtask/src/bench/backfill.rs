//! A backfill of 365 daily partitions: whether a partition costs at the end what it cost at the beginning, and which
//! phases it consists of.
//!
//! There is no plain side: the question is whether the time per partition stays flat.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::Bench;
use super::lake::Project;

/// How many partitions each end of the table is the mean of.
const END: usize = 30;

/// Runs the backfill and renders its report.
pub fn report(bench: &Bench) -> anyhow::Result<String> {
    let project = Project::new(bench, "backfill")?;
    project.script(
        "events",
        "-- materialize ducklake://main/events\n\
         SELECT TIMESTAMPTZ '2025-01-01 00:00:00+00' + to_minutes(i) AS happened_at, i % 97 AS kind, i AS id\n\
         FROM range(525600) t(i)\n",
    )?;
    project.script(
        "daily",
        "-- partitioned daily by=happened_at start=2025-01-01\n\
         -- materialize ducklake://main/daily\n\
         -- test not_null id\n\
         -- test unique id\n\
         SELECT * FROM events WHERE in_partition(happened_at)\n",
    )?;
    project.run(&["run", "--select", "events"])?;
    let output = project
        .pintail(&["--json", "backfill", "daily", "--from", "2025-01-01", "--to", "2026-01-01", "--force"])
        .output()
        .context("the backfill did not start")?;
    if !output.status.success() {
        bail!("the backfill failed: {}", String::from_utf8_lossy(&output.stdout));
    }
    let steps: Vec<Step> = String::from_utf8_lossy(&output.stdout).lines().filter_map(Step::read).collect();
    Ok(render(&steps))
}

/// One partition's times, in seconds.
struct Step {
    total: f64,
    phases: BTreeMap<String, f64>,
}

impl Step {
    fn read(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        if event["event"] != "step_finished" {
            return None;
        }
        let phases = event["phases"].as_array()?.iter();
        Some(Self {
            total: event["seconds"].as_f64()?,
            phases: phases
                .filter_map(|phase| Some((phase["phase"].as_str()?.to_owned(), phase["seconds"].as_f64()?)))
                .collect(),
        })
    }
}

fn render(steps: &[Step]) -> String {
    let end = END.min(steps.len());
    let (first, last) = (&steps[..end], &steps[steps.len() - end..]);
    let mut text = format!(
        "backfill-365: {} partitions, mean of the first and the last {end}\n{:<12}{:>12}{:>12}{:>9}\n",
        steps.len(),
        "phase",
        "first",
        "last",
        "ratio"
    );
    let mut line = |name: &str, value: &dyn Fn(&Step) -> f64| {
        let mean = |steps: &[Step]| steps.iter().map(value).sum::<f64>() / steps.len().max(1) as f64;
        let (before, after) = (mean(first), mean(last));
        text.push_str(&format!(
            "{name:<12}{:>12}{:>12}{:>9.2}\n",
            format!("{:.1} ms", before * 1e3),
            format!("{:.1} ms", after * 1e3),
            after / before
        ));
    };
    let names: std::collections::BTreeSet<&String> = steps.iter().flat_map(|step| step.phases.keys()).collect();
    for name in names {
        line(name, &|step| step.phases.get(name).copied().unwrap_or(0.0));
    }
    line("all", &|step| step.total);
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_report_compares_both_ends_by_phase() {
        let event = |seconds: f64| {
            format!(
                r#"{{"event":"step_finished","seconds":{seconds},"phases":[{{"phase":"stage","seconds":{}}}]}}"#,
                seconds / 2.0
            )
        };
        let mut steps: Vec<Step> = (0..60).filter_map(|_| Step::read(&event(0.1))).collect();
        steps.extend((0..30).filter_map(|_| Step::read(&event(0.2))));
        assert!(Step::read(r#"{"event":"started"}"#).is_none());
        expect![[r#"
            backfill-365: 90 partitions, mean of the first and the last 30
            phase              first        last    ratio
            stage            50.0 ms    100.0 ms     2.00
            all             100.0 ms    200.0 ms     2.00
        "#]]
        .assert_eq(&render(&steps));
    }
}
