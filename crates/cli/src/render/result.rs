//! The result of a query as a table, as CSV, or as JSON rows.
//!
//! NULL is the bare word; text that reads `NULL` is quoted, so that the two can be told apart without colour.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use comfy_table::{Cell, CellAlignment, Table, TableComponent, presets};
use pintail_engine::EngineError;
use pintail_engine::result::ResultSet;
use unicode_width::UnicodeWidthStr as _;

use super::table::trim_lines;
use super::text::shortened;

/// What is left of a wide cell at least.
const NARROWEST: usize = 10;

/// A drawn table and what it leaves out.
pub struct Drawn {
    /// The table.
    pub text: String,
    /// How many columns do not fit.
    pub hidden_columns: usize,
}

/// Draws `result`, shortened to `width` when that is known.
pub fn draw(result: &ResultSet, width: Option<u16>, has_color: bool) -> Result<Drawn, EngineError> {
    let names = result.column_names();
    let is_number: Vec<bool> = result.schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
    let rows: Vec<Vec<String>> =
        result.text_rows()?.into_iter().map(|row| row.into_iter().map(cell_text).collect()).collect();
    let natural: Vec<usize> = (0..names.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].width());
            cells.chain([names[column].width()]).max().unwrap_or(0)
        })
        .collect();
    let fit = fit(&natural, width.map(usize::from));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    for (component, symbol) in [
        (TableComponent::VerticalLines, ' '),
        (TableComponent::HeaderLines, '─'),
        (TableComponent::MiddleHeaderIntersections, '─'),
    ] {
        table.set_style(component, symbol);
    }
    let align = |column: usize| if is_number[column] { CellAlignment::Right } else { CellAlignment::Left };
    let shown = &fit.columns;
    table.set_header(
        shown.iter().map(|(column, width)| Cell::new(shortened(&names[*column], *width)).set_alignment(align(*column))),
    );
    for row in &rows {
        table.add_row(shown.iter().map(|(column, width)| {
            let cell = Cell::new(shortened(&row[*column], *width)).set_alignment(align(*column));
            if has_color && row[*column] == "NULL" { cell.add_attribute(comfy_table::Attribute::Dim) } else { cell }
        }));
    }
    if has_color {
        table.force_no_tty().enforce_styling();
    }
    let last = table.column_count().saturating_sub(1);
    for (place, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, u16::from(place < last)));
    }
    Ok(Drawn { text: trim_lines(&table.to_string()), hidden_columns: names.len() - shown.len() })
}

/// Which columns are shown, and how wide.
struct Fit {
    columns: Vec<(usize, usize)>,
}

/// Shortens the widest columns first, then leaves out the last ones.
fn fit(natural: &[usize], width: Option<usize>) -> Fit {
    let mut widths = natural.to_vec();
    let Some(width) = width else { return Fit { columns: widths.into_iter().enumerate().collect() } };
    let needed = |widths: &[usize]| widths.iter().map(|width| width + 2).sum::<usize>();
    while width < needed(&widths) {
        let widest = widths.iter().copied().max().unwrap_or(0);
        if widest <= NARROWEST {
            break;
        }
        let next = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(NARROWEST);
        let count = widths.iter().filter(|width| **width == widest).count();
        let too_much = needed(&widths) - width;
        let target = widest.saturating_sub(too_much.div_ceil(count)).max(next);
        for width in widths.iter_mut().filter(|width| **width == widest) {
            *width = target;
        }
    }
    while width < needed(&widths) && 1 < widths.len() {
        widths.pop();
    }
    Fit { columns: widths.into_iter().enumerate().collect() }
}

fn cell_text(value: Option<String>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some(text) if text == "NULL" => "\"NULL\"".to_owned(),
        // A cell is one line.
        Some(text) => text.replace('\n', "\\n").replace('\t', "\\t"),
    }
}

/// Returns `result` as CSV; NULL is an empty field.
pub fn csv(result: &ResultSet) -> Result<String, EngineError> {
    let mut text = String::new();
    let mut push = |fields: Vec<Option<String>>| {
        let fields: Vec<String> = fields.iter().map(|field| csv_field(field.as_deref())).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    };
    push(result.column_names().into_iter().map(Some).collect());
    result.text_rows()?.into_iter().for_each(&mut push);
    Ok(text)
}

fn csv_field(value: Option<&str>) -> String {
    match value {
        None => String::new(),
        // Empty text is quoted, so that it is not NULL.
        Some("") => "\"\"".to_owned(),
        Some(text) if text.contains([',', '"', '\n', '\r']) => format!("\"{}\"", text.replace('"', "\"\"")),
        Some(text) => text.to_owned(),
    }
}

/// Returns the rows as JSON objects; a repeated column name gets a number, so that nothing is lost.
pub fn json_rows(result: &ResultSet) -> Result<Vec<serde_json::Map<String, serde_json::Value>>, EngineError> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut fields: Vec<Field> = Vec::new();
    for field in result.schema.fields() {
        let mut name = field.name().clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            name = format!("{}_{number}", field.name());
            number += 1;
        }
        fields.push(field.as_ref().clone().with_name(name));
    }
    let schema = Arc::new(Schema::new(fields));
    let bad = |error: arrow::error::ArrowError| EngineError::Answer {
        purpose: "name the columns apart",
        detail: error.to_string(),
    };
    let batches = result
        .batches
        .iter()
        .map(|batch| RecordBatch::try_new(schema.clone(), batch.columns().to_vec()).map_err(bad))
        .collect::<Result<Vec<_>, _>>()?;
    ResultSet { schema, batches }.json_rows()
}

#[cfg(test)]
mod tests {
    use super::{csv_field, fit};

    #[test]
    fn the_widest_columns_give_way_first() {
        let widths = |natural: &[usize], width| {
            fit(natural, Some(width)).columns.into_iter().map(|(_, width)| width).collect::<Vec<_>>()
        };
        assert_eq!(widths(&[5, 60, 40], 100), [5, 49, 40]);
        assert_eq!(widths(&[5, 60, 40], 60), [5, 24, 24]);
        assert_eq!(widths(&[5, 5], 100), [5, 5]);
        // What cannot be narrowed is left out, from the end.
        assert_eq!(widths(&[50, 50, 50], 30), [10, 10]);
        assert_eq!(fit(&[500], None).columns, [(0, 500)]);
    }

    #[test]
    fn csv_tells_null_from_empty_text() {
        assert_eq!([None, Some(""), Some("a"), Some("a,\"b\"")].map(csv_field), ["", "\"\"", "a", "\"a,\"\"b\"\"\""]);
    }
}
