//! Mapping between the partitions of the two ends of an edge, and of the argument of `run --partition`.
//!
//! Invariant: two partitions belong together exactly when their windows share time. So every pair of kinds and zones
//! maps, also weeks onto months or days of one zone onto days of another, and no row is left out on the way.
//!
//! Not here: whether the upstream partitions of a `coarsen` are present; that is a fact of the planner's.

use chrono::{DateTime, TimeDelta, TimeZone, Utc};

use super::parse::Spelled;
use super::period::Period;
use super::{PartitionError, PartitionKey, Partitions, TimeSpec, TimeUnit, Window};
use crate::annotation::PartitionMap;

/// What one upstream partition means for a downstream script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The downstream partitions that read it.
    pub targets: Targets,
    /// Whether each target waits until all of its [`required_partitions`] are present (`coarsen`).
    pub awaits_all: bool,
}

/// Partitions of one script; those that depend on the clock stay symbolic until [`Targets::resolve`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Exactly these.
    These(Partitions),
    /// The last closed one.
    Latest,
    /// Every one that is expected.
    All,
}

impl Targets {
    /// Returns the partitions of `spec` that are meant at `now`.
    pub fn resolve(self, spec: &TimeSpec, now: DateTime<Utc>) -> Result<Partitions, PartitionError> {
        match self {
            Targets::These(partitions) => Ok(partitions),
            Targets::All => Ok(spec.expected(now)),
            Targets::Latest => {
                let latest = spec.last_closed(now);
                spec.range(&latest, &latest)
            }
        }
    }
}

/// Returns the mapping of an edge that declares none.
///
/// Equal kinds in equal zones map one to one, a coarser upstream fans out, an unpartitioned one feeds the latest
/// partition; everything else is `coarsen`, also two zones, whose days overlap in two.
pub fn infer_map(upstream: Option<&TimeSpec>, downstream: &TimeSpec) -> PartitionMap {
    let Some(upstream) = upstream else { return PartitionMap::Latest };
    if same_calendar(upstream, downstream) {
        PartitionMap::Identity
    } else if downstream.unit < upstream.unit {
        PartitionMap::FanOut
    } else {
        PartitionMap::Coarsen
    }
}

/// Returns whether a declared mapping fits the two ends of its edge.
pub fn check_map(upstream: Option<&TimeSpec>, downstream: &TimeSpec, map: PartitionMap) -> Result<(), PartitionError> {
    let mismatch = |reason: String| Err(PartitionError::MapMismatch { map, reason });
    let Some(upstream) = upstream else {
        return match map {
            PartitionMap::All | PartitionMap::Latest => Ok(()),
            _ => mismatch("the upstream has no time partitions; use `all` or `latest`".into()),
        };
    };
    let (up, down) = (upstream.unit.word(), downstream.unit.word());
    match map {
        PartitionMap::Identity if upstream.unit != downstream.unit => {
            mismatch(format!("the upstream is {up} and the script {down}"))
        }
        PartitionMap::Identity if !same_calendar(upstream, downstream) => {
            mismatch(format!("the upstream counts in {} and the script in {}", upstream.zone(), downstream.zone()))
        }
        PartitionMap::Coarsen | PartitionMap::Partial if downstream.unit < upstream.unit => {
            mismatch(format!("the upstream is {up}, coarser than the {down} script; use `fan_out`"))
        }
        PartitionMap::FanOut if upstream.unit < downstream.unit => {
            mismatch(format!("the upstream is {up}, finer than the {down} script; use `coarsen` or `partial`"))
        }
        _ => Ok(()),
    }
}

/// Returns which partitions of `downstream` read the upstream partition `key`, and so run after it.
///
/// `upstream` is `None` when the upstream is not partitioned by time, `key` is `None` when it was written as a whole.
/// Under `lookback=N` these are the partition and the N after it, future ones included.
pub fn map_partitions(
    upstream: Option<&TimeSpec>,
    key: Option<&PartitionKey>,
    downstream: &TimeSpec,
    map: PartitionMap,
) -> Result<Mapping, PartitionError> {
    check_map(upstream, downstream, map)?;
    let targets = match (map, upstream, key) {
        (PartitionMap::All, ..) => Targets::All,
        (PartitionMap::Latest, ..) => Targets::Latest,
        (_, Some(upstream), Some(key)) => {
            let window = upstream.window(key)?;
            let end = steps_forward(downstream, window.end, lookback(map));
            Targets::These(downstream.overlapping(Window { start: window.start, end }))
        }
        // Written as a whole: every slice of it may have changed.
        _ => Targets::All,
    };
    Ok(Mapping { targets, awaits_all: map == PartitionMap::Coarsen })
}

