//! Plans from small sets of facts.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use expect_test::{Expect, expect};

mod states;

use super::*;
use crate::asset::Asset;
use crate::id::{LakeName, ScriptHash, ScriptName, SnapshotId};
use crate::partition::{PartitionKey, TimeSpec, TimeUnit};

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn lake(table: &str) -> Asset {
    Asset::Lake { lake: LakeName("main".to_owned()), schema: "main".to_owned(), table: table.to_owned() }
}

fn hash(text: &str) -> ScriptHash {
    ScriptHash(text.to_owned())
}

fn daily(start: Option<&str>) -> TimeSpec {
    TimeSpec {
        unit: TimeUnit::Day,
        by: None,
        tz: None,
        start: start.map(|date| date.parse().unwrap()),
        retention: None,
    }
}

struct World {
    scripts: Vec<ScriptFacts>,
    slices: HashMap<(Asset, Option<PartitionKey>), SliceFacts>,
    changes: LastChanges,
    files: BTreeMap<String, String>,
    origins: HashMap<Asset, Origin>,
    request: Request,
}

impl World {
    fn new() -> Self {
        Self {
            scripts: Vec::new(),
            slices: HashMap::new(),
            changes: LastChanges::default(),
            files: BTreeMap::new(),
            origins: HashMap::new(),
            request: Request::default(),
        }
    }

    fn script(mut self, name: &str, reads: &[&str], partition: Option<TimeSpec>) -> Self {
        let upstream =
            (0..self.scripts.len()).filter(|index| reads.contains(&self.scripts[*index].name.as_str())).collect();
        self.request.selected.insert(self.scripts.len());
        self.scripts.push(ScriptFacts {
            name: ScriptName(name.to_owned()),
            hash: hash("h"),
            asset: Some(lake(name)),
            strategy: "replace",
            is_view: false,
            partition,
            dynamic: None,
            maps: HashMap::new(),
            reads: reads.iter().map(|read| lake(read)).collect(),
            has_unknown_reads: false,
            upstream,
        });
        self
    }

    fn written(mut self, name: &str, partition: Option<&str>, pin: i64) -> Self {
        let version = SliceVersion {
            snapshot: SnapshotId(pin + 1),
            script_hash: hash("h"),
            inputs: BTreeMap::from([(LakeName("main".to_owned()), SnapshotId(pin))]),
            files: BTreeMap::new(),
            finished: at("2026-03-01T12:00:00Z"),
        };
        let key = (lake(name), partition.map(|key| PartitionKey(key.to_owned())));
        self.slices.insert(key, SliceFacts { version: Some(version), has_failed: false });
        self
    }

    fn changed(mut self, table: &str, snapshot: i64) -> Self {
        self.changes.record(lake(table), SnapshotId(snapshot));
        self
    }

    fn request(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(&mut self.request);
        self
    }

