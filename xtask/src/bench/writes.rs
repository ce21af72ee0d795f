//! A managed replace, one that compares first and finds nothing, and a managed merge, each of five million rows, beside
//! the same work sent by hand to the same lake.

use std::rc::Rc;

use super::lake::Project;
use super::measure::Sides;
use super::{Bench, Benchmark};

/// Replace: BEGIN, DELETE, INSERT … SELECT, COMMIT by hand.
pub const REPLACE: Benchmark = Benchmark {
    name: "replace-5m",
    about: "a managed replace of 5 million rows, beside BEGIN, DELETE, INSERT, COMMIT by hand",
    prepare: prepare_replace,
};

/// Merge: BEGIN, DELETE by key, INSERT … SELECT, COMMIT by hand.
pub const MERGE: Benchmark = Benchmark {
    name: "merge-5m",
    about: "a managed merge of 5 million rows, beside BEGIN, DELETE by key, INSERT, COMMIT by hand",
    prepare: prepare_merge,
};

/// Replace by `if_changed` when nothing has changed: BEGIN, DELETE, INSERT … SELECT, COMMIT by hand.
pub const IF_CHANGED: Benchmark = Benchmark {
    name: "if-changed-5m",
    about: "a replace of 5 million unchanged rows with `if_changed`, beside the plain replace by hand",
    prepare: prepare_if_changed,
};

const SOURCE: &str = "-- materialize ducklake://main/source
SELECT i AS id, i % 1000 AS customer, (i * 37 % 10007)::DECIMAL(12,2) AS amount, 'note ' || (i % 97) AS note,
       TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_seconds(i) AS happened_at
FROM range(5000000) t(i)
";

const QUERY: &str = "SELECT id, customer, amount * 2 AS amount, note, happened_at FROM source";

fn prepare_replace(bench: &Bench) -> anyhow::Result<Sides> {
    replace_beside_hand(bench, "replace", "")
}

fn prepare_if_changed(bench: &Bench) -> anyhow::Result<Sides> {
    replace_beside_hand(bench, "if-changed", " if_changed")
}

fn replace_beside_hand(bench: &Bench, name: &str, option: &str) -> anyhow::Result<Sides> {
    let project = Project::new(bench, name)?;
    project.script("source", SOURCE)?;
    project.script("managed", &format!("-- materialize ducklake://main/managed{option}\n{QUERY}\n"))?;
    project.run(&["run"])?;
    project.time_plain(&format!("CREATE TABLE lake.main.by_hand AS {};\n", in_lake()))?;
    let statements = format!(
        "BEGIN;\nDELETE FROM lake.main.by_hand;\nINSERT INTO lake.main.by_hand BY NAME {};\nCOMMIT;\n",
        in_lake()
    );
    Ok(sides(project, "managed", statements))
}

fn prepare_merge(bench: &Bench) -> anyhow::Result<Sides> {
    let project = Project::new(bench, "merge")?;
    project.script("source", SOURCE)?;
    project.script("managed", &format!("-- materialize ducklake://main/managed key=id\n{QUERY}\n"))?;
    project.run(&["run"])?;
    project.time_plain(&format!("CREATE TABLE lake.main.by_hand AS {};\n", in_lake()))?;
    let statements = format!(
        "BEGIN;\nDELETE FROM lake.main.by_hand WHERE id IN (SELECT id FROM ({query}));\n\
         INSERT INTO lake.main.by_hand BY NAME {query};\nCOMMIT;\n",
        query = in_lake()
    );
    Ok(sides(project, "managed", statements))
}

fn in_lake() -> String {
    QUERY.replace("FROM source", "FROM lake.main.source")
}

fn sides(project: Project, script: &'static str, statements: String) -> Sides {
    let project = Rc::new(project);
    let ours = Rc::clone(&project);
    Sides {
        ours: Box::new(move || ours.time(&["run", "--select", script, "--force"])),
        plain: Box::new(move || project.time_plain(&statements)),
    }
}
