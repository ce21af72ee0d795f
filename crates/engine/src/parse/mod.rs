//! Bodies of DuckDB SQL files, taken apart: statements with span and kind, queries as the engine's own AST.
//!
//! Token boundaries come from sqlparser's tokenizer and are proved by DuckDB: the number of statements must be the one
//! that `duckdb_extract_statements` finds. Queries are parsed by `json_serialize_sql`, all bodies of a project in one
//! statement. Nothing here opens a file, binds a name, or runs the body.

mod dml;
mod serialize;
mod statement;
mod tokens;

use pintail_core::source::Span;
use pintail_core::sql::body::{BodyError, Parameter, ParsedBody, ParsedStatement};

use crate::error::EngineError;
use crate::instance::Instance;
use crate::session::Session;
use serialize::{Answer, serialize_queries};
use statement::Draft;
use tokens::{Token, TokenKind};

/// Parses bodies; one warm instance serves any number of calls.
pub struct BodyParser {
    session: Session,
    instance: Instance,
}

impl BodyParser {
    /// Returns a parser on an instance of its own, without extensions.
    pub fn new(instance: Instance) -> Result<Self, EngineError> {
        Ok(Self { session: instance.session()?, instance })
    }

    /// Returns the instance, for what needs no lake.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Parses each text (a whole file whose header lines are blanked) on its own; spans are offsets into that text.
    pub fn parse(&self, texts: &[&str]) -> Result<Vec<ParsedBody>, EngineError> {
        let mut drafts: Vec<BodyDraft> = texts.iter().map(|text| BodyDraft::of(text)).collect();
        let queries: Vec<String> = drafts
            .iter()
            .flat_map(|body| body.statements.iter().filter_map(|statement| statement.query_text.clone()))
            .collect();
        let mut answers = serialize_queries(&self.session, &queries)?.into_iter();
        Ok(drafts.iter_mut().zip(texts).map(|(draft, text)| draft.finish(text, &mut answers)).collect())
    }
}

/// A body whose queries are not parsed yet.
struct BodyDraft {
    statements: Vec<Draft>,
    error: Option<BodyError>,
    parameters: Vec<Parameter>,
    placeholders: Vec<Span>,
    functions: Vec<String>,
}

impl BodyDraft {
    fn of(text: &str) -> Self {
        let (tokens, error) = match tokens::tokenize(text) {
            Ok(tokens) => (tokens, None),
            Err(error) => (Vec::new(), Some(error)),
        };
        let statements: Vec<Draft> = split(&tokens).into_iter().map(|tokens| statement::draft(text, tokens)).collect();
        let mut body = Self {
            statements,
            error,
            parameters: parameters(text, &tokens),
            placeholders: placeholders(text, &tokens),
            functions: functions(&tokens),
        };
        body.prove(text);
        body
    }

    /// Compares our boundaries with DuckDB's: a difference is an error at the first statement, never a wrong split.
    fn prove(&mut self, text: &str) {
        if self.error.is_some() || self.statements.is_empty() {
            return;
        }
        // PIVOT without IN is one statement for us and several for DuckDB; the classifier asks for IN there.
        let counted = serialize::count_statements(text);
        let Ok(count) = counted else { return };
        if count != self.statements.len() && !self.statements.iter().any(|statement| statement.may_multiply) {
            self.error = Some(BodyError {
                message: format!(
                    "the statements cannot be told apart: DuckDB sees {count}, Pintail {}; put each on lines of its own",
                    self.statements.len()
                ),
                span: self.statements[0].parsed.span,
            });
        }
    }

    fn finish(&mut self, text: &str, answers: &mut impl Iterator<Item = Answer>) -> ParsedBody {
        let mut statements: Vec<ParsedStatement> = Vec::new();
        for draft in std::mem::take(&mut self.statements) {
            let mut parsed = draft.parsed;
            if draft.query_text.is_some() {
                match answers.next() {
                    Some(Answer::Query(query)) => parsed.query = Some(query),
                    Some(Answer::NotAQuery) | None => {}
                    Some(Answer::Error { message, position }) => {
                        let start = parsed.query_span.map_or(parsed.span.start, |span| span.start);
                        let offset = position.map_or(parsed.span.end - 1, |position| start + position);
                        self.error.get_or_insert_with(|| error_at(text, offset, message));
                    }
                }
            } else if let Some(message) = serialize::syntax_error(&text[parsed.span.start..parsed.span.end]) {
                // Without a position the text ended too early.
                let offset = message.position.map_or(parsed.span.end - 1, |position| parsed.span.start + position);
                self.error.get_or_insert_with(|| error_at(text, offset, message.message));
            }
            statements.push(parsed);
        }
        ParsedBody {
            statements,
            error: self.error.take(),
            parameters: std::mem::take(&mut self.parameters),
            placeholders: std::mem::take(&mut self.placeholders),
            functions: std::mem::take(&mut self.functions),
        }
    }
}

/// Returns the error with the word at `offset` underlined.
fn error_at(text: &str, offset: usize, message: String) -> BodyError {
    let mut start = offset.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let rest = &text[start..];
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let length = if word == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { word };
    BodyError { message, span: Span::new(start, start + length) }
}

/// Groups tokens into statements at their semicolons; empty statements vanish.
fn split(tokens: &[Token]) -> Vec<&[Token]> {
    tokens.split(|token| token.kind == TokenKind::Semicolon).filter(|statement| !statement.is_empty()).collect()
}

fn parameters(text: &str, tokens: &[Token]) -> Vec<Parameter> {
    tokens
        .iter()
        .filter(|token| token.kind == TokenKind::Parameter)
        .map(|token| Parameter {
            name: text[token.span.start..token.span.end].trim_start_matches(['$', '?']).to_owned(),
            span: token.span,
        })
        .collect()
}

fn placeholders(text: &str, tokens: &[Token]) -> Vec<Span> {
    const PLACEHOLDER: &str = "{partition}";
    tokens
        .iter()
        .filter(|token| matches!(token.kind, TokenKind::String(_)))
        .flat_map(|token| {
            let start = token.span.start;
            text[start..token.span.end]
                .match_indices(PLACEHOLDER)
                .map(move |(at, _)| Span::new(start + at, start + at + PLACEHOLDER.len()))
        })
        .collect()
}

fn functions(tokens: &[Token]) -> Vec<String> {
    let mut names: Vec<String> = tokens
        .windows(2)
        .filter_map(|pair| match (&pair[0].kind, &pair[1].kind) {
            (TokenKind::Word(word), TokenKind::Open) => Some(word.text.to_lowercase()),
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests;
