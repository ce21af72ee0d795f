//! States of slices, as ranges, and what a selection by state takes.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};

use super::*;
use crate::annotation::PartitionMap;
use crate::partition::Window;

impl World {
    /// Says that our commit at `snapshot` wrote one day of `table`.
    fn changed_day(mut self, table: &str, day: &str, snapshot: i64) -> Self {
        let window = daily(None).window(&PartitionKey(day.to_owned())).unwrap();
        self.changes.record_change(lake(table), Author::Us, &Extent::Windows(vec![window]), SnapshotId(snapshot));
        self
    }

    fn map(mut self, reader: &str, read: &str, map: PartitionMap) -> Self {
        let script = self.scripts.iter_mut().find(|script| script.name.as_str() == reader).unwrap();
        script.maps.insert(lake(read), map);
        self
    }

    fn states(&self, expected: Expect) {
        let lines = self.with_facts(|facts| {
            let index = SliceIndex::new(facts);
            let line = |script: &ScriptFacts, range: &SliceRange| {
                let key = |key: &Option<PartitionKey>| key.as_ref().map_or("-".to_owned(), ToString::to_string);
                let why = range.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!(
                    "{} {} {}..{} {}{why}",
                    script.name,
                    range.state,
                    key(&range.first),
                    key(&range.last),
                    range.count
                )
            };
            let lines = facts.scripts.iter().flat_map(|script| {
                index.ranges(facts, script).iter().map(|range| line(script, range)).collect::<Vec<_>>()
            });
            lines.collect::<Vec<_>>()
        });
        expected.assert_eq(&lines.join("\n"));
    }

    fn in_state(self, states: &[State]) -> Self {
        let states: BTreeSet<State> = states.iter().copied().collect();
        self.request(|request| request.partitions = Partitions::InState { states, named: BTreeSet::new() })
    }
}

/// `up` and `down`, both daily, written for the four days before the second of March at pin 10.
fn four_days() -> World {
    let start = daily(Some("2026-02-26"));
    let mut world = World::new().script("up", &[], Some(start.clone())).script("down", &["up"], Some(start));
    for day in ["2026-02-26", "2026-02-27", "2026-02-28", "2026-03-01"] {
        world = world.closed("up", day).closed("down", day);
    }
    world
}

impl World {
    /// A day that was written at pin 10, after it had closed.
    fn closed(mut self, name: &str, day: &str) -> Self {
        self = self.written(name, Some(day), 10);
        let key = (lake(name), Some(PartitionKey(day.to_owned())));
        self.slices.get_mut(&key).unwrap().version.as_mut().unwrap().finished = at("2026-03-02T01:00:00Z");
        self
    }
}

