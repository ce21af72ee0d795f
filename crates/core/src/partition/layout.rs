//! The physical slice: how a partition's rows are laid out in the table, and the bounds that select them.
//!
//! Invariant: the bounds are typed literals that name their zone (TIMESTAMPTZ) or mean UTC (TIMESTAMP, every connection
//! runs in UTC), so that a slice never depends on a session.

use thiserror::Error;

use super::{PartitionError, PartitionKey, TimeSpec, TimeUnit};
use crate::schema::{DataType, Scalar};

/// How the table is partitioned, so that one slice is whole files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SliceLayout {
    /// By date parts of the `by=` column; the slice is the window on it.
    Transforms {
        /// The `by=` column.
        column: String,
        /// `year`, `month`, `day`, `hour`: as many as the kind needs.
        transforms: Vec<&'static str>,
    },
    /// By a column that holds the identity.
    Identity {
        /// The identity column.
        column: String,
    },
}

/// Why a script's slices have no layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The query has no such column.
    #[error("the query has no column `{column}`, which `by=` names")]
    NoColumn {
        /// The `by=` column.
        column: String,
    },
    /// The column holds no time.
    #[error("`by={column}` is {data_type}, which holds no time: expected TIMESTAMP WITH TIME ZONE, TIMESTAMP or DATE")]
    NotATime {
        /// The `by=` column.
        column: String,
        /// Its type.
        data_type: String,
    },
    /// A DATE cannot tell hours.
    #[error("`by={column}` is DATE, which cannot tell the hours of an hourly script: expected a timestamp")]
    DateByHour {
        /// The `by=` column.
        column: String,
    },
    /// The key is none of the script's.
    #[error(transparent)]
    Key(#[from] PartitionError),
}

/// Returns the layout of the slices of `spec`; `by_type` is the type of the `by=` column in the query (`None` when the
/// query lacks it), `identity_column` the name that an identity column would have.
///
/// With `by=` and windows of UTC, or a DATE column, the table is partitioned by date parts of that column. With another
/// zone these would cut across slices, so an identity column is used, and `by=` only checks the window.
pub fn layout(spec: &TimeSpec, by_type: Option<&str>, identity_column: &str) -> Result<SliceLayout, LayoutError> {
    let identity = SliceLayout::Identity { column: identity_column.to_owned() };
    let Some(column) = &spec.by else { return Ok(identity) };
    let by_type = by_type.ok_or_else(|| LayoutError::NoColumn { column: column.clone() })?;
    let kind = TimeColumn::of(spec, column, by_type)?;
    if kind != TimeColumn::Date && !spec.is_utc() {
        return Ok(identity);
    }
    let transforms: &[&'static str] = match spec.unit {
        TimeUnit::Month => &["year", "month"],
        TimeUnit::Week | TimeUnit::Day => &["year", "month", "day"],
        TimeUnit::Hour => &["year", "month", "day", "hour"],
    };
    Ok(SliceLayout::Transforms { column: column.clone(), transforms: transforms.to_vec() })
}

/// Returns the bounds `[lower, upper)` of the slice `key` as SQL literals that compare with a column of type `by_type`.
pub fn slice_bounds(spec: &TimeSpec, key: &PartitionKey, by_type: &str) -> Result<(String, String), LayoutError> {
    let column = spec.by.as_deref().unwrap_or_default();
    let kind = TimeColumn::of(spec, column, by_type)?;
    if kind == TimeColumn::Date {
        let (first, after) = spec.local_dates(key)?;
        return Ok((format!("DATE '{first}'"), format!("DATE '{after}'")));
    }
    let window = spec.window(key)?;
    let literal = |instant: chrono::DateTime<chrono::Utc>| match kind {
        TimeColumn::Instant => format!("TIMESTAMPTZ '{}+00'", instant.format("%Y-%m-%d %H:%M:%S")),
        _ => format!("TIMESTAMP '{}'", instant.format("%Y-%m-%d %H:%M:%S")),
    };
    Ok((literal(window.start), literal(window.end)))
}

/// The three ways in which a column can hold time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TimeColumn {
    Instant,
    NaiveUtc,
    Date,
}

impl TimeColumn {
    fn of(spec: &TimeSpec, column: &str, data_type: &str) -> Result<Self, LayoutError> {
        match DataType::parse(data_type) {
            Ok(DataType::Scalar(Scalar::TimestampTz)) => Ok(TimeColumn::Instant),
            Ok(DataType::Scalar(
                Scalar::Timestamp | Scalar::TimestampS | Scalar::TimestampMs | Scalar::TimestampNs,
            )) => Ok(TimeColumn::NaiveUtc),
            Ok(DataType::Scalar(Scalar::Date)) if spec.unit == TimeUnit::Hour => {
                Err(LayoutError::DateByHour { column: column.to_owned() })
            }
            Ok(DataType::Scalar(Scalar::Date)) => Ok(TimeColumn::Date),
            _ => Err(LayoutError::NotATime { column: column.to_owned(), data_type: data_type.to_owned() }),
        }
    }
}
