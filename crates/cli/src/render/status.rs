//! The states of slices: how many of each script are in which, why, and from where to where.

use pintail_core::plan::{SliceRange, State};
use pintail_runner::pintail::ScriptStatus;
use serde_json::{Value, json};

use super::table::{Align, listing};
use super::text::{or_dash, thousands};

/// The slices of one script that are in one state for one reason.
struct Group<'a> {
    state: State,
    reason: String,
    count: u64,
    first: Option<&'a str>,
    last: Option<&'a str>,
}

/// Returns one line for each script and state.
pub fn groups(statuses: &[ScriptStatus]) -> String {
    let rows = statuses.iter().flat_map(|status| {
        let groups = groups_of(&status.ranges);
        if groups.is_empty() {
            return vec![empty_row(status)];
        }
        groups.iter().map(|group| row(status, group)).collect()
    });
    table(rows.collect())
}

/// Returns one line for each range of partitions.
pub fn partitions(statuses: &[ScriptStatus]) -> String {
    let rows = statuses.iter().flat_map(|status| {
        if status.ranges.is_empty() {
            return vec![empty_row(status)];
        }
        status.ranges.iter().map(|range| row(status, &group_of(range))).collect::<Vec<_>>()
    });
    table(rows.collect())
}

fn table(rows: Vec<Vec<String>>) -> String {
    let columns = [
        ("script", Align::Left),
        ("asset", Align::Left),
        ("state", Align::Left),
        ("slices", Align::Right),
        ("from", Align::Left),
        ("to", Align::Left),
        ("why", Align::Left),
    ];
    listing(&columns, rows)
}

fn row(status: &ScriptStatus, group: &Group<'_>) -> Vec<String> {
    vec![
        status.script.to_string(),
        or_dash(status.asset.as_ref()),
        group.state.to_string(),
        thousands(group.count),
        or_dash(group.first),
        or_dash(group.last),
        group.reason.clone(),
    ]
}

/// A script without any slice: it does not run, or no value of its payload has come yet.
fn empty_row(status: &ScriptStatus) -> Vec<String> {
    let why = status.left_out.as_ref().map_or_else(|| "no partition was written yet".to_owned(), Clone::clone);
    let asset = or_dash(status.asset.as_ref());
    vec![status.script.to_string(), asset, "-".to_owned(), "0".to_owned(), "-".to_owned(), "-".to_owned(), why]
}

fn group_of(range: &SliceRange) -> Group<'_> {
    Group {
        state: range.state,
        reason: range.reason.as_ref().map(ToString::to_string).unwrap_or_default(),
        count: range.count,
        first: range.first.as_ref().map(|key| key.as_str()),
        last: range.last.as_ref().map(|key| key.as_str()),
    }
}

/// Returns the ranges by state and reason, the worst state first.
fn groups_of(ranges: &[SliceRange]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for next in ranges.iter().map(group_of) {
        match groups.iter_mut().find(|group| group.state == next.state && group.reason == next.reason) {
            Some(group) => {
                group.count += next.count;
                group.last = next.last;
            }
            None => groups.push(next),
        }
    }
    groups.sort_by_key(|group| State::ALL.iter().position(|(state, _)| *state == group.state));
    groups
}

/// Returns the states for machines.
pub fn to_json(statuses: &[ScriptStatus]) -> Value {
    let range = |range: &SliceRange| {
        json!({
            "state": range.state.word(),
            "reason": range.reason.as_ref().map(ToString::to_string),
            "due": range.is_due,
            "slices": range.count,
            "from": range.first.as_ref().map(|key| key.as_str()),
            "to": range.last.as_ref().map(|key| key.as_str()),
        })
    };
    let script = |status: &ScriptStatus| {
        json!({
            "script": status.script.as_str(),
            "asset": status.asset.as_ref().map(ToString::to_string),
            "partitioned": status.is_partitioned,
            "left_out": status.left_out,
            "ranges": status.ranges.iter().map(range).collect::<Vec<_>>(),
        })
    };
    json!({"scripts": statuses.iter().map(script).collect::<Vec<_>>()})
}
