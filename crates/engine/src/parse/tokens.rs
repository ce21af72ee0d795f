//! Tokens with byte spans, from sqlparser's tokenizer in DuckDB's dialect; white space and comments are dropped.

use std::any::TypeId;

use pintail_core::source::Span;
use pintail_core::sql::body::BodyError;
use sqlparser::dialect::{Dialect, DuckDbDialect};
use sqlparser::tokenizer::{Location, Token as RawToken, Tokenizer};

/// One significant token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands.
    pub span: Span,
}

/// A word, quoted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The text without quotes.
    pub text: String,
    /// Whether it was quoted, and so is no keyword.
    pub quoted: bool,
}

/// What a token is, as far as statements need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An identifier or keyword.
    Word(Word),
    /// A string literal; its value.
    String(String),
    /// `$name`, `$1` or `?`.
    Parameter,
    /// `;`.
    Semicolon,
    /// `.`.
    Period,
    /// `(`.
    Open,
    /// `)`.
    Close,
    /// Anything else.
    Other,
}

impl Token {
    /// Returns whether the token is the unquoted keyword `keyword` (given in upper case).
    pub fn is(&self, keyword: &str) -> bool {
        matches!(&self.kind, TokenKind::Word(word) if !word.quoted && word.text.eq_ignore_ascii_case(keyword))
    }

    /// Returns the unquoted word in upper case, or an empty text.
    pub fn keyword(&self) -> String {
        match &self.kind {
            TokenKind::Word(word) if !word.quoted => word.text.to_ascii_uppercase(),
            _ => String::new(),
        }
    }
}

/// DuckDB's dialect with what its tokenizer leaves out: nested comments and E'' strings.
#[derive(Debug)]
pub struct BodyDialect;

impl Dialect for BodyDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<DuckDbDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        // DuckDB takes every byte above ASCII as part of a name.
        DuckDbDialect.is_identifier_start(ch) || !ch.is_ascii()
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        DuckDbDialect.is_identifier_part(ch) || !ch.is_ascii()
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_dictionary_syntax(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_trailing_commas(&self) -> bool {
        true
    }
}

/// Returns the significant tokens of `text`.
pub fn tokenize(text: &str) -> Result<Vec<Token>, BodyError> {
    let offsets = Offsets::new(text);
    let raw = Tokenizer::new(&BodyDialect, text).with_unescape(false).tokenize_with_location().map_err(|error| {
        let at = offsets.byte(error.location).min(text.len());
        BodyError { message: error.message, span: Span::new(at, text.len().max(at)) }
    })?;
    Ok(raw
        .into_iter()
        .filter_map(|token| {
            let kind = kind(token.token)?;
            Some(Token { kind, span: Span::new(offsets.byte(token.span.start), offsets.byte(token.span.end)) })
        })
        .collect())
}

fn kind(token: RawToken) -> Option<TokenKind> {
    Some(match token {
        RawToken::Whitespace(_) | RawToken::EOF => return None,
        RawToken::Word(word) => {
            let quoted = word.quote_style.is_some();
            let text = if quoted { word.value.replace("\"\"", "\"") } else { word.value };
            TokenKind::Word(Word { text, quoted })
        }
        RawToken::SingleQuotedString(value) => TokenKind::String(value.replace("''", "'")),
        RawToken::EscapedStringLiteral(value) => TokenKind::String(value),
        RawToken::DollarQuotedString(value) => TokenKind::String(value.value),
        RawToken::Placeholder(_) => TokenKind::Parameter,
        RawToken::SemiColon => TokenKind::Semicolon,
        RawToken::Period => TokenKind::Period,
        RawToken::LParen => TokenKind::Open,
        RawToken::RParen => TokenKind::Close,
        _ => TokenKind::Other,
    })
}

/// Turns sqlparser's line and column (both from 1, columns in characters) into byte offsets.
pub struct Offsets<'a> {
    text: &'a str,
    lines: Vec<usize>,
}

impl<'a> Offsets<'a> {
    /// Returns the table of `text`.
    pub fn new(text: &'a str) -> Self {
        let mut lines = vec![0];
        lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { text, lines }
    }

    /// Returns the byte at `location`.
    pub fn byte(&self, location: Location) -> usize {
        let line = usize::try_from(location.line).unwrap_or(usize::MAX).saturating_sub(1);
        let column = usize::try_from(location.column).unwrap_or(usize::MAX).saturating_sub(1);
        let Some(start) = self.lines.get(line).copied() else { return self.text.len() };
        let end = self.lines.get(line + 1).copied().unwrap_or(self.text.len());
        let content = &self.text[start..end];
        if content.is_ascii() {
            return (start + column).min(end);
        }
        content.char_indices().nth(column).map_or(end, |(at, _)| start + at)
    }
}
