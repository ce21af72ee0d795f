//! Puts other text in place of parts of a script's text, and remembers where everything came from.
//!
//! Parameters become `getvariable('name')`, `{partition}` becomes the identity, table names become the relation that a
//! step reads. Invariant: [`Rewritten::original_offset`] is monotone and exact for text that was copied, so an engine's
//! error position always points into the user's file. Deliberately not here: finding what to replace.

use super::scan::{LexemeKind, Lexemes};
use super::{Literal, Relation};
use crate::source::Span;
use crate::sql::body::{Parameter, ParsedBody};

/// The variables that every step sets, with the name that is set and the type they are read as.
///
/// The type matters where no value is set (`check` binds without running): an unset variable has no type of its own.
const VARIABLES: [(&str, &str, Option<&str>); 9] = [
    ("partition", "partition", None),
    ("partition_start", "partition_start", Some("TIMESTAMPTZ")),
    ("partition_end", "partition_end", Some("TIMESTAMPTZ")),
    ("upstream_snapshot", "upstream_snapshot", Some("BIGINT")),
    ("first_run", "first_run", Some("BOOLEAN")),
    ("WM_PARTITION", "partition", None),
    ("WM_PARTITION_START", "partition_start", Some("TIMESTAMPTZ")),
    ("WM_PARTITION_END", "partition_end", Some("TIMESTAMPTZ")),
    ("WM_UPSTREAM_SNAPSHOT", "upstream_snapshot", Some("BIGINT")),
];

/// Returns the expression that reads the parameter `$name`: a variable of the step or of the project.
pub fn variable(name: &str) -> String {
    let known = VARIABLES.iter().find(|(spelling, ..)| *spelling == name);
    match known {
        Some((_, variable, Some(data_type))) => {
            format!("CAST(getvariable({}) AS {data_type})", Literal::new(*variable))
        }
        Some((_, variable, None)) => format!("getvariable({})", Literal::new(*variable)),
        None => format!("getvariable({})", Literal::new(name)),
    }
}

/// Returns the names of the parameters that every script has.
pub fn builtin_parameters() -> impl Iterator<Item = &'static str> {
    VARIABLES.iter().map(|(spelling, ..)| *spelling)
}

/// Collects replacements inside one span of a file's text.
#[derive(Clone, Debug)]
pub struct Rewriter<'t> {
    text: &'t str,
    span: Span,
    edits: Vec<(Span, String)>,
}

impl<'t> Rewriter<'t> {
    /// Returns a rewriter of `text[span]`; every span given later is one of the whole `text`.
    pub fn new(text: &'t str, span: Span) -> Self {
        debug_assert!(span.end <= text.len(), "the span lies in the text");
        Self { text, span, edits: Vec::new() }
    }

    /// Returns a rewriter that reads each parameter as a variable and, when given, each `{partition}` as the identity.
    pub fn of_body(text: &'t str, span: Span, body: &ParsedBody, partition: Option<&str>) -> Self {
        let mut rewriter = Self::new(text, span);
        for parameter in &body.parameters {
            rewriter.parameter(parameter);
        }
        if let Some(identity) = partition {
            for placeholder in &body.placeholders {
                rewriter.placeholder(*placeholder, identity);
            }
        }
        rewriter
    }

    /// Returns a rewriter like [`Self::of_body`] for a script whose partitions are increments: their bounds have the type
    /// of the column.
    pub fn of_increment(text: &'t str, span: Span, body: &ParsedBody) -> Self {
        let mut rewriter = Self::new(text, span);
        for parameter in &body.parameters {
            match VARIABLES.iter().find(|(spelling, variable, _)| {
                *spelling == parameter.name && matches!(*variable, "partition_start" | "partition_end")
            }) {
                Some((_, variable, _)) => {
                    rewriter.replace(parameter.span, format!("getvariable({})", Literal::new(*variable)));
                }
                None => {
                    rewriter.parameter(parameter);
                }
            }
        }
        rewriter
    }

    /// Puts `replacement` in place of `span`; a span outside the rewritten text is ignored.
    pub fn replace(&mut self, span: Span, replacement: impl Into<String>) -> &mut Self {
        if self.span.start <= span.start && span.end <= self.span.end {
            self.edits.push((span, replacement.into()));
        }
        self
    }

    /// Reads `$name` as a variable.
    pub fn parameter(&mut self, parameter: &Parameter) -> &mut Self {
        self.replace(parameter.span, variable(&parameter.name))
    }

    /// Puts the partition's identity in place of `{partition}` inside a literal, escaped as that literal needs.
    pub fn placeholder(&mut self, span: Span, identity: &str) -> &mut Self {
        let literal = Lexemes::within(self.text, self.span).find(|lexeme| span.end <= lexeme.span.end);
        let escaped = match literal {
            Some(literal) if literal.kind == LexemeKind::DollarText => identity.to_owned(),
            Some(literal) if literal.text.starts_with(['e', 'E']) => identity.replace('\\', "\\\\").replace('\'', "''"),
            _ => identity.replace('\'', "''"),
        };
        self.replace(span, escaped)
    }

    /// Puts `relation` in place of a table's dotted name.
    pub fn table(&mut self, name: Span, relation: &Relation) -> &mut Self {
        self.replace(name, relation.to_string())
    }

    /// Returns the rewritten text with its map.
    pub fn finish(mut self) -> Rewritten {
        self.edits.sort_by_key(|(span, _)| *span);
        let mut rewritten = Rewritten { sql: String::new(), map: Vec::new(), end: self.span.end };
        let mut at = self.span.start;
        for (span, replacement) in &self.edits {
            debug_assert!(at <= span.start, "replacements do not overlap");
            rewritten.copy(self.text, Span::new(at, span.start));
            rewritten.put(*span, replacement);
            at = span.end;
        }
        rewritten.copy(self.text, Span::new(at, self.span.end));
        rewritten
    }
}

