//! A thousand scripts: what `list`, `check` and `plan` cost.

use std::rc::Rc;

use super::lake::Project;
use super::measure::Sides;
use super::{Bench, Benchmark};

/// `list`, beside the start of the binary.
pub const LIST: Benchmark =
    Benchmark { name: "list-1000", about: "`list` of 1,000 scripts, beside the start of the binary", prepare: list };

/// `check`, beside the start of the binary.
pub const CHECK: Benchmark =
    Benchmark { name: "check-1000", about: "`check` of 1,000 scripts, beside the start of the binary", prepare: check };

/// `plan`, beside opening the lake.
pub const PLAN: Benchmark =
    Benchmark { name: "plan-1000", about: "`plan` of 1,000 scripts, beside opening the lake", prepare: plan };

fn thousand(bench: &Bench, name: &str) -> anyhow::Result<Project> {
    let project = Project::new(bench, name)?;
    for number in 0..1000 {
        let reads = match number {
            0..100 => "range(100) t(id)".to_owned(),
            _ => format!("m{:03} a JOIN m{:03} b USING (id)", number - 100, number - 99),
        };
        let text = format!(
            "-- One of a thousand.\n-- materialize ducklake://main/m{number:03} key=id\n-- tag bench\n-- test not_null id\n\
             SELECT id, count(*) AS n FROM {reads} WHERE id IN (SELECT max(id) FROM range(7) r(id)) GROUP BY ALL\n"
        );
        project.script(&format!("m{number:03}"), &text)?;
    }
    Ok(project)
}

fn list(bench: &Bench) -> anyhow::Result<Sides> {
    beside_start(thousand(bench, "list")?, &["list"])
}

fn check(bench: &Bench) -> anyhow::Result<Sides> {
    beside_start(thousand(bench, "check")?, &["check"])
}

fn beside_start(project: Project, arguments: &'static [&'static str]) -> anyhow::Result<Sides> {
    let project = Rc::new(project);
    let ours = Rc::clone(&project);
    Ok(Sides { ours: Box::new(move || ours.time(arguments)), plain: Box::new(move || project.time(&["--version"])) })
}

fn plan(bench: &Bench) -> anyhow::Result<Sides> {
    let project = Rc::new(thousand(bench, "plan")?);
    project.run(&["run", "--select", "m000"])?;
    let ours = Rc::clone(&project);
    Ok(Sides {
        ours: Box::new(move || ours.time(&["plan"])),
        plain: Box::new(move || project.time_plain("SELECT 1;\n")),
    })
}
