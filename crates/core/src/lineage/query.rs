//! One pass over a query's AST: every table, table function and file in it, with the scopes of its CTEs.
//!
//! Scopes as in the engine, also under RECURSIVE: a CTE sees the CTEs before it; its own name means the table (or an
//! outer CTE) of that name, save in the recursive half of a recursive one; what follows sees it; an inner WITH hides an
//! outer one; a name with two parts is never a CTE, save `recurring.<name>` inside it.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::Collector;
use super::files::is_file_name;
use super::functions::{Reads, reads_of};
use crate::diagnostic::Code;
use crate::source::Span;
use crate::sql::body::TableName;
use crate::sql::scan::{LexemeKind, Lexemes, dotted_name_extent, lexeme_extent};

/// The walk over one query.
pub(super) struct QueryWalk<'w, 'a> {
    collector: &'w mut Collector<'a>,
    /// The query's text; locations in the AST are relative to its start.
    span: Span,
    /// How many CTEs of a name are visible, by lower-cased name.
    visible: HashMap<String, u32>,
}

impl<'w, 'a> QueryWalk<'w, 'a> {
    /// Returns a walk over the query whose text stands at `span`.
    pub fn new(collector: &'w mut Collector<'a>, span: Span) -> Self {
        Self { collector, span, visible: HashMap::new() }
    }

    /// Visits a node and what is below it.
    pub fn walk(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(node) => self.node(node),
            _ => {}
        }
    }

    fn node(&mut self, node: &Map<String, Value>) {
        if text(node, "class") == "CONSTANT" {
            return;
        }
        match text(node, "type") {
            "BASE_TABLE" => self.table(node),
            "TABLE_FUNCTION" => self.table_function(node),
            "RECURSIVE_CTE_NODE" => self.recursive(node),
            _ => self.scoped(node),
        }
    }

    /// Visits a node with its CTEs in sequence, then the rest of it.
    fn scoped(&mut self, node: &Map<String, Value>) {
        let ctes = node.get("cte_map").and_then(|map| map.get("map")).and_then(Value::as_array);
        let ctes: Vec<&Value> = ctes.into_iter().flatten().collect();
        for cte in &ctes {
            if let Some(value) = cte.get("value") {
                self.walk(value);
            }
            self.enter(name_of(cte));
        }
        for (key, value) in node {
            if key != "cte_map" {
                self.walk(value);
            }
        }
        for cte in &ctes {
            self.leave(name_of(cte));
        }
    }

    fn recursive(&mut self, node: &Map<String, Value>) {
        for (key, value) in node {
            if key != "right" {
                self.walk(value);
            }
        }
        let name = text(node, "cte_name");
        self.enter(name);
        if let Some(right) = node.get("right") {
            self.walk(right);
        }
        self.leave(name);
    }

    fn enter(&mut self, cte: &str) {
        *self.visible.entry(cte.to_lowercase()).or_default() += 1;
    }

    fn leave(&mut self, cte: &str) {
        if let Some(count) = self.visible.get_mut(&cte.to_lowercase()) {
            *count -= 1;
        }
    }

    fn is_cte(&self, parts: &[String]) -> bool {
        let name = match parts {
            [name] => name,
            [recurring, name] if recurring.eq_ignore_ascii_case("recurring") => name,
            _ => return false,
        };
        self.visible.get(&name.to_lowercase()).is_some_and(|count| 0 < *count)
    }

    fn table(&mut self, node: &Map<String, Value>) {
        let parts: Vec<String> = ["catalog_name", "schema_name", "table_name"]
            .into_iter()
            .map(|key| text(node, key))
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        if self.is_cte(&parts) {
            return;
        }
        let location = self.location(node);
        if let [file] = parts.as_slice()
            && is_file_name(file)
        {
            let span = self.extent(location);
            self.collector.read_file(file, span);
            return;
        }
        let extent = location.and_then(|at| dotted_name_extent(&self.collector.file.text, at, parts.len()));
        let at_clause = node.get("at_clause").filter(|at| at.is_object());
        let Some(span) = extent else {
            self.collector.read_named(&parts, self.span);
            return;
        };
        if let Some(at_clause) = at_clause {
            self.fixed_version(at_clause, span);
        }
        self.collector.read_table(TableName { parts, span }, at_clause.is_some());
    }

    /// A version that is written as a constant goes past the step's pin.
    fn fixed_version(&mut self, at_clause: &Value, span: Span) {
        let is_constant = at_clause.pointer("/expr/class").and_then(Value::as_str) == Some("CONSTANT");
        if is_constant {
            self.collector.report(
                Code::SQL_TIME_TRAVEL_READ,
                span,
                "this reads a fixed version, which is gone once retention expires it".to_owned(),
                "hold the version: `pintail pin <lake> --at <version> --reason …`",
            );
        }
    }

    fn table_function(&mut self, node: &Map<String, Value>) {
        let Some(function) = node.get("function").and_then(Value::as_object) else { return };
        let name = text(function, "function_name");
        let arguments: Vec<&Value> = function.get("children").and_then(Value::as_array).into_iter().flatten().collect();
        let positional: Vec<&Value> = arguments.iter().copied().filter(|argument| alias(argument).is_empty()).collect();
        let place = self.extent(self.location(function));
        match reads_of(name) {
            _ if self.collector.session.is_macro(name) => {}
            Reads::Nothing => {}
            Reads::Files => self.each_literal(positional.first(), place, |walk, file, span| {
                walk.collector.read_file(file, span);
            }),
            Reads::Tables => self.each_literal(positional.first(), place, |walk, table, span| {
                let parts = dotted_parts(table);
                if !walk.is_cte(&parts) {
                    walk.collector.read_named(&parts, span);
                }
            }),
            Reads::LakeTable => {
                let qualifier = lake_qualifier(function).map(str::to_owned);
                self.each_literal(positional.first(), place, |walk, table, span| {
                    let parts: Vec<String> = qualifier.iter().cloned().chain([table.to_owned()]).collect();
                    walk.collector.read_named(&parts, span);
                });
            }
            Reads::QualifiedTable => self.qualified_table(&positional, place),
            Reads::Unknown => self.collector.unknown(place, format!("the table function `{name}`")),
        }
        // Arguments may hold subqueries; a file's own literals are constants and give nothing more.
        arguments.into_iter().for_each(|argument| self.walk(argument));
    }

    fn qualified_table(&mut self, arguments: &[&Value], place: Span) {
        let parts: Vec<String> =
            arguments.iter().take(3).filter_map(|argument| literal(argument)).map(str::to_owned).collect();
        match parts.len() {
            3 => self.collector.read_named(&parts, place),
            _ => self.collector.unknown(place, "a table whose name is computed"),
        }
    }

    /// Calls `read` with each text of `argument`, a text or a list of texts; what is computed is unknown.
    fn each_literal(&mut self, argument: Option<&&Value>, place: Span, mut read: impl FnMut(&mut Self, &str, Span)) {
        let Some(argument) = argument else { return };
        let is_list = argument.get("function_name").and_then(Value::as_str) == Some("list_value");
        let items: Vec<&Value> = match is_list {
            true => argument.get("children").and_then(Value::as_array).into_iter().flatten().collect(),
            false => vec![argument],
        };
        for item in items {
            let location = item.as_object().and_then(|node| self.location(node));
            match literal(item) {
                Some(text) => read(self, text, self.extent(location)),
                None => self.collector.unknown(place, "a path or name that is computed"),
            }
        }
    }

    /// Returns the offset in the file of a node's `query_location`; the engine writes 2^64 - 1 for none.
    fn location(&self, node: &Map<String, Value>) -> Option<usize> {
        let relative = usize::try_from(node.get("query_location")?.as_u64()?).ok()?;
        let at = self.span.start.checked_add(relative)?;
        (at < self.span.end).then_some(at)
    }

    /// Returns the lexeme at a location; the whole query when there is none.
    fn extent(&self, location: Option<usize>) -> Span {
        location.and_then(|at| lexeme_extent(&self.collector.file.text, at)).unwrap_or(self.span)
    }
}

