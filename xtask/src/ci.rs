//! `ci`: the steps of the build server, in the order that finds a fault soonest, each timed and named.
//!
//! The first failed step ends the run and says how to mend it; the build server and a person run the same list.

use std::time::{Duration, Instant};

use crate::process;
use crate::repository::Repository;
use crate::setup::{self, Set};
use crate::{generate, test, tidy};

/// One step; its text is what is worth repeating at the end.
struct Step {
    name: &'static str,
    run: fn(&Repository) -> anyhow::Result<Option<String>>,
    mend: &'static str,
}

const STEPS: &[Step] = &[
    Step { name: "setup", run: fetch, mend: "run `cargo xtask setup` and follow its message" },
    Step { name: "fmt", run: check_format, mend: "run `cargo fmt --all`" },
    Step {
        name: "tidy",
        run: check_tidy,
        mend: "change what the lines above name; see it alone by `cargo xtask tidy`",
    },
    Step {
        name: "typos",
        run: check_spelling,
        mend: "spell it as proposed, or quote it: typos.toml says what is left out",
    },
    Step { name: "gen", run: check_generated, mend: "run `cargo xtask gen` and commit what it writes" },
    Step {
        name: "clippy",
        run: check_lints,
        mend: "see it alone by `cargo clippy --workspace --all-targets -- -D warnings`",
    },
    Step { name: "test", run: run_tests, mend: "run the failed test alone by `cargo xtask test <part of its name>`" },
    Step { name: "doctest", run: run_doctests, mend: "see it alone by `cargo test --doc --package <crate>`" },
    Step { name: "doc", run: build_documentation, mend: "see it alone by `cargo doc --no-deps --package <crate>`" },
];

/// Runs every step, prints how long each took, and as the last line the closing line of the tests.
pub fn ci(repository: &Repository) -> anyhow::Result<()> {
    let mut report = Report::default();
    for step in STEPS {
        eprintln!("\n=== {}", step.name);
        let started = Instant::now();
        let outcome = (step.run)(repository);
        let took = started.elapsed();
        match outcome {
            Ok(note) => report.passed.push(Passed { name: step.name, took, note }),
            Err(error) => {
                eprint!("\n{}", report.render());
                let after = format!("{:.1} s", took.as_secs_f64());
                return Err(
                    error.context(format!("ci stopped at `{}` after {after}; to mend it, {}", step.name, step.mend))
                );
            }
        }
    }
    eprint!("\n{}", report.render());
    for note in report.passed.iter().filter_map(|passed| passed.note.as_ref()) {
        println!("{note}");
    }
    Ok(())
}

fn fetch(repository: &Repository) -> anyhow::Result<Option<String>> {
    setup::ensure(repository, &[Set::Engine, Set::Data])?;
    Ok(None)
}

fn check_format(repository: &Repository) -> anyhow::Result<Option<String>> {
    process::run(process::cargo(repository).args(["fmt", "--all", "--check"]))?;
    Ok(None)
}

fn check_tidy(repository: &Repository) -> anyhow::Result<Option<String>> {
    tidy::tidy(repository)?;
    Ok(None)
}

fn check_spelling(repository: &Repository) -> anyhow::Result<Option<String>> {
    let typos = setup::tool(repository, "typos")?;
    process::run(process::in_repository(repository, &typos).args(["--format", "brief"]))?;
    Ok(None)
}

fn check_generated(repository: &Repository) -> anyhow::Result<Option<String>> {
    generate::check(repository)?;
    Ok(None)
}

fn check_lints(repository: &Repository) -> anyhow::Result<Option<String>> {
    process::run(process::cargo(repository).args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(None)
}

fn run_tests(repository: &Repository) -> anyhow::Result<Option<String>> {
    let closing = test::test(repository, &[])?;
    Ok(Some(closing.0))
}

fn run_doctests(repository: &Repository) -> anyhow::Result<Option<String>> {
    test::doctests(repository)?;
    Ok(None)
}

fn build_documentation(repository: &Repository) -> anyhow::Result<Option<String>> {
    process::run(
        process::cargo(repository)
            .args(["doc", "--quiet", "--workspace", "--no-deps"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    Ok(None)
}

/// A step that passed.
struct Passed {
    name: &'static str,
    took: Duration,
    note: Option<String>,
}

/// What has passed so far.
#[derive(Default)]
struct Report {
    passed: Vec<Passed>,
}

impl Report {
    fn render(&self) -> String {
        let mut text = String::new();
        for Passed { name, took, note } in &self.passed {
            text.push_str(&format!("ok  {name:<8} {:>7.1} s", took.as_secs_f64()));
            if let Some(note) = note {
                text.push_str(&format!("  {note}"));
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_report_repeats_the_closing_line_of_the_tests() {
        let report = Report {
            passed: vec![
                Passed { name: "fmt", took: Duration::from_millis(1_240), note: None },
                Passed {
                    name: "test",
                    took: Duration::from_secs(61),
                    note: Some("Summary [ 60.1s] 7 tests run: 7 passed, 0 skipped".into()),
                },
            ],
        };
        expect![[r#"
            ok  fmt          1.2 s
            ok  test        61.0 s  Summary [ 60.1s] 7 tests run: 7 passed, 0 skipped
        "#]]
        .assert_eq(&report.render());
    }
}
