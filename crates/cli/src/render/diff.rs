//! What differs between two versions: the columns, the numbers, and a sample of rows with what stood there before.

use pintail_core::sql::diff::ShapeChange;
use pintail_runner::pintail::{AssetDiff, Compared, DiffRow, RowChange, RowDiff};
use serde_json::{Map, Value, json};

use super::table::{Align, listing};
use super::text::{count, thousands};

/// Returns a comparison for people.
pub fn of_asset(diff: &AssetDiff) -> String {
    let slice = diff.partition.as_ref().map_or_else(String::new, |key| format!(" [{key}]"));
    let mut text = format!("{}{slice}: snapshot {} -> {}\n", diff.asset, diff.from, diff.to);
    for change in &diff.shape {
        text.push_str(&format!("  column {change}\n"));
    }
    text.push_str(&rows(&diff.rows));
    text
}

/// Returns a comparison of rows for people.
pub fn rows(diff: &RowDiff) -> String {
    let mut text = format!("  {}\n", sentence(diff));
    if !diff.sample.is_empty() {
        text.push('\n');
        text.push_str(&sample(diff));
    }
    text
}

/// Returns the numbers in one line.
fn sentence(diff: &RowDiff) -> String {
    match diff.compared {
        Compared::ByCommits => return "the same: no commit in between touched it".to_owned(),
        Compared::ByFingerprint => {
            let rows = diff.same.map_or_else(String::new, |rows| format!(": {}", count_rows(rows)));
            return format!("the same{rows}, with equal fingerprints");
        }
        Compared::ByRows if diff.is_empty() => {
            let rows = diff.same.map_or_else(String::new, |rows| format!(": {}", count_rows(rows)));
            return format!("no row differs{rows}, in the columns of both");
        }
        Compared::ByRows => {}
    }
    let numbers = [(Some(diff.added), "added"), (Some(diff.removed), "removed"), (Some(diff.changed), "changed")];
    let mut parts: Vec<String> = numbers
        .into_iter()
        .filter_map(|(number, word)| number.filter(|number| 0 < *number).map(|number| (number, word)))
        .map(|(number, word)| format!("{} {word}", thousands(number)))
        .collect();
    parts.extend(diff.same.map(|same| format!("{} the same", thousands(same))));
    let by = match diff.key.as_slice() {
        [] => "as whole rows".to_owned(),
        key => format!("by {}", key.join(", ")),
    };
    format!("rows: {} (compared {by})", parts.join(", "))
}

fn count_rows(rows: u64) -> String {
    count(usize::try_from(rows).unwrap_or(usize::MAX), "row")
}

fn sample(diff: &RowDiff) -> String {
    let mut columns = vec![("", Align::Left)];
    columns.extend(diff.columns.iter().map(|name| (name.as_str(), Align::Left)));
    let has_times = diff.sample.iter().any(|row| 1 < row.times);
    if has_times {
        columns.push(("times", Align::Right));
    }
    let line = |row: &DiffRow| {
        let mut cells = vec![sign(row.change).to_owned()];
        cells.extend((0..diff.columns.len()).map(|place| cell(row, place)));
        if has_times {
            cells.push(thousands(row.times));
        }
        cells
    };
    listing(&columns, diff.sample.iter().map(line).collect())
}

fn sign(change: RowChange) -> &'static str {
    match change {
        RowChange::Added => "+",
        RowChange::Removed => "-",
        RowChange::Changed => "~",
    }
}

/// A value, or what it was and what it is.
fn cell(row: &DiffRow, place: usize) -> String {
    let value = |side: &Option<Vec<Option<String>>>| side.as_ref().map(|values| text(values[place].as_deref()));
    match (value(&row.before), value(&row.after)) {
        (Some(before), Some(after)) if before != after => format!("{before} -> {after}"),
        (before, after) => after.or(before).unwrap_or_default(),
    }
}

fn text(value: Option<&str>) -> String {
    // A cell is one line.
    value.map_or_else(|| "NULL".to_owned(), |value| value.replace('\n', "\\n").replace('\t', "\\t"))
}

/// Returns a comparison for machines.
pub fn asset_json(diff: &AssetDiff) -> Value {
    json!({
        "asset": diff.asset.to_string(),
        "partition": diff.partition.as_ref().map(ToString::to_string),
        "from": diff.from.0,
        "to": diff.to.0,
        "is_same": diff.is_empty(),
        "columns": diff.shape.iter().map(shape_json).collect::<Vec<_>>(),
        "rows": rows_json(&diff.rows),
    })
}

fn shape_json(change: &ShapeChange) -> Value {
    match change {
        ShapeChange::Added(column) => json!({"change": "added", "column": column.name, "type": column.data_type}),
        ShapeChange::Removed(column) => json!({"change": "removed", "column": column.name, "type": column.data_type}),
        ShapeChange::Retyped { column, from, to } => {
            json!({"change": "retyped", "column": column, "from": from, "to": to})
        }
    }
}

/// Returns a comparison of rows for machines.
pub fn rows_json(diff: &RowDiff) -> Value {
    let compared = match diff.compared {
        Compared::ByCommits => "commits",
        Compared::ByFingerprint => "fingerprint",
        Compared::ByRows => "rows",
    };
    json!({
        "compared_by": compared,
        "key": diff.key,
        "added": diff.added,
        "removed": diff.removed,
        "changed": diff.changed,
        "same": diff.same,
        "sample": diff.sample.iter().map(|row| row_json(&diff.columns, row)).collect::<Vec<_>>(),
    })
}

fn row_json(columns: &[String], row: &DiffRow) -> Value {
    let change = match row.change {
        RowChange::Added => "added",
        RowChange::Removed => "removed",
        RowChange::Changed => "changed",
    };
    let object = |side: &Option<Vec<Option<String>>>| {
        side.as_ref()
            .map(|values| columns.iter().cloned().zip(values.iter().map(|value| json!(value))).collect::<Map<_, _>>())
    };
    json!({"change": change, "times": row.times, "before": object(&row.before), "after": object(&row.after)})
}