/// Text to send, and where each part of it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The text.
    pub sql: String,
    map: Vec<Piece>,
    end: usize,
}

/// A run of sent text that starts at `sent` and came from `original`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    sent: usize,
    original: usize,
    is_copy: bool,
}

impl Rewritten {
    fn copy(&mut self, text: &str, span: Span) {
        self.map.push(Piece { sent: self.sql.len(), original: span.start, is_copy: true });
        self.sql.push_str(&text[span.start..span.end]);
    }

    fn put(&mut self, span: Span, replacement: &str) {
        self.map.push(Piece { sent: self.sql.len(), original: span.start, is_copy: false });
        self.sql.push_str(replacement);
    }

    /// Returns the offset in the file of the byte at `sent`; inside a replacement that is the start of what it replaces.
    pub fn original_offset(&self, sent: usize) -> usize {
        if self.sql.len() <= sent {
            return self.end;
        }
        let after = self.map.partition_point(|piece| piece.sent <= sent);
        let Some(piece) = after.checked_sub(1).and_then(|index| self.map.get(index)) else {
            return self.end;
        };
        match piece.is_copy {
            true => piece.original + (sent - piece.sent),
            false => piece.original,
        }
    }

    /// Returns the offset in the file for a position in a statement that holds this text from `starts_at` on.
    pub fn original_offset_in(&self, statement_offset: usize, starts_at: usize) -> usize {
        self.original_offset(statement_offset.saturating_sub(starts_at))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn span_of(text: &str, part: &str) -> Span {
        let start = text.find(part).unwrap();
        Span::new(start, start + part.len())
    }

    fn check_parameters(text: &str, expected: Expect) {
        let parameters: Vec<Parameter> = Lexemes::from(text, 0)
            .filter(|lexeme| lexeme.kind == LexemeKind::Parameter)
            .map(|lexeme| Parameter { name: lexeme.text[1..].to_owned(), span: lexeme.span })
            .collect();
        let placeholders = text.match_indices("{partition}").map(|(at, word)| Span::new(at, at + word.len())).collect();
        let body = ParsedBody { parameters, placeholders, ..ParsedBody::default() };
        let whole = Span::new(0, text.len());
        expected.assert_eq(&Rewriter::of_body(text, whole, &body, Some(r"it's\n")).finish().sql);
    }

    #[test]
    fn parameters_become_typed_variables() {
        check_parameters(
            "SELECT $country WHERE $partition_start <= ts AND p = $WM_PARTITION",
            expect![[
                "SELECT getvariable('country') WHERE CAST(getvariable('partition_start') AS TIMESTAMPTZ) <= ts AND p = getvariable('partition')"
            ]],
        );
    }

    #[test]
    fn a_placeholder_is_escaped_as_its_literal_needs() {
        check_parameters(
            r"SELECT 'a{partition}', E'{partition}', $${partition}$$",
            expect![[r"SELECT 'ait''s\n', E'it''s\\n', $$it's\n$$"]],
        );
    }

    #[test]
    fn error_positions_point_into_the_file() {
        let text = "-- head\nSELECT $p, nope FROM orders";
        let mut rewriter = Rewriter::new(text, Span::new(8, text.len()));
        rewriter.replace(span_of(text, "$p"), "getvariable('p')");
        rewriter.table(span_of(text, "orders"), &Relation::in_catalog("lake", "main", "orders"));
        let rewritten = rewriter.finish();
        assert_eq!(rewritten.sql, r#"SELECT getvariable('p'), nope FROM "lake"."main"."orders""#);
        for part in ["SELECT", "nope", "FROM"] {
            let sent = rewritten.sql.find(part).unwrap();
            assert_eq!(rewritten.original_offset(sent), span_of(text, part).start, "{part}");
        }
        let inside_the_relation = rewritten.sql.find("main").unwrap();
        assert_eq!(rewritten.original_offset(inside_the_relation), span_of(text, "orders").start);
        assert_eq!(rewritten.original_offset(9_999), text.len());
        assert_eq!(rewritten.original_offset_in(20, 20), 8);
    }

    #[test]
    fn a_replacement_outside_the_span_is_ignored() {
        let mut rewriter = Rewriter::new("SELECT 1; SELECT $p", Span::new(0, 8));
        rewriter.replace(Span::new(17, 19), "x");
        assert_eq!(rewriter.finish().sql, "SELECT 1");
    }

    proptest! {
        #[test]
        fn the_map_is_monotone_and_exact_for_copied_text(
            pieces in prop::collection::vec(("[a-zé]{0,5}", prop::option::of("[A-Z]{0,7}")), 0..8)
        ) {
            let mut text = String::from("--\n");
            let mut edits = Vec::new();
            for (copied, replacement) in &pieces {
                text.push_str(copied);
                if let Some(replacement) = replacement {
                    edits.push((Span::new(text.len(), text.len() + 1), replacement));
                    text.push('#');
                }
            }
            let mut rewriter = Rewriter::new(&text, Span::new(3, text.len()));
            for (span, replacement) in &edits {
                rewriter.replace(*span, replacement.as_str());
            }
            let rewritten = rewriter.finish();

            let mut previous = 3;
            for (sent, character) in rewritten.sql.char_indices() {
                let original = rewritten.original_offset(sent);
                prop_assert!(previous <= original && original < text.len());
                let expected = if character.is_ascii_uppercase() { '#' } else { character };
                prop_assert!(text[original..].starts_with(expected));
                previous = original;
            }
            prop_assert_eq!(rewritten.original_offset(rewritten.sql.len()), text.len());
        }
    }
}
