//! Lexemes of DuckDB SQL: words, quoted names, literals and symbols, with comments and white space skipped.
//!
//! It measures: how far a dotted name or a literal reaches from a place that the engine's parser gave, and whether a
//! user's fragment is closed in itself. Invariant: lexemes do not overlap, and every byte outside white space and
//! comments lies in exactly one. Deliberately not here: splitting a body into statements and deciding what a statement
//! is; the engine's own parser does that.

use crate::source::Span;

/// What a lexeme is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexemeKind {
    /// A bare word or a number.
    Word,
    /// `"a quoted name"`.
    QuotedName,
    /// `'text'`, `E'text'`, `X'00'`.
    Text,
    /// `$$text$$`, `$tag$text$tag$`.
    DollarText,
    /// `$name`.
    Parameter,
    /// One other character.
    Symbol,
    /// A quote or a block comment that is never closed; it reaches the end of the text.
    Unclosed,
}

/// One lexeme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme<'t> {
    /// What it is.
    pub kind: LexemeKind,
    /// Its text.
    pub text: &'t str,
    /// Where it stands, in the text given to [`Lexemes::from`].
    pub span: Span,
}

impl Lexeme<'_> {
    /// Returns whether it is the bare word `word`, in any case.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == LexemeKind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Returns whether it is the symbol `symbol`.
    pub fn is_symbol(&self, symbol: &str) -> bool {
        self.kind == LexemeKind::Symbol && self.text == symbol
    }
}

/// The lexemes of a text from some offset on.
#[derive(Clone, Debug)]
pub(crate) struct Lexemes<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexemes<'t> {
    /// Returns the lexemes of `text` from the byte `offset` on; none when the offset lies outside or inside a character.
    pub fn from(text: &'t str, offset: usize) -> Self {
        let at = if text.is_char_boundary(offset) { offset } else { text.len() };
        Self { text, at }
    }

    /// Returns the lexemes of `text[span]`, with spans in `text`.
    pub fn within(text: &'t str, span: Span) -> Self {
        let end = span.end.min(text.len());
        if !text.is_char_boundary(end) {
            return Self::from(text, text.len());
        }
        Self::from(&text[..end], span.start)
    }

    /// Moves past white space and comments; returns the start of a block comment that never ends.
    fn skip_blank(&mut self) -> Option<usize> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            if blank > 0 {
                self.at += blank;
            } else if rest.starts_with("--") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                match block_comment_length(rest) {
                    Some(length) => self.at += length,
                    None => return Some(self.at),
                }
            } else {
                return None;
            }
        }
    }
}

impl<'t> Iterator for Lexemes<'t> {
    type Item = Lexeme<'t>;

    fn next(&mut self) -> Option<Self::Item> {
        let unclosed_comment = self.skip_blank();
        let start = self.at;
        let rest = &self.text[start..];
        let first = rest.chars().next()?;
        let (kind, length) = match unclosed_comment {
            Some(_) => (LexemeKind::Unclosed, None),
            None => measure(rest, first),
        };
        let (kind, end) = match length {
            Some(length) => (kind, start + length),
            None => (LexemeKind::Unclosed, self.text.len()),
        };
        self.at = end;
        Some(Lexeme { kind, text: &self.text[start..end], span: Span::new(start, end) })
    }
}

/// Returns the kind and the length of the lexeme at the start of `rest`; no length when it is never closed.
fn measure(rest: &str, first: char) -> (LexemeKind, Option<usize>) {
    match first {
        '"' => (LexemeKind::QuotedName, quoted_length(rest, '"', false)),
        '\'' => (LexemeKind::Text, quoted_length(rest, '\'', false)),
        '$' => dollar(rest),
        'e' | 'E' | 'x' | 'X' if rest[1..].starts_with('\'') => {
            let escapes = first.eq_ignore_ascii_case(&'e');
            (LexemeKind::Text, quoted_length(&rest[1..], '\'', escapes).map(|length| length + 1))
        }
        first if is_word_char(first) => {
            let length = rest.find(|c: char| !is_word_char(c) && c != '$').unwrap_or(rest.len());
            (LexemeKind::Word, Some(length))
        }
        other => (LexemeKind::Symbol, Some(other.len_utf8())),
    }
}

fn is_word_char(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || (!c.is_ascii() && !c.is_whitespace())
}

/// Returns the length of the quoted text at the start of `rest`; a doubled quote stands for itself.
fn quoted_length(rest: &str, quote: char, backslash_escapes: bool) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if backslash_escapes && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at + 1);
        }
    }
    None
}

