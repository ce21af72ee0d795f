//! A hundred trivial scripts in a layered graph on a fresh lake, and the same project when nothing has changed.

use std::fmt::Write as _;
use std::rc::Rc;

use super::lake::Project;
use super::measure::Sides;
use super::{Bench, Benchmark};

/// By step, beside a hundred CREATE TABLE AS in autocommit on a fresh lake.
pub const HUNDRED: Benchmark = Benchmark {
    name: "hundred",
    about: "100 trivial scripts by step on a fresh lake, beside 100 CREATE TABLE AS in autocommit by hand",
    prepare: prepare_hundred,
};

/// In one transaction, beside the same.
pub const HUNDRED_ATOMIC: Benchmark = Benchmark {
    name: "hundred-atomic",
    about: "100 trivial scripts as an atomic run on a fresh lake, beside 100 CREATE TABLE AS in autocommit by hand",
    prepare: prepare_atomic,
};

/// The same run once more, when all of it is there.
pub const HUNDRED_AGAIN: Benchmark = Benchmark {
    name: "hundred-again",
    about: "the atomic run of the 100 scripts repeated with --force, beside 100 CREATE OR REPLACE TABLE AS by hand",
    prepare: prepare_again,
};

/// A run that finds nothing to do, beside opening the lake.
pub const UNCHANGED: Benchmark = Benchmark {
    name: "unchanged",
    about: "a second run of the 100 scripts, unchanged, beside opening the lake",
    prepare: prepare_unchanged,
};

/// How many scripts a layer has.
const LAYER: usize = 10;

fn hundred(bench: &Bench, name: &str) -> anyhow::Result<Project> {
    let project = Project::new(bench, name)?;
    for number in 0..100 {
        let header = format!("-- materialize ducklake://main/m{number:02}\n");
        project.script(&format!("m{number:02}"), &format!("{header}{}\n", query(number, "")))?;
    }
    Ok(project)
}

/// Two parents in the layer above; a hundred rows.
fn query(number: usize, prefix: &str) -> String {
    if number < LAYER {
        return format!("SELECT i AS id, i * {number} AS value FROM range(100) t(i)");
    }
    let above = number / LAYER * LAYER - LAYER;
    let (first, second) = (above + number % LAYER, above + (number + 1) % LAYER);
    format!("SELECT a.id, a.value + b.value AS value FROM {prefix}m{first:02} a JOIN {prefix}m{second:02} b USING (id)")
}

fn by_hand(create: &str) -> anyhow::Result<String> {
    let mut statements = String::new();
    for number in 0..100 {
        writeln!(statements, "{create} lake.main.m{number:02} AS {};", query(number, "lake.main."))?;
    }
    Ok(statements)
}

fn prepare_again(bench: &Bench) -> anyhow::Result<Sides> {
    let project = Rc::new(hundred(bench, "hundred-again")?);
    project.run(&["run", "--atomic"])?;
    let statements = by_hand("CREATE OR REPLACE TABLE")?;
    project.time_plain_in("plain", &statements)?;
    let ours = Rc::clone(&project);
    Ok(Sides {
        ours: Box::new(move || ours.time(&["run", "--atomic", "--force"])),
        plain: Box::new(move || project.time_plain_in("plain", &statements)),
    })
}

fn prepare_hundred(bench: &Bench) -> anyhow::Result<Sides> {
    on_a_fresh_lake(bench, "hundred", &["run"])
}

fn prepare_atomic(bench: &Bench) -> anyhow::Result<Sides> {
    on_a_fresh_lake(bench, "hundred-atomic", &["run", "--atomic"])
}

fn on_a_fresh_lake(bench: &Bench, name: &str, arguments: &'static [&'static str]) -> anyhow::Result<Sides> {
    let project = Rc::new(hundred(bench, name)?);
    let statements = by_hand("CREATE TABLE")?;
    let ours = Rc::clone(&project);
    Ok(Sides {
        ours: Box::new(move || {
            ours.forget()?;
            ours.time(arguments)
        }),
        plain: Box::new(move || {
            project.forget()?;
            project.time_plain(&statements)
        }),
    })
}

fn prepare_unchanged(bench: &Bench) -> anyhow::Result<Sides> {
    let project = Rc::new(hundred(bench, "unchanged")?);
    project.run(&["run"])?;
    let ours = Rc::clone(&project);
    Ok(Sides {
        ours: Box::new(move || ours.time(&["run"])),
        plain: Box::new(move || project.time_plain("SELECT 1;\n")),
    })
}
