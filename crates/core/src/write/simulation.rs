//! A seeded simulation of the write protocol: single steps, groups and runs in one transaction, on both kinds of catalog,
//! with a crash between any two steps, zombies whose lease was taken, lost answers to COMMIT, COMMITs that store nothing,
//! tables that change their shape, and foreign writers.
//!
//! Invariant after every schedule: what the lake holds is what its commits say one after the other; no step landed twice;
//! no older version lies over a newer one; who says that it landed did, and who says that it failed did not; the healed
//! store is what the stamps say. Each part of the protocol is then left out once, and some seed must notice: what nobody
//! would miss would not be tested here, or not be needed.
//!
//! Deliberately a model: the same decisions on a real lake are in the runner's tests.

mod lake;
mod world;
mod writer;

use std::collections::BTreeSet;

use lake::{Catalog, Row};
use world::{Fence, Protocol, World};
use writer::{ASSETS, Strategy, Told};

/// How many seeds are tried on each catalog; `PINTAIL_SIMULATION_SEEDS` asks for more.
const SEEDS: u64 = 300;

fn seeds() -> u64 {
    let asked = option_env!("PINTAIL_SIMULATION_SEEDS").and_then(|text| text.parse().ok());
    asked.unwrap_or(SEEDS)
}

/// Returns what the rows would be if the commits had come one after the other.
fn replayed(world: &World) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for meant in &world.meant {
        let is_sliced = ASSETS[meant.asset].is_sliced;
        let of_slice = |row: &Row| row.asset == meant.asset && (!is_sliced || row.slice == meant.slice);
        match meant.strategy {
            Strategy::Append => {}
            Strategy::Replace => rows.retain(|row| !of_slice(row)),
            Strategy::Merge => {
                rows.retain(|row| !(of_slice(row) && meant.rows.iter().any(|new| new.key == row.key)));
            }
        }
        rows.extend(meant.rows.iter().cloned());
    }
    rows.sort();
    rows
}

/// Returns everything that is wrong in a world that has come to rest.
fn wrongs(world: &World) -> Vec<String> {
    let mut wrongs = world.wrongs.clone();
    let mut rows: Vec<Row> = (0..ASSETS.len()).flat_map(|asset| world.lake.rows_at(asset, world.lake.head())).collect();
    rows.sort();
    let expected = replayed(world);
    if rows != expected {
        wrongs.push(format!("rows were lost or doubled: there are {rows:?}, not {expected:?}"));
    }
    let stamps = || world.lake.commits.iter().flat_map(|commit| &commit.stamps);
    let landed: BTreeSet<&str> = stamps().map(|entry| entry.step.0.as_str()).collect();
    if landed.len() != stamps().count() {
        wrongs.push("a step landed twice".to_owned());
    }
    for asset in (0..ASSETS.len()).filter(|asset| ASSETS[*asset].reads_target) {
        let counted = rows.iter().filter(|row| row.asset == asset).map(|row| row.key).max().unwrap_or(0);
        let landings = world.meant.iter().filter(|meant| meant.asset == asset).count() as u64;
        if counted != landings {
            wrongs.push(format!("{landings} increments have counted to {counted}"));
        }
    }
    for writer in &world.writers {
        for part in &writer.parts {
            let has_landed = landed.contains(part.step.as_str());
            match part.told {
                Some(Told::Landed) if !has_landed => {
                    wrongs.push(format!("{} is told as landed, and is not", part.step))
                }
                Some(Told::Failed | Told::Superseded) if has_landed => {
                    wrongs.push(format!("{} is told as failed, and has landed", part.step));
                }
                None if !writer.is_dead => wrongs.push(format!("{} was never told", part.step)),
                _ => {}
            }
        }
    }
    if world.store != world.stamped() {
        wrongs.push("the store does not say what the stamps say".to_owned());
    }
    wrongs
}

fn first_wrong(catalog: Catalog, protocol: Protocol) -> Option<(u64, Vec<String>)> {
    let wrong =
        |seed: u64| Some((seed, wrongs(&World::new(seed, catalog, protocol)))).filter(|(_, found)| !found.is_empty());
    (1..=seeds()).find_map(wrong)
}

fn assert_sound(protocol: Protocol) {
    for catalog in [Catalog::Sqlite, Catalog::Postgres] {
        assert_eq!(first_wrong(catalog, protocol), None, "{catalog:?}");
    }
}