#[test]
fn a_backfilled_day_makes_only_the_days_that_read_it_stale() {
    four_days().changed_day("up", "2026-02-27", 20).states(expect![[r#"
        up fresh 2026-02-26..2026-03-01 4
        down fresh 2026-02-26..2026-02-26 1
        down stale 2026-02-27..2026-02-27 1: ducklake://main/up changed
        down fresh 2026-02-28..2026-03-01 2"#]]);
    four_days().changed_day("up", "2026-02-27", 20).map("down", "up", PartitionMap::Lookback(1)).states(expect![[r#"
        up fresh 2026-02-26..2026-03-01 4
        down fresh 2026-02-26..2026-02-26 1
        down stale 2026-02-27..2026-02-28 2: ducklake://main/up changed
        down fresh 2026-03-01..2026-03-01 1"#]]);
    four_days().changed_day("up", "2026-02-27", 20).map("down", "up", PartitionMap::All).states(expect![[r#"
        up fresh 2026-02-26..2026-03-01 4
        down stale 2026-02-26..2026-03-01 4: ducklake://main/up changed"#]]);
    four_days().changed_day("up", "2026-02-27", 20).map("down", "up", PartitionMap::Latest).states(expect![[r#"
        up fresh 2026-02-26..2026-03-01 4
        down fresh 2026-02-26..2026-02-28 3
        down stale 2026-03-01..2026-03-01 1: ducklake://main/up changed"#]]);
}

#[test]
fn a_foreign_commit_counts_for_every_slice() {
    four_days().changed("up", 20).states(expect![[r#"
        up fresh 2026-02-26..2026-03-01 4
        down stale 2026-02-26..2026-03-01 4: ducklake://main/up changed"#]]);
}

#[test]
fn hours_and_days_belong_together_where_they_share_time() {
    let hourly = TimeSpec { unit: TimeUnit::Hour, ..daily(None) };
    let mut world = World::new().script("up", &[], Some(daily(None))).script("down", &["up"], Some(hourly));
    for hour in ["2026-02-27T22", "2026-02-27T23", "2026-02-28T00"] {
        world = world.closed("down", hour);
    }
    let world = world.closed("up", "2026-03-01").changed_day("up", "2026-02-27", 20);
    world.states(expect![[r#"
        up fresh 2026-03-01..2026-03-01 1
        down stale 2026-02-27T22..2026-02-27T23 2: ducklake://main/up changed
        down fresh 2026-02-28T00..2026-02-28T00 1
        down missing 2026-03-02T07..2026-03-02T07 1: never written"#]]);
}

#[test]
fn years_of_missing_days_are_one_range() {
    let world = World::new().script("d", &[], Some(daily(Some("1998-10-15")))).closed("d", "2020-01-01");
    world.states(expect![[r#"
        d missing 1998-10-15..2019-12-31 7748: never written
        d fresh 2020-01-01..2020-01-01 1
        d missing 2020-01-02..2026-03-01 2251: never written"#]]);
}

#[test]
fn an_open_day_is_partial_and_due_once_it_has_closed() {
    let mut world = World::new().script("d", &[], Some(daily(None))).closed("d", "2026-03-02");
    world = world.written("d", Some("2026-03-01"), 10);
    world.states(expect![[r#"
        d partial 2026-03-01..2026-03-01 1: its period was still open last time
        d partial 2026-03-02..2026-03-02 1: its period is still open"#]]);
}

#[test]
fn a_failure_beside_a_version_and_a_table_of_others_are_told() {
    let mut world = World::new().script("a", &[], None).written("a", None, 1).script("b", &[], None);
    world.slices.get_mut(&(lake("a"), None)).unwrap().has_failed = true;
    world.origins.insert(lake("b"), Origin::Foreign);
    world.states(expect![[r#"
        a failed -..- 1: failed last time
        b unknown -..- 1: the table there was made by something else: `pintail adopt`"#]]);
}

#[test]
fn a_selection_by_state_takes_the_slices_and_what_reads_them() {
    let mut world = four_days();
    world.slices.get_mut(&(lake("up"), Some(PartitionKey("2026-02-27".into())))).unwrap().has_failed = true;
    world.in_state(&[State::Failed]).check(expect![[r#"
        up 2026-02-27: failed last time
        down 2026-02-27: after up [0]
        up to date: 0"#]]);
}

#[test]
fn a_long_selection_takes_the_oldest_and_tells_of_the_rest() {
    let world = World::new().script("d", &[], Some(daily(Some("2024-01-01")))).in_state(&[State::Missing]);
    let plan = world.plan().unwrap();
    assert_eq!(plan.steps.len(), MOST_SLICES);
    assert_eq!(plan.steps[0].partition, Some(PartitionKey("2024-01-01".into())));
    let states = vec![State::Missing];
    assert_eq!(plan.hints, [Hint::More { script: ScriptName("d".into()), left: 291, states }]);
}

#[test]
fn a_self_reader_is_not_stale_by_the_other_days_that_it_wrote() {
    let world = World::new().script("d", &["d"], Some(daily(None))).closed("d", "2026-02-28").closed("d", "2026-03-01");
    world.changed_day("d", "2026-02-28", 30).states(expect!["d fresh 2026-02-28..2026-03-01 2"]);
}

#[test]
fn a_mapped_reader_depends_on_every_step_that_it_reads() {
    let keys = ["2026-02-27", "2026-02-28"].map(|key| PartitionKey(key.to_owned())).into();
    let world = World::new()
        .script("d", &[], Some(daily(None)))
        .script("e", &["d"], Some(daily(None)))
        .map("e", "d", PartitionMap::Lookback(1))
        .request(|request| request.partitions = Partitions::Of { script: 1, keys });
    world.check(expect![[r#"
        d 2026-02-27: never written
        d 2026-02-28: never written
        e 2026-02-27: never written [0]
        e 2026-02-28: never written [0, 1]
        up to date: 0"#]]);
}

#[test]
fn windows_of_another_calendar_map_by_time() {
    let window = Window { start: at("2026-02-27T23:00:00Z"), end: at("2026-02-28T23:00:00Z") };
    let mut world = four_days();
    world.changes.record_change(lake("up"), Author::Us, &Extent::Windows(vec![window]), SnapshotId(20));
    world.states(expect![[r#"
        up fresh 2026-02-26..2026-03-01 4
        down fresh 2026-02-26..2026-02-26 1
        down stale 2026-02-27..2026-02-28 2: ducklake://main/up changed
        down fresh 2026-03-01..2026-03-01 1"#]]);
}
