//! Splits the arguments of one annotation line at white space outside quotes.
//!
//! A quote (`"` or `'`) opens at the start of a token or after one of `= , ( . /`, so that an apostrophe inside a word
//! opens none. Inside, a doubled quote and `\` before the quote stand for the quote itself.

use std::borrow::Cow;

use crate::diagnostic::Code;
use crate::source::Span;

use super::draft::Problem;

/// One token as written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub raw: &'a str,
    pub span: Span,
}

/// A token's value: unquoted when the whole of it is one quoted string.
#[derive(Clone, Debug)]
pub(super) struct Value<'a> {
    /// As written, with quotes.
    pub raw: &'a str,
    /// Where `raw` stands.
    pub span: Span,
    /// What it means.
    pub text: Cow<'a, str>,
    /// Whether the whole of it is quoted.
    pub quoted: bool,
}

impl<'a> Token<'a> {
    /// Returns the name and the value of a token of the form `name=value`.
    pub fn as_option(&self) -> Option<(Token<'a>, Value<'a>)> {
        let (name, value) = self.raw.split_once('=')?;
        let mut chars = name.chars();
        let is_name = chars.next().is_some_and(|c| c.is_ascii_alphabetic())
            && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !is_name {
            return None;
        }
        let equals = self.span.start + name.len();
        let name = Token { raw: name, span: Span::new(self.span.start, equals) };
        Some((name, Value::new(value, equals + 1)))
    }

    /// Returns the token as a value.
    pub fn value(&self) -> Value<'a> {
        Value::new(self.raw, self.span.start)
    }
}

impl<'a> Value<'a> {
    /// Reads the value written as `raw` at the offset `start`.
    pub fn new(raw: &'a str, start: usize) -> Self {
        let span = Span::new(start, start + raw.len());
        match whole_quote(raw) {
            Some(inner) => Self { raw, span, text: unquote(inner, raw.as_bytes()[0]), quoted: true },
            None => Self { raw, span, text: Cow::Borrowed(raw), quoted: false },
        }
    }

    /// Returns where the meaning starts: after the quote when there is one.
    pub fn text_start(&self) -> usize {
        self.span.start + usize::from(self.quoted)
    }

    /// Returns the part of the source from `offset` inside the text to its end; the whole value at or past the end.
    pub fn span_from(&self, offset: usize) -> Span {
        let start = self.text_start() + offset;
        let end = self.span.end - usize::from(self.quoted);
        if start < end { Span::new(start, end) } else { self.span }
    }
}

/// Splits `text[range]` into tokens.
pub(super) fn tokenize(text: &str, range: Span) -> Result<Vec<Token<'_>>, Problem> {
    let line = &text[range.start..range.end];
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += line[at..].len() - line[at..].trim_start().len();
        if at == line.len() {
            return Ok(tokens);
        }
        let length = token_length(&line[at..], range.start + at)?;
        let start = range.start + at;
        tokens.push(Token { raw: &line[at..at + length], span: Span::new(start, start + length) });
        at += length;
    }
}

fn token_length(text: &str, start: usize) -> Result<usize, Problem> {
    let mut previous = None;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            break;
        }
        if matches!(c, '"' | '\'') && matches!(previous, None | Some('=' | ',' | '(' | '.' | '/')) {
            let Some(length) = quote_length(&text[at..]) else {
                let span = Span::new(start + at, start + text.len());
                let message = format!("the quote {c} is never closed");
                return Err(Problem::new(Code::UNTERMINATED_QUOTE, span, message)
                    .with_help(format!("close it on the same line with {c}")));
            };
            at += length;
        } else {
            at += c.len_utf8();
        }
        previous = Some(c);
    }
    Ok(at)
}

/// Returns the length of the quoted string that `text` starts with, with both quotes; `None` when it never ends.
pub(super) fn quote_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let quote = bytes[0];
    let mut at = 1;
    while at < bytes.len() {
        let next = bytes.get(at + 1).copied();
        match bytes[at] {
            b'\\' if next == Some(quote) => at += 2,
            byte if byte == quote && next == Some(quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

fn whole_quote(raw: &str) -> Option<&str> {
    let quoted = raw.starts_with(['"', '\'']) && quote_length(raw) == Some(raw.len());
    quoted.then(|| &raw[1..raw.len() - 1])
}

fn unquote(inner: &str, quote: u8) -> Cow<'_, str> {
    let quote = char::from(quote);
    if !inner.contains(quote) {
        return Cow::Borrowed(inner);
    }
    Cow::Owned(
        inner
            .replace(&format!("\\{quote}"), &quote.to_string())
            .replace(&format!("{quote}{quote}"), &quote.to_string()),
    )
}
