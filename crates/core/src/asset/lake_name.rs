//! Which names a lake may have. A lake's name is an SQL alias and a part of URIs, so it must be a plain word.

use super::name::canonical_name;
use crate::id::LakeName;

/// The lake that the bare word `ducklake` means; in SQL its alias is `lake`.
pub const DEFAULT_LAKE: &str = "main";

/// Names that DuckDB or Pintail uses itself.
const RESERVED: [&str; 6] = ["temp", "system", "memory", "lake", "pg_catalog", "information_schema"];

/// Why a name cannot be a lake's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LakeNameError {
    /// Empty.
    #[error("a lake's name cannot be empty")]
    Empty,
    /// One of DuckDB's or Pintail's own names.
    #[error("`{0}` is reserved and cannot name a lake")]
    Reserved(String),
    /// Starts with `_pt_`, which names generated for a step start with.
    #[error("names that start with `_pt_` are reserved and cannot name a lake")]
    GeneratedPrefix,
    /// A character that is not a letter, digit, `_` or `-`, or a first one that is no letter or `_`.
    #[error("`{0}` cannot stand in a lake's name: letters, digits, `_` and `-`, first a letter or `_`")]
    Character(char),
}

/// Checks that `name` can name a lake, in any case.
///
/// # Errors
/// When it cannot, with the reason.
pub fn check_lake_name(name: &str) -> Result<(), LakeNameError> {
    let name = canonical_name(name);
    let Some(first) = name.chars().next() else { return Err(LakeNameError::Empty) };
    if !(first.is_alphabetic() || first == '_') {
        return Err(LakeNameError::Character(first));
    }
    let stranger = name.chars().find(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-')));
    if let Some(stranger) = stranger {
        return Err(LakeNameError::Character(stranger));
    }
    if name.starts_with("_pt_") {
        return Err(LakeNameError::GeneratedPrefix);
    }
    if RESERVED.contains(&name.as_str()) {
        return Err(LakeNameError::Reserved(name));
    }
    Ok(())
}

impl LakeName {
    /// Returns the name under which SQL knows the lake: `lake` for `main`, which DuckDB keeps for itself, else its own.
    pub fn sql_name(&self) -> &str {
        if self.as_str() == DEFAULT_LAKE { "lake" } else { self.as_str() }
    }
}
