//! The table of a benchmark run: medians side by side, their ratio and their difference.

use std::time::Duration;

use super::measure::Outcome;

/// Renders one line per outcome.
pub fn render(outcomes: &[Outcome]) -> String {
    let mut text = format!("{:<16}{:>12}{:>12}{:>9}{:>12}\n", "benchmark", "ours", "plain", "ratio", "difference");
    for outcome in outcomes {
        text.push_str(&format!(
            "{:<16}{:>12}{:>12}{:>9.2}{:>12}\n",
            outcome.name,
            milliseconds(outcome.ours.as_secs_f64()),
            milliseconds(outcome.plain.as_secs_f64()),
            outcome.ratio(),
            milliseconds(signed_difference(outcome.ours, outcome.plain)),
        ));
    }
    text
}

fn signed_difference(ours: Duration, plain: Duration) -> f64 {
    ours.as_secs_f64() - plain.as_secs_f64()
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.1} ms", seconds * 1_000.0)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_table_shows_both_sides_their_ratio_and_their_difference() {
        let outcomes = [
            Outcome { name: "start", ours: Duration::from_micros(24_600), plain: Duration::from_micros(1_200) },
            Outcome { name: "replace", ours: Duration::from_millis(2_040), plain: Duration::from_millis(2_100) },
        ];
        expect![[r"
            benchmark               ours       plain    ratio  difference
            start                24.6 ms      1.2 ms    20.50     23.4 ms
            replace            2040.0 ms   2100.0 ms     0.97    -60.0 ms
        "]]
        .assert_eq(&render(&outcomes));
    }
}
