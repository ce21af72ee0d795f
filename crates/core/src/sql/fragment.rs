//! A piece of SQL that a user wrote inside an annotation: a condition or an ORDER BY list.
//!
//! Invariant: a [`Fragment`] is closed in itself: its quotes, comments and brackets end inside it and it holds no `;`,
//! so that what Pintail writes around it keeps its meaning. Whether it is a valid expression is the engine's to say.

use std::fmt;

use super::scan::{LexemeKind, Lexemes};

/// A user's piece of SQL that cannot reach out of the brackets around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment(String);

/// Why a piece of SQL cannot stand inside a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// Nothing but white space and comments.
    #[error("the SQL is empty")]
    Empty,
    /// A quote or comment that is never closed.
    #[error("a quote or comment is never closed")]
    Unclosed,
    /// A closing bracket without its opening one, or the other way round.
    #[error("the brackets do not match")]
    Brackets,
    /// A `;` outside quotes.
    #[error("a `;` ends the expression")]
    Semicolon,
}

impl Fragment {
    /// Returns the fragment `text` when it is closed in itself.
    pub fn new(text: &str) -> Result<Self, FragmentError> {
        let mut open = Vec::new();
        let mut is_empty = true;
        for lexeme in Lexemes::from(text, 0) {
            is_empty = false;
            match (lexeme.kind, lexeme.text) {
                (LexemeKind::Unclosed, _) => return Err(FragmentError::Unclosed),
                (LexemeKind::Symbol, ";") => return Err(FragmentError::Semicolon),
                (LexemeKind::Symbol, "(") => open.push(")"),
                (LexemeKind::Symbol, "[") => open.push("]"),
                (LexemeKind::Symbol, "{") => open.push("}"),
                (LexemeKind::Symbol, ")" | "]" | "}") if open.pop() != Some(lexeme.text) => {
                    return Err(FragmentError::Brackets);
                }
                _ => {}
            }
        }
        match (is_empty, open.is_empty()) {
            (true, _) => Err(FragmentError::Empty),
            (_, false) => Err(FragmentError::Brackets),
            _ => Ok(Self(text.trim().to_owned())),
        }
    }
}

/// Shows the text on a line of its own, so that a trailing line comment ends before what follows.
impl fmt::Display for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}\n", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_fragment_stands_on_its_own_line() {
        let fragment = Fragment::new(" a > 0 AND f('(', $$)$$) -- fine ").unwrap();
        assert_eq!(format!("({fragment})"), "(\na > 0 AND f('(', $$)$$) -- fine\n)");
    }

    #[test]
    fn what_reaches_out_of_its_brackets_is_refused() {
        for (text, error) in [
            ("true) OR (true", FragmentError::Brackets),
            ("(a", FragmentError::Brackets),
            ("(a]", FragmentError::Brackets),
            ("a; DROP TABLE t", FragmentError::Semicolon),
            ("a = 'x", FragmentError::Unclosed),
            ("a /* b", FragmentError::Unclosed),
            (" -- nothing", FragmentError::Empty),
        ] {
            assert_eq!(Fragment::new(text), Err(error), "{text}");
        }
    }
}
