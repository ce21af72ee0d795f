//! The tiling of time as a property over many zones.

use chrono_tz::TZ_VARIANTS;
use proptest::prelude::*;

use super::*;
use crate::annotation::PartitionMap;
use crate::partition::zone;

fn any_zone() -> impl Strategy<Value = Tz> {
    // The odd ones as often as all others together.
    let odd = [
        "Pacific/Apia",
        "America/Santiago",
        "Australia/Lord_Howe",
        "America/St_Johns",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ];
    let odd: Vec<Tz> = odd.iter().map(|name| name.parse().expect("a known zone")).collect();
    prop_oneof![prop::sample::select(TZ_VARIANTS.to_vec()), prop::sample::select(odd)]
}

fn any_unit() -> impl Strategy<Value = TimeUnit> {
    prop::sample::select(vec![TimeUnit::Hour, TimeUnit::Day, TimeUnit::Week, TimeUnit::Month])
}

/// Instants from 1800 to 2150, in milliseconds.
fn any_instant() -> impl Strategy<Value = DateTime<Utc>> {
    (-5_364_662_400_000_i64..5_680_281_600_000)
        .prop_map(|millis| DateTime::from_timestamp_millis(millis).expect("in range"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_instant_lies_in_the_window_of_its_key(unit in any_unit(), zone in any_zone(), instant in any_instant()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None, retention: None };
        let key = spec.key_of(instant);
        let window = spec.window(&key).unwrap();
        prop_assert!(window.start <= instant && instant < window.end);
        prop_assert_eq!(spec.parse_key(key.as_str()), Ok(key.clone()));
        prop_assert_eq!(spec.key_of(window.start), key.clone());
        prop_assert_eq!(spec.key_of(window.end - TimeDelta::nanoseconds(1)), key);
    }

    #[test]
    fn windows_tile_time(unit in any_unit(), zone in any_zone(), instant in any_instant()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None, retention: None };
        let mut key = spec.key_of(instant);
        for _ in 0..40 {
            let next = spec.next(&key).unwrap();
            prop_assert_eq!(spec.window(&key).unwrap().end, spec.window(&next).unwrap().start);
            prop_assert_eq!(spec.previous(&next).unwrap(), key);
            key = next;
        }
    }

    #[test]
    fn counting_equals_walking(unit in any_unit(), zone in any_zone(), start in any_instant(), steps in 0_i64..60) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None, retention: None };
        let length = match unit {
            TimeUnit::Hour => TimeDelta::hours(steps),
            TimeUnit::Day => TimeDelta::days(steps),
            TimeUnit::Week => TimeDelta::weeks(steps),
            TimeUnit::Month => TimeDelta::days(30 * steps),
        };
        let partitions = spec.overlapping(Window { start, end: start + length });
        prop_assert_eq!(partitions.remaining(), partitions.fold(0, |count, _| count + 1));
    }

    #[test]
    fn keys_are_safe_in_paths_and_shells(unit in any_unit(), zone in any_zone(), instant in any_instant()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None, retention: None };
        let key = spec.key_of(instant);
        prop_assert!(key.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'+'));
    }

    #[test]
    fn a_required_partition_maps_back(
        up in (any_unit(), any_zone()), down in (any_unit(), any_zone()), instant in any_instant(), before in 0_u32..3,
    ) {
        let upstream = TimeSpec { unit: up.0, by: None, tz: Some(up.1), start: None, retention: None };
        let downstream = TimeSpec { unit: down.0, by: None, tz: Some(down.1), start: None, retention: None };
        let map = if before == 0 { infer_map(Some(&upstream), &downstream) } else { PartitionMap::Lookback(before) };
        let slice = downstream.key_of(instant);
        let Targets::These(required) = required_partitions(&upstream, &downstream, &slice, map).unwrap() else {
            return Err(TestCaseError::fail("inferred maps are explicit"));
        };
        for key in required.take(5) {
            let mapping = map_partitions(Some(&upstream), Some(&key), &downstream, map).unwrap();
            let Targets::These(mut targets) = mapping.targets else { return Err(TestCaseError::fail("explicit")) };
            prop_assert!(targets.any(|target| target == slice), "{key} does not lead back to {slice}");
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,24}", unit in any_unit(), zone in any_zone()) {
        let spec = TimeSpec { unit, by: None, tz: Some(zone), start: None, retention: None };
        let _ = spec.parse_key(&text);
        let _ = translate_argument(&text, &spec);
    }
}

#[test]
fn every_change_of_every_clock_lies_between_windows_or_inside_one() {
    // The days around every change of offset, where tiling is most easily broken.
    let (first, last) = (at("1990-01-01T00:00:00Z"), at("2030-01-01T00:00:00Z"));
    let changed = |zone, from, to| zone::offset_at(zone, from) != zone::offset_at(zone, to);
    for zone in TZ_VARIANTS {
        let days = TimeSpec { unit: TimeUnit::Day, by: None, tz: Some(zone), start: None, retention: None };
        let hours = TimeSpec { unit: TimeUnit::Hour, ..days.clone() };
        let mut week = first;
        while week < last {
            let next_week = week + TimeDelta::days(7);
            if changed(zone, week, next_week) {
                assert_tiles(&days, week, next_week);
                for day in (0..7).map(|day| week + TimeDelta::days(day)) {
                    if changed(zone, day, day + TimeDelta::days(1)) {
                        assert_tiles(&hours, day, day + TimeDelta::days(1));
                    }
                }
            }
            week = next_week;
        }
    }
}

fn assert_tiles(spec: &TimeSpec, from: DateTime<Utc>, to: DateTime<Utc>) {
    let mut end: Option<DateTime<Utc>> = None;
    for key in spec.overlapping(Window { start: from, end: to }) {
        let window = spec.window(&key).unwrap();
        assert!(window.start < window.end, "{key} is empty in {}", spec.zone());
        assert_eq!(spec.key_of(window.start), key, "in {}", spec.zone());
        if let Some(end) = end {
            assert_eq!(end, window.start, "{key} does not follow in {}", spec.zone());
        }
        end = Some(window.end);
    }
    assert!(end.is_some_and(|end| to <= end));
}