/// Measures `$$…$$`, `$tag$…$tag$`, `$name` or a lone `$`.
fn dollar(rest: &str) -> (LexemeKind, Option<usize>) {
    let name_length = rest[1..].find(|c: char| !is_word_char(c)).unwrap_or(rest.len() - 1);
    let starts_with_digit = rest[1..].starts_with(|c: char| c.is_ascii_digit());
    let after_name = &rest[1 + name_length..];
    if after_name.starts_with('$') && !starts_with_digit {
        let delimiter = &rest[..name_length + 2];
        let body = &rest[delimiter.len()..];
        let length = body.find(delimiter).map(|at| at + 2 * delimiter.len());
        return (LexemeKind::DollarText, length);
    }
    match name_length {
        0 => (LexemeKind::Symbol, Some(1)),
        _ => (LexemeKind::Parameter, Some(1 + name_length)),
    }
}

/// Returns the length of the block comment at the start of `rest`; block comments nest.
fn block_comment_length(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0_usize);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Returns the extent of the dotted name of `parts` parts that starts at `offset`; `None` when no such name stands there.
pub(crate) fn dotted_name_extent(text: &str, offset: usize, parts: usize) -> Option<Span> {
    let mut lexemes = Lexemes::from(text, offset);
    let mut extent: Option<Span> = None;
    for part in 0..parts {
        if part > 0 && !lexemes.next()?.is_symbol(".") {
            return None;
        }
        let name = lexemes.next()?;
        let is_name = matches!(name.kind, LexemeKind::Word | LexemeKind::QuotedName | LexemeKind::Text);
        if !is_name {
            return None;
        }
        extent = Some(Span::new(extent.map_or(name.span.start, |span| span.start), name.span.end));
    }
    extent
}

/// Returns the extent of the single lexeme that starts at `offset`, such as a literal.
pub(crate) fn lexeme_extent(text: &str, offset: usize) -> Option<Span> {
    Lexemes::from(text, offset).next().map(|lexeme| lexeme.span)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Expect) {
        let lines: Vec<String> = Lexemes::from(text, 0).map(|l| format!("{:?} {}\n", l.kind, l.text)).collect();
        expected.assert_eq(&lines.concat());
    }

    #[test]
    fn quotes_hide_what_looks_like_sql() {
        check(
            r#"a."b ""c""" 'x;''y' E'\';' $$;$$ $t$ $$;$$ $t$ $p"#,
            expect![[r#"
                Word a
                Symbol .
                QuotedName "b ""c"""
                Text 'x;''y'
                Text E'\';'
                DollarText $$;$$
                DollarText $t$ $$;$$ $t$
                Parameter $p
            "#]],
        );
    }

    #[test]
    fn comments_nest_and_are_skipped() {
        check(
            "a /* x /* ; */ y */ b -- ' \n c",
            expect![[r#"
                Word a
                Word b
                Word c
            "#]],
        );
    }

    #[test]
    fn what_is_never_closed_reaches_the_end() {
        check(
            "a 'b c",
            expect![[r#"
                Word a
                Unclosed 'b c
            "#]],
        );
        check(
            "a /* b",
            expect![[r#"
                Word a
                Unclosed /* b
            "#]],
        );
        check(
            "$$ a",
            expect![[r#"
                Unclosed $$ a
            "#]],
        );
    }

    #[test]
    fn a_dotted_name_reaches_over_comments_and_quotes() {
        let text = r#"from "x.y" . lake /* c */ . "t" as z"#;
        let extent = dotted_name_extent(text, 5, 3).unwrap();
        assert_eq!(&text[extent.start..extent.end], r#""x.y" . lake /* c */ . "t""#);
        assert_eq!(dotted_name_extent(text, 5, 4), None);
        assert_eq!(dotted_name_extent(text, 4_000, 1), None);
    }

    proptest! {
        #[test]
        fn lexemes_are_ordered_and_hold_no_blank_edges(text in "[a-c'\"$ \\-/*\n.;é]{0,40}") {
            let mut end = 0;
            for lexeme in Lexemes::from(&text, 0) {
                prop_assert!(end <= lexeme.span.start && lexeme.span.start < lexeme.span.end);
                prop_assert_eq!(lexeme.text, &text[lexeme.span.start..lexeme.span.end]);
                end = lexeme.span.end;
            }
        }
    }
}
