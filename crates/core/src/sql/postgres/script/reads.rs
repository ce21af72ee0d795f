//! The tables that a statement names, by sqlparser's AST; names of CTEs and of table functions are none.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, Query, Spanned, TableFactor, Visit, Visitor};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, TokenWithSpan};

use crate::source::Span;

/// A table's name as it is read.
pub(super) struct ReadName {
    /// The parts, without quotes.
    pub parts: Vec<String>,
    /// Where it stands.
    pub span: Span,
}

/// Returns every table that the statement of `tokens` names, or why it cannot be read.
pub(super) fn reads_of(tokens: &[(TokenWithSpan, Span)]) -> Result<Vec<ReadName>, String> {
    let dialect = PostgreSqlDialect {};
    let only_tokens: Vec<TokenWithSpan> = tokens.iter().map(|(token, _)| token.clone()).collect();
    let parsed = Parser::new(&dialect)
        .with_tokens_with_locations(only_tokens)
        .parse_statements()
        .map_err(|error| error.to_string())?;
    let places = tokens.iter().flat_map(|(token, span)| [(token.span.start, span.start), (token.span.end, span.end)]);
    let mut walk = Walk { places: places.collect(), ctes: Vec::new(), functions: Vec::new(), found: Vec::new() };
    let _ = parsed.visit(&mut walk);
    Ok(walk.found)
}

struct Walk {
    places: HashMap<Location, usize>,
    /// The CTEs of the queries around, by query.
    ctes: Vec<Vec<String>>,
    /// Names of functions in FROM, which are visited as relations next.
    functions: Vec<ObjectName>,
    found: Vec<ReadName>,
}

impl Visitor for Walk {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let names = query.with.iter().flat_map(|with| &with.cte_tables);
        self.ctes.push(names.map(|cte| cte.alias.name.value.to_lowercase()).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.ctes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = factor {
            self.functions.push(name.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        if let Some(at) = self.functions.iter().position(|function| function == name && function.span() == name.span())
        {
            self.functions.remove(at);
            return ControlFlow::Continue(());
        }
        let parts: Vec<String> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.clone())).collect();
        let is_cte = match parts.as_slice() {
            [only] => self.ctes.iter().flatten().any(|cte| *cte == only.to_lowercase()),
            _ => false,
        };
        let span = name.span();
        let place = self.places.get(&span.start).zip(self.places.get(&span.end));
        if let (false, Some((start, end))) = (is_cte || parts.is_empty(), place) {
            self.found.push(ReadName { parts, span: Span::new(*start, *end) });
        }
        ControlFlow::Continue(())
    }
}
