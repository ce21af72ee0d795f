//! The rows of one partition, as a condition.
//!
//! Invariant: slices of one table do not overlap: an identity is compared with `=`, a window is half-open. Both forms
//! compare a bare column with constants, so that DuckLake skips files.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use crate::partition::{PartitionKey, Window};
use crate::sql::{Ident, Literal};

/// The rows of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slice {
    /// The rows whose identity column has this value.
    Identity {
        /// The identity column.
        column: String,
        /// The partition's identity.
        value: String,
    },
    /// The rows whose column lies in `[lower, upper)`.
    Window {
        /// The column that `by=` names.
        column: String,
        /// The first value inside, a typed SQL literal.
        lower: String,
        /// The first value that is no longer inside, a typed SQL literal.
        upper: String,
    },
}

impl Slice {
    /// Returns the slice of the identity column `column` that belongs to `key`.
    pub fn identity(column: impl Into<String>, key: &PartitionKey) -> Self {
        Self::Identity { column: column.into(), value: key.as_str().to_owned() }
    }

    /// Returns the slice on a column of type `data_type`, with the window's local dates in `zone` for a DATE column;
    /// `None` when a column of that type holds no time.
    pub fn window(column: impl Into<String>, data_type: &str, window: &Window, zone: Tz) -> Option<Self> {
        let lower = instant_literal(window.start, data_type, zone)?;
        let upper = instant_literal(window.end, data_type, zone)?;
        Some(Self::Window { column: column.into(), lower, upper })
    }

    /// Returns the column that decides.
    pub fn column(&self) -> &str {
        match self {
            Slice::Identity { column, .. } | Slice::Window { column, .. } => column,
        }
    }

    /// Returns the condition, with the column of `alias` when one is given.
    pub fn predicate(&self, alias: Option<&str>) -> String {
        let prefix = alias.map(|alias| format!("{alias}.")).unwrap_or_default();
        match self {
            Slice::Identity { column, value } => {
                format!("{prefix}{} = {}", Ident::new(column), Literal::new(value))
            }
            Slice::Window { column, lower, upper } => {
                let column = Ident::new(column);
                format!("{prefix}{column} >= {lower} AND {prefix}{column} < {upper}")
            }
        }
    }
}

/// Returns `instant` as a typed literal that compares with a column of `data_type`, or `None` when that type holds no
/// time. A DATE is the local date in `zone`; a TIMESTAMP without zone is taken as UTC, as the session reads it.
pub fn instant_literal(instant: DateTime<Utc>, data_type: &str, zone: Tz) -> Option<String> {
    let utc = instant.format("%Y-%m-%d %H:%M:%S%.6f");
    match data_type.to_ascii_uppercase().as_str() {
        "TIMESTAMP WITH TIME ZONE" | "TIMESTAMPTZ" => {
            Some(format!("TIMESTAMPTZ '{}+00'", instant.format("%Y-%m-%d %H:%M:%S%.f")))
        }
        "TIMESTAMP" | "DATETIME" | "TIMESTAMP_S" | "TIMESTAMP_MS" | "TIMESTAMP_NS" => {
            Some(format!("TIMESTAMP '{}'", utc.to_string().trim_end_matches(".000000")))
        }
        "DATE" => Some(format!("DATE '{}'", instant.with_timezone(&zone).format("%Y-%m-%d"))),
        _ => None,
    }
}
