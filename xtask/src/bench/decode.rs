//! Decoding end to end: raw events through a consumer into signals and what is newest, beside a plain INSERT … SELECT of
//! the rows that came of them, into a table of the same layout.
//!
//! Both sides are the example `decode` of the telemetry crate, since the plain one copies what the other has just decoded.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::Bench;
use super::measure::median;

/// Events in a snapshot, with five signals each, and how many snapshots are consumed one after the other.
const SIZES: [(u32, u32); 2] = [(20_000, 6), (100_000, 4)];

/// The same for the cost of a pass, which shall not grow with the number of passes before it.
const PASSES: (u32, u32) = (100, 2_000);

/// Passes of which one median is shown, and after which the lake is looked after.
const STRETCH: usize = 250;

/// The column of a line that says how long the pass took, in seconds.
const OURS: usize = 6;

/// The column of the copy by hand.
const PLAIN: usize = 7;

/// Runs both sizes and renders the lines of each; the ratio is plain over ours, and 1 would be a decoder without cost.
pub fn report(bench: &Bench<'_>) -> anyhow::Result<String> {
    let mut text = String::new();
    for (events, snapshots) in SIZES {
        text += &format!("decode: {events} events a snapshot, seconds\n{}", run(bench, &[events, snapshots])?);
    }
    Ok(text)
}

/// Makes thousands of passes and renders the median of each stretch of them, beside the copy by hand into the same lake.
pub fn passes(bench: &Bench<'_>) -> anyhow::Result<String> {
    let (events, snapshots) = PASSES;
    let between = u32::try_from(STRETCH).expect("a stretch is short");
    stretches(&run(bench, &[events, snapshots, between])?)
}

fn run(bench: &Bench<'_>, numbers: &[u32]) -> anyhow::Result<String> {
    let program = bench.plain.with_file_name("decode");
    let folder = bench.folder.join("decode");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let output = Command::new(&program)
        .arg(&folder)
        .arg(&bench.extensions)
        .args(numbers.iter().map(u32::to_string))
        .output()
        .with_context(|| format!("{} did not start", program.display()))?;
    if !output.status.success() {
        bail!("the benchmark failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn stretches(lines: &str) -> anyhow::Result<String> {
    let passes: Vec<(Duration, Duration)> = lines
        .lines()
        .skip(1)
        .map(|line| Ok((seconds(line, OURS)?, seconds(line, PLAIN)?)))
        .collect::<anyhow::Result<_>>()?;
    let mut text = String::new();
    for (number, stretch) in passes.chunks(STRETCH).enumerate() {
        let (first, last) = (number * STRETCH + 1, number * STRETCH + stretch.len());
        let (ours, plain) = stretch.iter().copied().unzip();
        let (ours, plain) = (median(ours).as_secs_f64() * 1e3, median(plain).as_secs_f64() * 1e3);
        writeln!(text, "consume-passes: pass {first} to {last}: ours {ours:.1} ms, plain {plain:.1} ms")?;
    }
    Ok(text)
}

fn seconds(line: &str, column: usize) -> anyhow::Result<Duration> {
    let text = line.split_whitespace().nth(column).with_context(|| format!("no column {column} in `{line}`"))?;
    Ok(Duration::from_secs_f64(text.parse()?))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_stretch_of_passes_has_its_median() {
        let line = |number: usize| format!("{number} 500 0.001 0.001 0.001 0.010 0.0{} 0.010 0.50", 20 + number / 250);
        let lines: Vec<String> = std::iter::once("the head".to_owned()).chain((0..400).map(line)).collect();
        expect![[r#"
            consume-passes: pass 1 to 250: ours 20.0 ms, plain 10.0 ms
            consume-passes: pass 251 to 400: ours 21.0 ms, plain 10.0 ms
        "#]]
        .assert_eq(&stretches(&lines.join("\n")).unwrap());
    }
}
