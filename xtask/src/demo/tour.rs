//! The tour itself: what is shown, in which order, and the sentence before each command.

use std::path::Path;

use super::guide::{Guide, Swapped};

const CARRIERS: &str =
    "SELECT carrier, airline, flights, on_time_share FROM carrier_delays ORDER BY flights DESC LIMIT 3";
const DAYS: &str = "SELECT count(*) AS flights, count(DISTINCT flight_date) AS days FROM flights_daily";

/// Gives the tour; `broken` is the folder of scripts with a mistake in them.
pub fn tour(guide: &Guide, broken: &Path) -> anyhow::Result<()> {
    compile_and_load(guide)?;
    backfill_january(guide)?;
    fail_a_test(guide, broken)?;
    travel_in_time(guide)?;
    compare_and_go_back(guide)
}

fn compile_and_load(guide: &Guide) -> anyhow::Result<()> {
    guide.say(
        "This project is a folder of SQL: five scripts read CSV files about the flights that left New York in 2013,\n\
         one cuts them into local days, the others report. `check` compiles all of it without reading any data.",
    );
    guide.pintail(&["check"])?;
    guide.say("`plan` says what would be done, in which order, and why. Nothing has been written yet.");
    guide.pintail(&["plan", "--select", "tag:raw"])?;
    guide.say("`run` does exactly that: each script becomes a table of the lake, tested and committed in one step.");
    guide.pintail(&["run", "--select", "tag:raw"])
}

fn backfill_january(guide: &Guide) -> anyhow::Result<()> {
    guide.say(
        "flights_daily is partitioned by the local day of New York. A backfill makes the days from the first one up to,\n\
         but not including, the last one; run it again after a crash, and it goes on where it was.",
    );
    guide.pintail(&["backfill", "flights_daily", "--from", "2013-01-01", "--to", "2013-02-01"])?;
    guide.say("Now the reports have something to say.");
    guide.pintail(&["run", "--select", "tag:report"])?;
    guide.pintail(&["query", CARRIERS])
}

fn fail_a_test(guide: &Guide, broken: &Path) -> anyhow::Result<()> {
    let script = "pipelines/reports/carrier_delays.sql";
    guide.say(&format!(
        "Someone edits {script} and writes percent where a share between 0 and 1 is promised.\n\
         The test runs inside the transaction that writes, so the commit does not happen.",
    ));
    let swapped = Swapped::swap(&broken.join("carrier_delays.sql"), guide.place(script))?;
    guide.pintail_fails(&["run", "--select", "carrier_delays"])?;
    guide.say("Readers still see the version from before: the same query, the same answer.");
    guide.pintail(&["query", CARRIERS])?;
    swapped.restore()
}

fn travel_in_time(guide: &Guide) -> anyhow::Result<()> {
    guide.say("Every commit of the lake is a snapshot that can be read later. This is where we are.");
    let before = guide.newest_snapshot()?.to_string();
    guide.pintail(&["query", DAYS])?;
    guide.say("Three more days arrive.");
    guide.pintail(&["backfill", "flights_daily", "--from", "2013-02-01", "--to", "2013-02-04"])?;
    guide.pintail(&["query", DAYS])?;
    guide.say(&format!("And this is the same question, asked of snapshot {before}."));
    guide.pintail(&["query", "--at", &before, DAYS])?;
    guide.say("`history` lists the versions of an asset: when, by which run, how many rows.");
    guide.pintail(&["history", "carrier_delays"])
}

fn compare_and_go_back(guide: &Guide) -> anyhow::Result<()> {
    let before = guide.newest_snapshot()?.to_string();
    guide.say(
        "The reports have not seen those three days. An atomic run brings all of them up to date in one commit, or none:\n\
         a reader never sees half of it.",
    );
    guide.pintail(&["run", "--select", "tag:report", "--atomic"])?;
    guide.say("`diff` compares two versions of a table: which rows came, went, and changed.");
    guide.pintail(&["diff", "carrier_delays", "--from", &before, "--limit", "3"])?;
    guide.say(
        "`rollback` writes the old content as a new snapshot. Nothing is erased, and what reads the table is told that it\n\
         changed.",
    );
    guide.pintail(&["rollback", "carrier_delays", "--to", &before, "--yes"])?;
    guide.pintail(&["history", "carrier_delays"])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_broken_script_differs_from_the_good_one_in_one_line_of_its_query() {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/flights");
        let good = fs::read_to_string(example.join("pipelines/reports/carrier_delays.sql")).unwrap();
        let broken = fs::read_to_string(example.join("broken/carrier_delays.sql")).unwrap();

        assert_eq!(good.lines().count(), broken.lines().count());
        let changed: Vec<_> = good.lines().zip(broken.lines()).filter(|(old, new)| old != new).collect();
        let [(old, new)] = changed[..] else { panic!("{changed:?}") };
        assert!(old.contains("round(avg(") && new.contains("round(100 * avg("), "{old} -> {new}");
    }
}
