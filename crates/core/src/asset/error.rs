//! Why a text is no asset URI, with the place inside the text.

/// A text that is no asset URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AssetError {
    /// Whether the text is malformed or names something that is not an asset.
    pub kind: AssetErrorKind,
    /// One line, lower case, no full stop.
    pub message: String,
    /// The byte offset inside the parsed text where the fault lies.
    pub offset: usize,
    /// What to write instead.
    pub help: Option<String>,
}

/// What sort of text was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssetErrorKind {
    /// Meant as an asset, but malformed.
    Malformed,
    /// A Windmill resource (`res://`, `$res:`): understood, never an asset.
    Resource,
    /// A dbt model (`dbt://`): understood, never an asset.
    Dbt,
}

impl AssetError {
    pub(super) fn malformed(offset: usize, message: impl Into<String>) -> Self {
        Self { kind: AssetErrorKind::Malformed, message: message.into(), offset, help: None }
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn shifted(mut self, by: usize) -> Self {
        self.offset += by;
        self
    }
}