    fn with_facts<T>(&self, ask: impl FnOnce(&Facts<'_>) -> T) -> T {
        let heads = BTreeMap::from([(LakeName("main".to_owned()), SnapshotId(50))]);
        ask(&Facts {
            scripts: &self.scripts,
            slices: &self.slices,
            origins: &self.origins,
            changes: &self.changes,
            files: &self.files,
            heads: &heads,
            now: at("2026-03-02T08:00:00Z"),
        })
    }

    fn plan(&self) -> Result<Plan, PlanError> {
        self.with_facts(|facts| plan(facts, &self.request))
    }

    fn check(&self, expected: Expect) {
        let text = match self.plan() {
            Ok(plan) => {
                let mut lines: Vec<String> = plan
                    .steps
                    .iter()
                    .map(|step| {
                        let partition = step.partition.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
                        let after =
                            if step.depends_on.is_empty() { String::new() } else { format!(" {:?}", step.depends_on) };
                        format!("{}{partition}: {}{after}", step.name, step.reason)
                    })
                    .collect();
                lines.push(format!("up to date: {}", plan.up_to_date));
                lines.extend(plan.hints.iter().map(|hint| format!("{hint:?}")));
                lines.join("\n")
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&text);
    }
}

#[test]
fn a_fresh_project_runs_everything_in_order() {
    World::new().script("a", &[], None).script("b", &["a"], None).script("c", &["a", "b"], None).check(expect![[r#"
        a: never written
        b: never written [0]
        c: never written [0, 1]
        up to date: 0"#]]);
}

#[test]
fn nothing_changed_is_nothing_to_do() {
    World::new()
        .script("a", &[], None)
        .script("b", &["a"], None)
        .written("a", None, 1)
        .written("b", None, 2)
        .changed("a", 2)
        .changed("b", 3)
        .check(expect!["up to date: 2"]);
}

#[test]
fn a_change_runs_what_is_downstream_of_it_and_nothing_else() {
    World::new()
        .script("a", &["raw"], None)
        .script("b", &["a"], None)
        .script("x", &[], None)
        .written("a", None, 1)
        .written("b", None, 2)
        .written("x", None, 2)
        .changed("raw", 9)
        .check(expect![[r#"
            a: ducklake://main/raw changed
            b: after a [0]
            up to date: 1"#]]);
}

#[test]
fn an_edit_a_failure_and_force_are_reasons() {
    let mut world = World::new().script("a", &[], None).written("a", None, 1);
    world.scripts[0].hash = hash("new");
    world.check(expect![[r#"
        a: the script changed
        up to date: 0"#]]);
    let mut world = World::new().script("a", &[], None).written("a", None, 1);
    world.slices.get_mut(&(lake("a"), None)).unwrap().has_failed = true;
    world.check(expect![[r#"
        a: failed last time
        up to date: 0"#]]);
    World::new().script("a", &[], None).written("a", None, 1).request(|request| request.force = true).check(expect![[
        r#"
            a: forced
            up to date: 0"#
    ]]);
}

#[test]
fn a_self_reader_is_not_stale_by_its_own_write() {
    World::new().script("a", &["a"], None).written("a", None, 4).changed("a", 5).check(expect!["up to date: 1"]);
    World::new().script("a", &["a"], None).written("a", None, 4).changed("a", 6).check(expect![[r#"
        a: ducklake://main/a changed
        up to date: 0"#]]);
}

#[test]
fn the_last_closed_day_runs_and_a_hint_names_the_missing_ones() {
    World::new()
        .script("d", &[], Some(daily(Some("2026-02-26"))))
        .written("d", Some("2026-02-27"), 1)
        .check(expect![[r#"
            d 2026-03-01: never written
            up to date: 0
            Backfill { script: ScriptName("d"), missing: 2, from: PartitionKey("2026-02-26"), to: PartitionKey("2026-02-28") }"#]]);
}

#[test]
fn an_open_day_is_written_once_more_after_it_closed() {
    let world = World::new().script("d", &[], Some(daily(None))).written("d", Some("2026-03-01"), 1);
    world.check(expect![[r#"
        d 2026-03-01: its period was still open last time
        up to date: 0"#]]);
}

#[test]
fn a_named_partition_is_translated_and_a_wrong_one_refused() {
    let monthly = TimeSpec { unit: TimeUnit::Month, ..daily(None) };
    let world =
        World::new().script("d", &[], Some(daily(None))).script("m", &["d"], Some(monthly)).script("w", &[], None);
    let named = |text: &str| Partitions::Named(text.to_owned());
    world.request(|request| request.partitions = named("2026-02-14")).check(expect![[r#"
        d 2026-02-14: never written
        m 2026-02: never written [0]
        w: never written
        up to date: 0
        UnwrittenUpstream { script: ScriptName("m"), upstream: ScriptName("d"), missing: 27, first: PartitionKey("2026-02-01") }"#]]);
    let world = World::new().script("d", &[], Some(daily(None)));
    world
        .request(|request| request.partitions = named("2027-01-01"))
        .check(expect![["`d`: the partition 2027-01-01 has not begun yet"]]);
    let world = World::new().script("w", &[], None);
    world
        .request(|request| request.partitions = named("2026-01-01"))
        .check(expect!["the partition `2026-01-01` fits no selected script"]);
}

#[test]
fn a_month_that_is_going_on_means_its_days_until_now() {
    let world = World::new().script("d", &[], Some(daily(None)));
    world.request(|request| request.partitions = Partitions::Named("2026-03".to_owned())).check(expect![[r#"
            d 2026-03-01: never written
            d 2026-03-02: never written
            up to date: 0"#]]);
}

#[test]
fn steps_depend_on_the_overlapping_partitions_only() {
    let keys: Vec<PartitionKey> =
        ["2026-02-01", "2026-02-02", "2026-02-03"].map(|key| PartitionKey(key.to_owned())).into();
    let world = World::new()
        .script("d", &[], Some(daily(None)))
        .script("e", &["d"], Some(daily(None)))
        .request(|request| request.partitions = Partitions::Of { script: 1, keys });
    world.check(expect![[r#"
        d 2026-02-01: never written
        d 2026-02-02: never written
        d 2026-02-03: never written
        e 2026-02-01: never written [0]
        e 2026-02-02: never written [1]
        e 2026-02-03: never written [2]
        up to date: 0"#]]);
}

#[test]
fn a_plan_after_its_own_apply_is_empty() {
    let mut world = World::new().script("a", &[], None).script("b", &["a"], None);
    let steps = world.plan().unwrap().steps;
    for (order, step) in steps.iter().enumerate() {
        world = world.written(step.name.as_str(), None, 10 + i64::try_from(order).unwrap());
        world.changes.record(step.asset.clone().unwrap(), SnapshotId(11 + i64::try_from(order).unwrap()));
    }
    assert_eq!(world.plan().unwrap().steps, []);
}
