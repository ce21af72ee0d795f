//! A backfill at concurrency 1, 2 and 4: what it gains from working on several partitions at once, where each partition
//! costs computation and all of them are written to one table.
//!
//! There is no plain side: the question is what more at once brings over one at a time.

use std::fmt::Write as _;
use std::time::Duration;

use super::Bench;
use super::lake::Project;

const PARTITIONS: usize = 48;

/// Work enough that it is more than the commit: a million numbers hashed per partition.
const DAILY: &str = "-- partitioned daily start=2025-01-01
-- materialize ducklake://main/daily
SELECT i % 100 AS bucket, count(*) AS n, max(md5(i::VARCHAR || $partition)) AS most
FROM range(1000000) t(i) GROUP BY ALL
";

/// Runs the backfill at each concurrency, on a lake made anew, and renders the times.
pub fn report(bench: &Bench) -> anyhow::Result<String> {
    let project = Project::new(bench, "scaling")?;
    project.config("[run]\nslots = 4\n")?;
    project.script("daily", DAILY)?;
    let mut times = Vec::new();
    for concurrency in [1, 2, 4] {
        project.forget()?;
        let count = concurrency.to_string();
        let arguments =
            ["backfill", "daily", "--from", "2025-01-01", "--to", "2025-02-18", "--concurrency", count.as_str()];
        times.push((concurrency, project.time(&arguments)?));
    }
    Ok(render(&times))
}

fn render(times: &[(usize, Duration)]) -> String {
    let mut text = format!("backfill-scaling: {PARTITIONS} partitions of a million rows computed each\n");
    let one = times.first().map_or(0.0, |(_, time)| time.as_secs_f64());
    for (concurrency, time) in times {
        let seconds = time.as_secs_f64();
        let each = seconds * 1e3 / PARTITIONS as f64;
        let _ = writeln!(
            text,
            "  {concurrency} at once {seconds:>8.2} s {each:>8.1} ms per partition {:>6.2} times as fast as one",
            one / seconds
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_concurrency_is_held_against_one_at_a_time() {
        let times = [(1, Duration::from_millis(4800)), (2, Duration::from_millis(2400))];
        expect![[r#"
            backfill-scaling: 48 partitions of a million rows computed each
              1 at once     4.80 s    100.0 ms per partition   1.00 times as fast as one
              2 at once     2.40 s     50.0 ms per partition   2.00 times as fast as one
        "#]]
        .assert_eq(&render(&times));
    }
}