/// Asserts that some seed finds the protocol wrong in the way that `because` says.
fn assert_missed(catalog: Catalog, protocol: Protocol, because: &str) {
    let found = (1..=seeds()).flat_map(|seed| wrongs(&World::new(seed, catalog, protocol)));
    assert!(found.into_iter().any(|wrong| wrong.contains(because)), "nobody misses it: {catalog:?} {protocol:?}");
}

#[test]
fn no_write_is_lost_doubled_or_stale_whatever_crashes() {
    assert_sound(Protocol::WHOLE);
}

#[test]
fn the_schedules_are_rough_enough_to_mean_something() {
    let mut counts = [0_usize; 4];
    let mut dead = 0;
    for seed in 1..=SEEDS {
        let world = World::new(seed, Catalog::Postgres, Protocol::WHOLE);
        dead += world.writers.iter().filter(|writer| writer.is_dead).count();
        for told in world.writers.iter().flat_map(|writer| &writer.parts).filter_map(|part| part.told) {
            counts[told as usize] += 1;
        }
    }
    let seeds = usize::try_from(SEEDS).expect("they are few");
    assert!(counts[Told::Landed as usize] > 5 * seeds, "{counts:?}");
    assert!(counts[Told::Superseded as usize] > seeds, "{counts:?}");
    assert!(dead > seeds, "{dead} died");
}

#[test]
fn without_leases_work_is_in_vain_but_nothing_is_lost() {
    assert_sound(Protocol { leases: false, ..Protocol::WHOLE });
}

#[test]
fn without_the_check_older_data_land_on_newer() {
    for catalog in [Catalog::Sqlite, Catalog::Postgres] {
        let protocol = Protocol { checks: false, ..Protocol::WHOLE };
        assert_missed(catalog, protocol, "landed on a newer version");
        assert_missed(catalog, protocol, "increments have counted to");
        assert_missed(catalog, protocol, "a step landed twice");
    }
}

#[test]
fn without_its_check_an_atomic_run_appends_what_another_run_has_appended() {
    for catalog in [Catalog::Sqlite, Catalog::Postgres] {
        let protocol = Protocol { checks_atomic: false, ..Protocol::WHOLE };
        assert_missed(catalog, protocol, "landed on a newer version");
        assert_missed(catalog, protocol, "a step landed twice");
    }
}

#[test]
fn without_the_fence_two_writes_that_delete_nothing_both_land() {
    let protocol = Protocol { fence: Fence::Never, ..Protocol::WHOLE };
    assert_missed(Catalog::Postgres, protocol, "rows were lost or doubled");
    assert_eq!(first_wrong(Catalog::Sqlite, protocol), None, "on SQLite every transaction is alone");
}

#[test]
fn a_fence_for_mere_inserts_does_not_see_a_table_that_is_made_anew() {
    let protocol = Protocol { fence: Fence::WhenOnlyInserting, ..Protocol::WHOLE };
    assert_missed(Catalog::Postgres, protocol, "rows were lost or doubled");
}

#[test]
fn a_foreign_insert_into_a_table_that_is_made_anew_at_that_moment_is_a_known_loss_on_postgres_only() {
    let protocol = Protocol { spares_foreigners: false, ..Protocol::WHOLE };
    assert_missed(Catalog::Postgres, protocol, "rows were lost or doubled");
    assert_eq!(first_wrong(Catalog::Sqlite, protocol), None);
}

#[test]
fn without_the_look_up_a_commit_that_stored_nothing_is_told_as_landed() {
    for catalog in [Catalog::Sqlite, Catalog::Postgres] {
        let protocol = Protocol { looks_up: false, ..Protocol::WHOLE };
        assert_missed(catalog, protocol, "is told as landed, and is not");
    }
}

#[test]
fn a_base_that_moves_after_a_lost_connection_hides_what_others_did() {
    for catalog in [Catalog::Sqlite, Catalog::Postgres] {
        let protocol = Protocol { moves_base_blindly: true, ..Protocol::WHOLE };
        assert!(first_wrong(catalog, protocol).is_some(), "nobody misses it: {catalog:?}");
    }
}

#[test]
fn without_healing_a_crash_after_the_commit_is_forgotten() {
    for catalog in [Catalog::Sqlite, Catalog::Postgres] {
        let protocol = Protocol { heals: false, ..Protocol::WHOLE };
        assert_missed(catalog, protocol, "the store does not say what the stamps say");
    }
}
