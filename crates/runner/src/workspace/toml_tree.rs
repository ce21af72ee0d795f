//! A TOML document as a tree in which every key and value knows its place, and the overlay of one tree on another.
//!
//! Invariant: overlaying replaces values and merges tables, so that a profile can override any single key; places stay
//! those of the file, since a profile stands in the same one.

use std::collections::BTreeMap;
use std::ops::Range;

use pintail_core::source::Span;
use toml::de::{DeTable, DeValue};

/// A table's entries by key.
pub(super) type Table = BTreeMap<String, Node>;

/// One value with its place and its key's place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) key: Span,
    pub(super) span: Span,
    pub(super) value: Value,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// A date, a time or both, as it is written; also a number that does not fit.
    Other(&'static str),
    Array(Vec<Node>),
    Table(Table),
}

impl Value {
    /// Returns the kind of the value with its article.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Other(kind) => kind,
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }
}

/// A syntax error.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) span: Span,
    pub(super) message: String,
}

/// Parses `text`; what can be read after an error is in the tree.
pub(super) fn parse(text: &str) -> (Table, Vec<SyntaxError>) {
    let (document, errors) = DeTable::parse_recoverable(text);
    let errors = errors.iter().map(|error| SyntaxError {
        span: error.span().map_or(Span::new(0, 0), span_of),
        message: error.message().replace('\n', ", "),
    });
    (table_of(document.get_ref()), errors.collect())
}

/// Lays `over` on `base`: tables are merged, anything else is replaced.
pub(super) fn overlay(base: &mut Table, over: &Table) {
    for (key, node) in over {
        match (base.get_mut(key).map(|under| &mut under.value), &node.value) {
            (Some(Value::Table(under)), Value::Table(table)) => overlay(under, table),
            _ => {
                base.insert(key.clone(), node.clone());
            }
        }
    }
}

fn table_of(table: &DeTable<'_>) -> Table {
    let entries = table.iter().map(|(key, value)| {
        let node = Node { key: span_of(key.span()), span: span_of(value.span()), value: value_of(value.get_ref()) };
        (key.get_ref().to_string(), node)
    });
    entries.collect()
}

fn value_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Value::Other("an integer beyond 64 bits"), Value::Integer),
        DeValue::Float(float) => float.as_str().parse().map_or(Value::Other("a float"), Value::Float),
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(_) => Value::Other("a date or time"),
        DeValue::Array(items) => Value::Array(items.iter().map(item_of).collect()),
        DeValue::Table(table) => Value::Table(table_of(table)),
    }
}

fn item_of(item: &toml::Spanned<DeValue<'_>>) -> Node {
    let span = span_of(item.span());
    Node { key: span, span, value: value_of(item.get_ref()) }
}

fn span_of(range: Range<usize>) -> Span {
    Span::new(range.start, range.end)
}
