//! Why something is not an event: where, what is there, what was expected.

use std::fmt;

/// A place in a text, as editors count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The byte, from 0.
    pub byte: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Place {
    /// Returns the place of `byte` in `text`.
    pub fn in_text(text: &str, byte: usize) -> Self {
        let byte = text.floor_char_boundary(byte);
        let before = &text[..byte];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self { byte, line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Something that is not a CloudEvent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct EventError {
    /// Where, when there is a text.
    pub place: Option<Place>,
    /// The attribute, when it is one.
    pub attribute: Option<String>,
    /// What was expected, and what is there.
    pub reason: String,
}

impl EventError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { place: None, attribute: None, reason: reason.into() }
    }

    pub(crate) fn of_attribute(attribute: &str, reason: impl Into<String>) -> Self {
        Self { place: None, attribute: Some(attribute.to_owned()), reason: reason.into() }
    }

    pub(super) fn at(mut self, place: Place) -> Self {
        self.place.get_or_insert(place);
        self
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if let Some(attribute) = &self.attribute {
            write!(f, "`{}` ", attribute.escape_debug())?;
        }
        f.write_str(&self.reason)
    }
}
