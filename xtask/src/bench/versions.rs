//! Older versions: a rollback beside DELETE and INSERT by hand, and a comparison of ten million rows beside a full join.

use std::rc::Rc;

use super::lake::Project;
use super::measure::Sides;
use super::{Bench, Benchmark};

/// Rollback: DELETE, INSERT from the older snapshot by hand.
pub const ROLLBACK: Benchmark = Benchmark {
    name: "rollback",
    about: "a rollback of 2 million rows with its preview, beside DELETE and INSERT of the older version by hand",
    prepare: prepare_rollback,
};

/// Diff: one keyed full join by hand.
pub const DIFF: Benchmark = Benchmark {
    name: "diff-10m",
    about: "a diff by key of 10 million rows, a tenth of them changed, beside a full join of both versions by hand",
    prepare: prepare_diff,
};

/// The first commits of a lake make it ready; the versions are the two that follow.
const OLD: u32 = 2;

fn versions(bench: &Bench, name: &str, rows: u32) -> anyhow::Result<Project> {
    let project = Project::new(bench, name)?;
    let query = |factor: &str| {
        format!(
            "-- materialize ducklake://main/t key=id\nSELECT i AS id, (i * 37 % 10007) AS a, 'note ' || (i % 97) AS note, \
             i * {factor} AS b\nFROM range({rows}) t(i)\n"
        )
    };
    for factor in ["1", "(CASE WHEN i % 10 = 0 THEN 2 ELSE 1 END)"] {
        project.script("t", &query(factor))?;
        project.run(&["run", "--full-refresh"])?;
    }
    Ok(project)
}

fn prepare_rollback(bench: &Bench) -> anyhow::Result<Sides> {
    let project = Rc::new(versions(bench, "rollback", 2_000_000)?);
    project.time_plain(&format!("CREATE TABLE lake.main.by_hand AS FROM lake.main.t AT (VERSION => {OLD});\n"))?;
    let statements = format!(
        "BEGIN;\nDELETE FROM lake.main.by_hand;\nINSERT INTO lake.main.by_hand BY NAME FROM lake.main.t AT (VERSION => \
         {OLD});\nCOMMIT;\n"
    );
    let ours = Rc::clone(&project);
    // To and fro, so that there is always something to bring back.
    let mut back_to_old = false;
    Ok(Sides {
        ours: Box::new(move || {
            back_to_old = !back_to_old;
            let to = if back_to_old { OLD } else { OLD + 1 }.to_string();
            ours.time(&["rollback", "t", "--to", &to, "--yes", "--limit", "0"])
        }),
        plain: Box::new(move || project.time_plain(&statements)),
    })
}

fn prepare_diff(bench: &Bench) -> anyhow::Result<Sides> {
    let project = Rc::new(versions(bench, "diff", 10_000_000)?);
    let statements = format!(
        "CREATE OR REPLACE TEMP TABLE by_hand AS SELECT coalesce(o.id, n.id) AS id FROM (FROM lake.main.t AT (VERSION => \
         {OLD})) o FULL JOIN (FROM lake.main.t AT (VERSION => {new})) n ON o.id = n.id WHERE o IS DISTINCT FROM n;\n",
        new = OLD + 1
    );
    let ours = Rc::clone(&project);
    let (from, to) = (OLD.to_string(), (OLD + 1).to_string());
    Ok(Sides {
        ours: Box::new(move || ours.time(&["diff", "t", "--from", &from, "--to", &to])),
        plain: Box::new(move || project.time_plain(&statements)),
    })
}
