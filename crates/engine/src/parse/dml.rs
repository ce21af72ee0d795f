//! UPDATE, DELETE and MERGE: DuckDB does not serialise them, so the tables they read are found by sqlparser.
//!
//! When sqlparser cannot read the statement, the words after FROM, JOIN and USING stand in.

use std::ops::ControlFlow;

use pintail_core::source::Span;
use pintail_core::sql::body::TableName;
use sqlparser::ast::{ObjectName, Spanned, visit_relations};
use sqlparser::parser::Parser;

use super::statement::dotted_name;
use super::tokens::{BodyDialect, Offsets, Token};

/// Returns the tables that the statement names besides `target`.
pub fn other_reads(text: &str, span: Span, tokens: &[Token], target: &TableName) -> Vec<TableName> {
    let statement = &text[span.start..span.end];
    let mut names = match Parser::parse_sql(&BodyDialect, statement) {
        Ok(parsed) => {
            let offsets = Offsets::new(statement);
            let mut names = Vec::new();
            let _ = visit_relations(&parsed, |name| {
                names.push(table_name(name, &offsets, span.start));
                ControlFlow::<()>::Continue(())
            });
            names
        }
        Err(_) => after_keywords(tokens),
    };
    names.retain(|name| name.span != target.span && !name.parts.is_empty());
    names
}

fn table_name(name: &ObjectName, offsets: &Offsets<'_>, start: usize) -> TableName {
    let span = name.span();
    TableName {
        parts: name.0.iter().filter_map(|part| Some(part.as_ident()?.value.clone())).collect(),
        span: Span::new(offsets.byte(span.start), offsets.byte(span.end)).shifted(start),
    }
}

fn after_keywords(tokens: &[Token]) -> Vec<TableName> {
    (1..tokens.len())
        .filter(|at| ["FROM", "JOIN", "USING"].iter().any(|keyword| tokens[at - 1].is(keyword)))
        .filter_map(|at| Some(dotted_name(&tokens[at..])?.0))
        .collect()
}
