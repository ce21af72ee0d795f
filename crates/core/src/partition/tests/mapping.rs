//! Partitions across an edge, and arguments of another kind.

use expect_test::{Expect, expect};

use super::*;
use crate::annotation::PartitionMap;

fn check_map_of(up: Option<&TimeSpec>, upstream: &str, down: &TimeSpec, map: PartitionMap, expect: Expect) {
    let text = match map_partitions(up, Some(&key(upstream)), down, map) {
        Ok(Mapping { targets: Targets::These(partitions), awaits_all }) => {
            format!("{}{}", texts(partitions), if awaits_all { " when all are present" } else { "" })
        }
        Ok(mapping) => format!("{:?}", mapping.targets),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&text);
}

#[test]
fn mappings_are_inferred_from_the_kinds_and_zones() {
    let hourly = spec(TimeUnit::Hour, "");
    let daily = spec(TimeUnit::Day, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    assert_eq!(infer_map(Some(&daily), &daily), PartitionMap::Identity);
    assert_eq!(infer_map(Some(&spec(TimeUnit::Day, "Etc/UTC")), &daily), PartitionMap::Identity);
    assert_eq!(infer_map(Some(&hourly), &daily), PartitionMap::Coarsen);
    assert_eq!(infer_map(Some(&daily), &hourly), PartitionMap::FanOut);
    assert_eq!(infer_map(Some(&daily), &local), PartitionMap::Coarsen);
    assert_eq!(infer_map(None, &daily), PartitionMap::Latest);
}

#[test]
fn an_upstream_partition_maps_to_all_that_share_its_time() {
    let hourly = spec(TimeUnit::Hour, "");
    let daily = spec(TimeUnit::Day, "");
    let weekly = spec(TimeUnit::Week, "");
    let monthly = spec(TimeUnit::Month, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    let day = "2026-05-16";
    check_map_of(Some(&daily), day, &daily, PartitionMap::Identity, expect!["2026-05-16"]);
    check_map_of(
        Some(&hourly),
        "2026-05-16T23",
        &daily,
        PartitionMap::Coarsen,
        expect!["2026-05-16 when all are present"],
    );
    check_map_of(Some(&hourly), "2026-05-16T23", &daily, PartitionMap::Partial, expect!["2026-05-16"]);
    check_map_of(
        Some(&monthly),
        "2026-02",
        &weekly,
        PartitionMap::FanOut,
        expect!["2026-W05 2026-W06 2026-W07 2026-W08 2026-W09"],
    );
    check_map_of(
        Some(&weekly),
        "2026-W18",
        &monthly,
        PartitionMap::Coarsen,
        expect!["2026-04 2026-05 when all are present"],
    );
    check_map_of(
        Some(&daily),
        day,
        &local,
        PartitionMap::Coarsen,
        expect!["2026-05-15 2026-05-16 when all are present"],
    );
    check_map_of(Some(&daily), day, &daily, PartitionMap::Lookback(2), expect!["2026-05-16 2026-05-17 2026-05-18"]);
    check_map_of(Some(&daily), day, &daily, PartitionMap::All, expect!["All"]);
    check_map_of(Some(&daily), day, &daily, PartitionMap::Latest, expect!["Latest"]);
}

#[test]
fn a_mapping_that_does_not_fit_says_what_would() {
    let hourly = spec(TimeUnit::Hour, "");
    let daily = spec(TimeUnit::Day, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    check_map_of(
        Some(&hourly),
        "2026-05-16T23",
        &daily,
        PartitionMap::Identity,
        expect!["`map=identity` does not fit: the upstream is hourly and the script daily"],
    );
    check_map_of(
        Some(&daily),
        "2026-05-16",
        &local,
        PartitionMap::Identity,
        expect!["`map=identity` does not fit: the upstream counts in UTC and the script in America/New_York"],
    );
    check_map_of(
        Some(&daily),
        "2026-05-16",
        &hourly,
        PartitionMap::Coarsen,
        expect!["`map=coarsen` does not fit: the upstream is daily, coarser than the hourly script; use `fan_out`"],
    );
    check_map_of(
        Some(&hourly),
        "2026-05-16T23",
        &daily,
        PartitionMap::FanOut,
        expect![
            "`map=fan_out` does not fit: the upstream is hourly, finer than the daily script; use `coarsen` or `partial`"
        ],
    );
    check_map_of(
        None,
        "eu",
        &daily,
        PartitionMap::Lookback(2),
        expect!["`map=lookback=2` does not fit: the upstream has no time partitions; use `all` or `latest`"],
    );
}

#[test]
fn an_upstream_written_as_a_whole_touches_every_partition() {
    let daily = spec(TimeUnit::Day, "");
    let mapping = map_partitions(Some(&daily), None, &daily, PartitionMap::Identity).unwrap();
    assert_eq!(mapping.targets, Targets::All);
}

#[test]
fn required_partitions_are_what_a_slice_reads() {
    let required =
        |up: &TimeSpec, down: &TimeSpec, text: &str, map| match required_partitions(up, down, &key(text), map) {
            Ok(Targets::These(partitions)) => format!("{} {}", partitions.remaining(), texts(partitions)),
            other => format!("{other:?}"),
        };
    let daily = spec(TimeUnit::Day, "");
    let local = spec(TimeUnit::Day, "America/New_York");
    let hours = required(&spec(TimeUnit::Hour, "America/New_York"), &local, "2026-03-08", PartitionMap::Coarsen);
    assert!(hours.starts_with("23 2026-03-08T00-0500 2026-03-08T01-0500 2026-03-08T03-0400 "), "{hours}");
    assert_eq!(required(&daily, &local, "2026-05-16", PartitionMap::Coarsen), "2 2026-05-16 2026-05-17");
    assert_eq!(required(&daily, &daily, "2026-03-01", PartitionMap::Lookback(2)), "3 2026-02-27 2026-02-28 2026-03-01");
    assert_eq!(required(&daily, &daily, "2026-03-01", PartitionMap::All), "Ok(All)");
}

#[test]
fn symbolic_targets_are_resolved_against_the_clock() {
    let daily = TimeSpec { start: Some(date("2026-05-13")), ..spec(TimeUnit::Day, "") };
    let resolve = |targets: Targets| texts(targets.resolve(&daily, at("2026-05-16T12:00:00Z")).unwrap());
    assert_eq!(resolve(Targets::Latest), "2026-05-15");
    assert_eq!(resolve(Targets::All), "2026-05-13 2026-05-14 2026-05-15");
}

#[test]
fn an_argument_of_another_kind_is_translated() {
    let translate = |unit, zone: &str, text: &str| match translate_argument(text, &spec(unit, zone)) {
        Ok(partitions) if 6 < partitions.remaining() => {
            let count = partitions.remaining();
            let mut partitions = partitions;
            format!("{} … {count} in all\n", partitions.next().unwrap())
        }
        Ok(partitions) => format!("{}\n", texts(partitions)),
        Err(error) => format!("{error}\n"),
    };
    let ny = "America/New_York";
    let lines = [
        translate(TimeUnit::Day, "", "2026-05-16"),
        translate(TimeUnit::Day, "", "2026-05-16T09"),
        translate(TimeUnit::Day, "", "2026-05-16T23-0400"),
        translate(TimeUnit::Day, "", "2026-05"),
        translate(TimeUnit::Hour, ny, "2026-11-01"),
        translate(TimeUnit::Month, ny, "2026-05-16"),
        translate(TimeUnit::Week, "", "2026-05-16"),
        translate(TimeUnit::Month, "", "2026-W18"),
        translate(TimeUnit::Hour, "Asia/Kolkata", "2026-05-16T09-0400"),
        translate(TimeUnit::Hour, "", "2026-05-16T09-0400"),
        translate(TimeUnit::Hour, ny, "2026-05-16T09"),
        translate(TimeUnit::Day, ny, "2026-05-16T09"),
        translate(TimeUnit::Day, ny, "2026-05-16T02"),
        translate(TimeUnit::Day, "Pacific/Apia", "2011-12-30"),
        translate(TimeUnit::Hour, "Pacific/Apia", "2011-12-30"),
        translate(TimeUnit::Day, "", "yesterday"),
    ];
    expect![[r#"
        2026-05-16
        2026-05-16
        2026-05-17
        2026-05-01 … 31 in all
        2026-11-01T00-0400 … 25 in all
        2026-05
        2026-W20
        2026-04 2026-05
        2026-05-16T18+0530 2026-05-16T19+0530
        2026-05-16T13
        `2026-05-16T09` has no offset and the script counts in America/New_York: write `2026-05-16T09-0400`
        2026-05-16
        `2026-05-16T02` has no offset and the script counts in America/New_York: write `2026-05-16T02-0400`
        there is no partition `2011-12-30`: the clock of Pacific/Apia skipped that date
        there is no partition `2011-12-30`: the clock of Pacific/Apia skipped that date
        `yesterday` is no daily partition: expected `YYYY-MM-DD`, such as `2026-05-16`
    "#]]
    .assert_eq(&lines.concat());
}
