//! DuckDB types as values: what a type text means, free of aliases and spelling.
//!
//! Invariant: `parse(display(x)) == x`, and display is what DESCRIBE prints, safe to put into a CAST.

use std::fmt;

use super::parse::{self, TypeError};
use crate::sql::{Ident, Literal};

/// One type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataType {
    /// A type without parts.
    Scalar(Scalar),
    /// `DECIMAL(precision,scale)`.
    Decimal {
        /// Digits in all, 1 to 38.
        precision: u8,
        /// Digits after the point, at most the precision.
        scale: u8,
    },
    /// `ENUM('a', 'b')`.
    Enum(Vec<String>),
    /// `STRUCT(a INTEGER, …)`.
    Struct(Vec<Field>),
    /// `UNION(a INTEGER, …)`.
    Union(Vec<Field>),
    /// `T[]`.
    List(Box<DataType>),
    /// `T[n]`.
    Array(Box<DataType>, u32),
    /// `MAP(key, value)`.
    Map(Box<DataType>, Box<DataType>),
    /// A type of an extension or the user's own, upper-cased with its parameters as written.
    Other(String),
}

/// A named part of a STRUCT or UNION; names compare without case, as DuckDB looks them up.
#[derive(Clone, Debug, Eq)]
pub struct Field {
    /// The name, unquoted.
    pub name: String,
    /// Whether the source quoted it, which display repeats (it may be a keyword).
    pub quoted: bool,
    /// The type.
    pub data_type: DataType,
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name.eq_ignore_ascii_case(&other.name) && self.data_type == other.data_type
    }
}

macro_rules! scalars {
    ($($name:ident = $text:literal $(| $alias:literal)*;)*) => {
        /// A type without parts; the canonical text is DESCRIBE's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Scalar {
            $(#[doc = concat!("`", $text, "`.")] $name,)*
        }

        impl Scalar {
            /// Returns the canonical text.
            pub fn text(self) -> &'static str {
                match self { $(Scalar::$name => $text,)* }
            }

            /// Returns the scalar of an upper-case word, aliases included.
            pub(super) fn of_word(word: &str) -> Option<Self> {
                match word { $($text $(| $alias)* => Some(Scalar::$name),)* _ => None }
            }
        }
    };
}

scalars! {
    Boolean = "BOOLEAN" | "BOOL" | "LOGICAL";
    TinyInt = "TINYINT" | "INT1";
    SmallInt = "SMALLINT" | "INT2" | "INT16" | "SHORT";
    Integer = "INTEGER" | "INT" | "INT4" | "INT32" | "INTEGRAL" | "SIGNED";
    BigInt = "BIGINT" | "INT8" | "INT64" | "LONG" | "OID";
    HugeInt = "HUGEINT" | "INT128";
    UTinyInt = "UTINYINT" | "UINT8";
    USmallInt = "USMALLINT" | "UINT16";
    UInteger = "UINTEGER" | "UINT32";
    UBigInt = "UBIGINT" | "UINT64";
    UHugeInt = "UHUGEINT" | "UINT128";
    Float = "FLOAT" | "FLOAT4" | "REAL";
    Double = "DOUBLE" | "FLOAT8";
    Varchar = "VARCHAR" | "TEXT" | "STRING" | "CHAR" | "BPCHAR" | "NVARCHAR";
    Json = "JSON";
    Blob = "BLOB" | "BYTEA" | "BINARY" | "VARBINARY";
    Bit = "BIT" | "BITSTRING";
    Bignum = "BIGNUM" | "VARINT";
    Uuid = "UUID" | "GUID";
    Date = "DATE";
    Time = "TIME";
    TimeNs = "TIME_NS";
    TimeTz = "TIME WITH TIME ZONE" | "TIMETZ";
    TimestampS = "TIMESTAMP_S";
    TimestampMs = "TIMESTAMP_MS";
    Timestamp = "TIMESTAMP" | "DATETIME" | "TIMESTAMP_US";
    TimestampNs = "TIMESTAMP_NS";
    TimestampTz = "TIMESTAMP WITH TIME ZONE" | "TIMESTAMPTZ";
    Interval = "INTERVAL";
    Variant = "VARIANT";
    Geometry = "GEOMETRY";
    Null = "\"NULL\"" | "NULL";
}

impl DataType {
    /// Reads a type text, aliases and nesting included.
    pub fn parse(text: &str) -> Result<Self, TypeError> {
        parse::parse(text)
    }

    /// Reads a type text of the engine's; one that cannot be read is a type by itself.
    pub fn of(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|_| DataType::Other(text.trim().to_ascii_uppercase()))
    }
}

/// Returns whether two type texts mean one type: `INT` and `INTEGER`, `DECIMAL(18, 3)` and `NUMERIC`.
pub fn types_equal(one: &str, other: &str) -> bool {
    DataType::of(one) == DataType::of(other)
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DataType::Scalar(scalar) => f.write_str(scalar.text()),
            DataType::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            DataType::Enum(values) => {
                let values: Vec<String> = values.iter().map(|value| Literal::new(value).to_string()).collect();
                write!(f, "ENUM({})", values.join(", "))
            }
            DataType::Struct(fields) => write!(f, "STRUCT({})", field_list(fields)),
            DataType::Union(fields) => write!(f, "UNION({})", field_list(fields)),
            DataType::List(element) => write!(f, "{element}[]"),
            DataType::Array(element, size) => write!(f, "{element}[{size}]"),
            DataType::Map(key, value) => write!(f, "MAP({key}, {value})"),
            DataType::Other(text) => f.write_str(text),
        }
    }
}

fn field_list(fields: &[Field]) -> String {
    let field = |field: &Field| match field.quoted {
        true => format!("{} {}", Ident::new(&field.name), field.data_type),
        false => format!("{} {}", field.name, field.data_type),
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}
