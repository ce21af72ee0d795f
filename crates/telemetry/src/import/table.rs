//! CSV and Parquet: one row an event, its columns the attributes.
//!
//! Columns are named as attributes are, or as the columns of raw events: an export of that table comes in as it was. A row
//! becomes an event in JSON and is read as any other, so that the same rules hold; what is none is kept as that JSON.

use std::path::Path;

use arrow::array::{Array as _, AsArray as _};
use pintail_core::sql::{Ident, Literal};
use pintail_engine::{Instance, InstanceOptions};
use serde_json::value::RawValue;

use super::{ImportError, SourceRecord};
use crate::cloudevents::EventError;

/// Columns of raw events whose attributes have other names.
const RENAMED: [(&str, &str); 2] = [("data_content_type", "datacontenttype"), ("data_version", "dataversion")];

/// Hands each row to `each`, in the order of the file.
pub(super) fn read(
    options: &InstanceOptions,
    path: &Path,
    is_csv: bool,
    each: &mut impl FnMut(SourceRecord<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let instance = Instance::open(options.clone())?;
    let session = instance.session()?;
    session.batch("keep the order of the file", "SET GLOBAL preserve_insertion_order = true")?;
    let file = Literal::new(path.display().to_string());
    let source = match is_csv {
        true => format!("read_csv({file}, header = true, all_varchar = true)"),
        // Keys in the folders' names are in the rows as well.
        false => format!("read_parquet({file}, hive_partitioning = false)"),
    };
    let columns = session.describe(&format!("SELECT * FROM {source}"))?;
    let texts: Vec<String> = columns.iter().map(|(name, data_type)| as_text(name, data_type)).collect();
    let names: Vec<String> = columns.iter().map(|(name, _)| name.to_lowercase()).collect();
    let sql = format!("SELECT {} FROM {source}", texts.join(", "));
    session.stream("read the file", &sql, |batch| {
        let columns: Vec<_> = batch.columns().iter().map(|column| column.as_string::<i32>()).collect();
        for row in 0..batch.num_rows() {
            let values = || {
                let valid = names.iter().zip(&columns).filter(|(_, column)| column.is_valid(row));
                valid.map(|(name, column)| (name.as_str(), column.value(row))).filter(|(_, value)| !value.is_empty())
            };
            let event = event_json(values());
            let bad = values().find(|(name, value)| is_json_column(name) && !is_json(value));
            let record = match bad {
                None => SourceRecord::parse(event.as_bytes()),
                // Its text could be anything, also more attributes.
                Some((name, _)) => SourceRecord {
                    text: event.as_bytes(),
                    event: Err(EventError::of_attribute(name, "must be one JSON value in a table")),
                },
            };
            each(record)?;
        }
        Ok(())
    })?
}

/// Returns the expression of a column as text, as events write it.
fn as_text(name: &str, data_type: &str) -> String {
    let column = Ident::new(name);
    match data_type {
        "BLOB" => format!("decode({column})"),
        "TIMESTAMP WITH TIME ZONE" => format!("strftime(timezone('UTC', {column}), '%Y-%m-%dT%H:%M:%S.%fZ')"),
        "TIMESTAMP" | "TIMESTAMP_NS" | "TIMESTAMP_MS" | "TIMESTAMP_S" | "DATE" => {
            format!("strftime({column}::TIMESTAMP, '%Y-%m-%dT%H:%M:%S.%fZ')")
        }
        _ => format!("{column}::VARCHAR"),
    }
}

fn is_json_column(name: &str) -> bool {
    matches!(name, "data" | "extras")
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Returns the event of a row; an empty field of a CSV file is an attribute that is not set. The payload and the extras are JSON already, everything else is text.
fn event_json<'v>(values: impl Iterator<Item = (&'v str, &'v str)>) -> String {
    let mut members = Vec::new();
    let mut has_version = false;
    for (name, value) in values {
        let name = RENAMED.iter().find(|(column, _)| *column == name).map_or(name, |(_, attribute)| attribute);
        match name {
            "data" => members.push(format!("\"data\":{value}")),
            "extras" => {
                let inner = value.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                match inner.map(str::trim) {
                    Some("") => {}
                    Some(inner) => members.push(inner.to_owned()),
                    None => members.push(format!("\"extras\":{value}")),
                }
            }
            name => {
                has_version |= name == "specversion";
                members.push(format!("{}:{}", json(name), json(value)));
            }
        }
    }
    if !has_version {
        members.insert(0, "\"specversion\":\"1.0\"".to_owned());
    }
    format!("{{{}}}", members.join(","))
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::event_json;

    #[test]
    fn a_row_is_an_event() {
        let row = [
            ("id", "1"),
            ("data_content_type", "application/json"),
            ("extras", r#"{"seq":1,"tags":["a"]}"#),
            ("data", "1.10"),
        ];
        expect![[
            r#"{"specversion":"1.0","id":"1","datacontenttype":"application/json","seq":1,"tags":["a"],"data":1.10}"#
        ]]
        .assert_eq(&event_json(row.into_iter()));
        expect![[r#"{"specversion":"1.0","id":"a\"b"}"#]]
            .assert_eq(&event_json([("id", "a\"b"), ("extras", "{}")].into_iter()));
    }
}
