//! Increments: the partitions of `partitioned dynamic key=<column>`, each everything after the last consumed value.
//!
//! Invariant: increments tile the values of the column: `(after, upto]`, and the next begins where the last one ended.
//! Values are kept as the engine's own text of the column's type, which is exact to its last digit.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::PartitionSpec;
use crate::schema::{DataType, Scalar};
use crate::sql::Literal;

/// How far beyond now a value may lie and still be taken, when `tolerance=` does not say it.
pub const TOLERANCE: Duration = Duration::from_secs(60 * 60);

/// What one write consumed: the rows whose column lies in `(after, upto]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Increment {
    /// The column.
    pub column: String,
    /// Its type.
    pub data_type: String,
    /// The greatest value that is not inside; `None` when it begins with the first row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The greatest value inside; `None` when there was no row to take yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upto: Option<String>,
    /// The first of the times that lay too far in the future, in microseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_micros: Option<i64>,
}

/// The kinds of columns that increments can go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// TIMESTAMP WITH TIME ZONE.
    Instant,
    /// TIMESTAMP of any precision, in UTC.
    Timestamp,
    /// DATE.
    Date,
    /// Whole and decimal numbers.
    Number,
    /// VARCHAR, in the order of its bytes.
    Text,
}

impl KeyKind {
    /// Returns the kind of `data_type`; `None` when its values have no order that increments could follow.
    pub fn of(data_type: &str) -> Option<Self> {
        match DataType::parse(data_type).ok()? {
            DataType::Scalar(scalar) => match scalar {
                Scalar::TimestampTz => Some(KeyKind::Instant),
                Scalar::Timestamp | Scalar::TimestampS | Scalar::TimestampMs | Scalar::TimestampNs => {
                    Some(KeyKind::Timestamp)
                }
                Scalar::Date => Some(KeyKind::Date),
                Scalar::Varchar => Some(KeyKind::Text),
                Scalar::TinyInt | Scalar::SmallInt | Scalar::Integer | Scalar::BigInt | Scalar::HugeInt => {
                    Some(KeyKind::Number)
                }
                Scalar::UTinyInt | Scalar::USmallInt | Scalar::UInteger | Scalar::UBigInt | Scalar::UHugeInt => {
                    Some(KeyKind::Number)
                }
                _ => None,
            },
            DataType::Decimal { .. } => Some(KeyKind::Number),
            _ => None,
        }
    }

    /// Returns whether a value can lie in the future.
    pub fn is_time(self) -> bool {
        matches!(self, KeyKind::Instant | KeyKind::Timestamp | KeyKind::Date)
    }
}

impl Increment {
    /// Returns `value` as a typed SQL literal.
    pub fn literal(&self, value: &str) -> String {
        typed(value, &self.data_type)
    }
}

/// Returns a value of a column of type `data_type` as a literal.
pub fn typed(value: &str, data_type: &str) -> String {
    format!("CAST({} AS {data_type})", Literal::new(value))
}

impl PartitionSpec {
    /// Returns the column that increments go by, for `dynamic key=<column>`.
    pub fn increment_column(&self) -> Option<&str> {
        match self {
            PartitionSpec::Dynamic { key, .. } if !key.starts_with("$.") => Some(key),
            _ => None,
        }
    }

    /// Returns the path into a payload, for `dynamic key=$.a.b`.
    pub fn payload_path(&self) -> Option<&str> {
        match self {
            PartitionSpec::Dynamic { key, .. } if key.starts_with("$.") => Some(key),
            _ => None,
        }
    }

    /// Returns how far beyond now a value may lie and still be taken.
    pub fn tolerance(&self) -> Duration {
        match self {
            PartitionSpec::Dynamic { tolerance, .. } => tolerance.unwrap_or(TOLERANCE),
            PartitionSpec::Time(_) => TOLERANCE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordered_types_have_increments_and_others_do_not() {
        let kind = |text: &str| KeyKind::of(text);
        assert_eq!(kind("TIMESTAMP WITH TIME ZONE"), Some(KeyKind::Instant));
        assert_eq!(kind("TIMESTAMP_NS"), Some(KeyKind::Timestamp));
        assert_eq!(kind("DATE"), Some(KeyKind::Date));
        assert_eq!(kind("BIGINT"), Some(KeyKind::Number));
        assert_eq!(kind("DECIMAL(18,3)"), Some(KeyKind::Number));
        assert_eq!(kind("VARCHAR"), Some(KeyKind::Text));
        assert_eq!([kind("DOUBLE"), kind("BOOLEAN"), kind("INTEGER[]"), kind("BLOB")], [None; 4]);
    }

    #[test]
    fn a_value_is_quoted_whatever_it_holds() {
        assert_eq!(typed("it's", "VARCHAR"), "CAST('it''s' AS VARCHAR)");
    }
}