/// Returns which partitions of `upstream` the downstream partition `key` reads.
///
/// [`Targets::All`] and [`Targets::Latest`] are about the upstream's partitions here.
pub fn required_partitions(
    upstream: &TimeSpec,
    downstream: &TimeSpec,
    key: &PartitionKey,
    map: PartitionMap,
) -> Result<Targets, PartitionError> {
    check_map(Some(upstream), downstream, map)?;
    match map {
        PartitionMap::All => Ok(Targets::All),
        PartitionMap::Latest => Ok(Targets::Latest),
        _ => {
            let window = downstream.window(key)?;
            let start = steps_back(downstream, window.start, lookback(map));
            Ok(Targets::These(upstream.overlapping(Window { start, end: window.end })))
        }
    }
}

/// Returns the partitions of `spec` that the argument of `run --partition` means.
///
/// The argument may be of another kind than the script: a finer one means the partition that holds it, a coarser one
/// all its parts; days, weeks and months are those of the script's own zone. An hour without an offset is an hour of
/// UTC; where the script's zone would give another answer the offset is asked for.
pub fn translate_argument(text: &str, spec: &TimeSpec) -> Result<Partitions, PartitionError> {
    match spec.read(text)? {
        Spelled::Hour { start, offset } => translate_hour(text, spec, start, offset),
        Spelled::Dates(period) if period.unit() != spec.unit => {
            let as_written = TimeSpec { unit: period.unit(), ..spec.clone() };
            Ok(spec.overlapping(as_written.window_of(period, text)?))
        }
        _ => {
            let (_, window) = spec.period_and_window(text)?;
            Ok(spec.overlapping(window))
        }
    }
}

fn translate_hour(
    text: &str,
    spec: &TimeSpec,
    start: chrono::NaiveDateTime,
    offset: Option<i32>,
) -> Result<Partitions, PartitionError> {
    if spec.unit == TimeUnit::Hour && (offset.is_none() || !spec.is_utc()) {
        // Of the script's own kind, unless the offset is another zone's.
        match spec.period_and_window(text) {
            Ok((_, window)) => return Ok(spec.overlapping(window)),
            Err(error) if offset.is_none() => return Err(error),
            Err(_) => {}
        }
    }
    let hour_at = |offset: i32| {
        let start = (start - TimeDelta::seconds(offset.into())).and_utc();
        spec.overlapping(Window { start, end: start + TimeDelta::hours(1) })
    };
    let Some(offset) = offset else {
        let in_utc = hour_at(0);
        let local = spec.zone().from_local_datetime(&start).earliest();
        let agrees = local.is_some_and(|local| spec.key_of(local.to_utc()) == spec.key_of(start.and_utc()));
        return if agrees { Ok(in_utc) } else { Err(spec.needs_offset(text, start)) };
    };
    Ok(hour_at(offset))
}

impl TimeSpec {
    /// Returns the time of the upstream that the partition with `window` reads under `map`.
    pub fn reach_back(&self, window: Window, map: PartitionMap) -> Window {
        Window { start: steps_back(self, window.start, lookback(map)), end: window.end }
    }

    /// Returns the time of this script's partitions that read what an upstream holds of `window`, under `map`.
    pub fn reach_forward(&self, window: Window, map: PartitionMap) -> Window {
        Window { start: window.start, end: steps_forward(self, window.end, lookback(map)) }
    }
}

fn same_calendar(one: &TimeSpec, other: &TimeSpec) -> bool {
    let same_zone = one.zone() == other.zone() || (one.is_utc() && other.is_utc());
    one.unit == other.unit && same_zone
}

fn lookback(map: PartitionMap) -> u32 {
    match map {
        PartitionMap::Lookback(before) => before,
        _ => 0,
    }
}

/// Returns an end that reaches into the `count`-th partition after the last one that begins before `end`.
fn steps_forward(spec: &TimeSpec, end: DateTime<Utc>, count: u32) -> DateTime<Utc> {
    (0..count).fold(end, |end, _| {
        let (_, last) = Period::with_window(spec.unit, spec.zone(), end - TimeDelta::nanoseconds(1));
        last.end + TimeDelta::nanoseconds(1)
    })
}

/// Returns where the `count`-th partition before the one that begins at `start` begins.
fn steps_back(spec: &TimeSpec, start: DateTime<Utc>, count: u32) -> DateTime<Utc> {
    (0..count)
        .fold(start, |start, _| Period::with_window(spec.unit, spec.zone(), start - TimeDelta::nanoseconds(1)).1.start)
}