fn text<'v>(node: &'v Map<String, Value>, key: &str) -> &'v str {
    node.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn name_of(cte: &Value) -> &str {
    cte.get("key").and_then(Value::as_str).unwrap_or_default()
}

fn alias(argument: &Value) -> &str {
    argument.get("alias").and_then(Value::as_str).unwrap_or_default()
}

fn literal(value: &Value) -> Option<&str> {
    let is_constant = value.get("class").and_then(Value::as_str) == Some("CONSTANT");
    value.pointer("/value/value").and_then(Value::as_str).filter(|_| is_constant)
}

/// Returns what stands before a lake's function: `lake.table_changes(…)`, `lake.main.table_changes(…)`.
fn lake_qualifier(function: &Map<String, Value>) -> Option<&str> {
    let catalog = text(function, "catalog");
    let schema = text(function, "schema");
    [catalog, schema].into_iter().find(|part| !part.is_empty() && *part != "main")
}

/// Returns the parts of a dotted name inside a string.
fn dotted_parts(name: &str) -> Vec<String> {
    Lexemes::from(name, 0)
        .filter(|lexeme| lexeme.kind != LexemeKind::Symbol)
        .map(|lexeme| match lexeme.kind {
            LexemeKind::QuotedName => lexeme.text[1..lexeme.text.len() - 1].replace("\"\"", "\""),
            _ => lexeme.text.to_owned(),
        })
        .collect()
}
