//! The select list from the stage: one expression per column of the table.
//!
//! Invariant: names are unique without case, and every expression keeps its column's name, so that INSERT BY NAME finds
//! it. An identity column inherited from an upstream is dropped before the step's own identity is added.

use std::collections::BTreeMap;
use std::fmt;

use crate::schema::Schema;
use crate::sql::{Ident, Literal};

/// One column of the select list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projected {
    /// The staged column as it is.
    Column(Ident),
    /// The staged column in another type.
    Cast {
        /// The column.
        column: Ident,
        /// The type, as DESCRIBE prints it.
        data_type: String,
    },
    /// One text for every row: the partition's identity.
    Text {
        /// The column.
        column: Ident,
        /// The text.
        value: Literal,
    },
}

impl fmt::Display for Projected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Projected::Column(column) => column.fmt(f),
            Projected::Cast { column, data_type } => write!(f, "CAST({column} AS {data_type}) AS {column}"),
            Projected::Text { column, value } => write!(f, "{value} AS {column}"),
        }
    }
}

/// A select list; Display puts one column on a line.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Projection(pub Vec<Projected>);

impl fmt::Display for Projection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, column) in self.0.iter().enumerate() {
            let separator = if index == 0 { "  " } else { ",\n  " };
            write!(f, "{separator}{column}")?;
        }
        Ok(())
    }
}

/// Returns the select list from a stage of shape `stage`.
///
/// `casts` maps lower-cased column names to the type that the lake holds; `dropped` names staged columns that are not
/// written (an inherited identity column, or what `on_schema_change ignore` leaves out); `identity` is the identity
/// column and its value, which comes last and replaces a staged column of that name.
pub fn projection(
    stage: &Schema,
    casts: &BTreeMap<String, String>,
    dropped: &[String],
    identity: Option<(&str, &str)>,
) -> Projection {
    let is_dropped = |name: &str| {
        let is_identity = identity.is_some_and(|(column, _)| column.eq_ignore_ascii_case(name));
        is_identity || dropped.iter().any(|dropped| dropped.eq_ignore_ascii_case(name))
    };
    let staged = stage.columns.iter().filter(|column| !is_dropped(&column.name)).map(|column| {
        match casts.get(&column.name.to_ascii_lowercase()) {
            Some(data_type) => Projected::Cast { column: Ident::new(&column.name), data_type: data_type.clone() },
            None => Projected::Column(Ident::new(&column.name)),
        }
    });
    let own =
        identity.map(|(column, value)| Projected::Text { column: Ident::new(column), value: Literal::new(value) });
    Projection(staged.chain(own).collect())
}

/// Returns the select list that carries rows of the shape `old` into a table of the shape `new`: columns of both, cast
/// where the type differs. Columns that only `new` has become NULL through INSERT BY NAME.
pub fn kept_projection(old: &Schema, new: &Schema) -> Projection {
    let kept = new.columns.iter().filter_map(|column| {
        let before = old.columns.iter().find(|before| before.name.eq_ignore_ascii_case(&column.name))?;
        let name = Ident::new(&column.name);
        Some(match before.data_type == column.data_type {
            true => Projected::Column(name),
            false => Projected::Cast { column: name, data_type: column.data_type.clone() },
        })
    });
    Projection(kept.collect())
}
