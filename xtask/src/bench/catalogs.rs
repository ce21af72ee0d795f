//! The same small work with the catalog in a SQLite file and in Postgres: what a command costs before any data matter.
//!
//! The Postgres is on this machine and one run of the tests', so a network adds its round trips to the second column.

use std::fmt::Write as _;
use std::time::Duration;

use super::Bench;
use super::lake::Project;

/// How often each command is measured.
const ROUNDS: usize = 5;

/// What is measured, in this order, on each catalog.
const WORK: &[(&str, &[&str])] = &[
    ("plan, nothing due", &["plan"]),
    ("run, nothing due", &["run"]),
    ("query of one row", &["query", "SELECT count(*) FROM t"]),
    ("replace of one table", &["run", "--select", "t", "--force"]),
    ("replace of ten tables", &["run", "--select", "tag:ten", "--force"]),
];

/// Measures the work on both catalogs and renders the medians.
pub fn report(bench: &Bench) -> anyhow::Result<String> {
    let services = crate::services::Services::start(bench.repository)?;
    let database = services.database();
    let sqlite = measure(Project::new(bench, "catalog-sqlite")?)?;
    let on_postgres = Project::new(bench, "catalog-postgres")?.with_variable("BENCH_PASSWORD", database.password());
    on_postgres.config(&format!(
        "[lake.main]\ncatalog = \"postgres:{}\"\npassword = \"${{BENCH_PASSWORD}}\"\n",
        database.connection_without_password()
    ))?;
    let postgres = measure(on_postgres)?;
    Ok(render(&sqlite, &postgres))
}

fn measure(project: Project) -> anyhow::Result<Vec<Duration>> {
    project.script("t", "-- materialize ducklake://main/t\nSELECT i FROM range(1000) t(i)\n")?;
    for number in 0..10 {
        let header = format!("-- materialize ducklake://main/n{number}\n-- tag ten\n");
        project.script(&format!("n{number}"), &format!("{header}SELECT i FROM range(1000) t(i)\n"))?;
    }
    project.run(&["run"])?;
    WORK.iter().map(|(_, arguments)| median(&project, arguments)).collect()
}

fn median(project: &Project, arguments: &[&str]) -> anyhow::Result<Duration> {
    let mut times = (0..ROUNDS).map(|_| project.time(arguments)).collect::<anyhow::Result<Vec<_>>>()?;
    times.sort();
    Ok(times[ROUNDS / 2])
}

fn render(sqlite: &[Duration], postgres: &[Duration]) -> String {
    let mut text = format!("{:<24}{:>12}{:>12}{:>8}\n", "catalog-latency", "SQLite", "Postgres", "ratio");
    for (((name, _), sqlite), postgres) in WORK.iter().zip(sqlite).zip(postgres) {
        let (one, other) = (sqlite.as_secs_f64() * 1e3, postgres.as_secs_f64() * 1e3);
        let _ = writeln!(
            text,
            "{name:<24}{:>12}{:>12}{:>8.2}",
            format!("{one:.0} ms"),
            format!("{other:.0} ms"),
            other / one
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn both_catalogs_stand_side_by_side() {
        let times = |factor: u64| (1..=5).map(|n| Duration::from_millis(n * 100 * factor)).collect::<Vec<_>>();
        expect![[r#"
            catalog-latency               SQLite    Postgres   ratio
            plan, nothing due             100 ms      200 ms    2.00
            run, nothing due              200 ms      400 ms    2.00
            query of one row              300 ms      600 ms    2.00
            replace of one table          400 ms      800 ms    2.00
            replace of ten tables         500 ms     1000 ms    2.00
        "#]]
        .assert_eq(&render(&times(1), &times(2)));
    }
}
