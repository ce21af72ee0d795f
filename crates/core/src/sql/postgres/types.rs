//! Which Postgres type holds a column of the engine's, how its values travel, and the way back.
//!
//! Invariant: what [`postgres_type`] gives holds every value of the engine's type exactly; a type without such a home is
//! refused with the cast to write. The table of types is in docs/guides/targets.md.

use crate::schema::{DataType, Scalar};

/// How the values of a column travel: the binary form that Postgres reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// `boolean`.
    Bool,
    /// `smallint`.
    Int2,
    /// `integer`.
    Int4,
    /// `bigint`.
    Int8,
    /// `real`.
    Float4,
    /// `double precision`.
    Float8,
    /// `numeric` with so many digits after the point.
    Numeric(u8),
    /// `text`.
    Text,
    /// `bytea`.
    Bytea,
    /// `date`.
    Date,
    /// `time`.
    Time,
    /// `timestamp` and `timestamptz`: microseconds.
    Timestamp,
    /// `timestamptz`.
    TimestampTz,
    /// `interval`.
    Interval,
    /// `uuid`, handed over as text.
    Uuid,
    /// `jsonb`, handed over as text.
    Jsonb,
    /// An array of one dimension.
    Array(Box<Wire>),
}

/// The home of a type in Postgres.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresType {
    /// The type as `CREATE TABLE` takes it and `format_type` prints it.
    pub text: String,
    /// How values travel.
    pub wire: Wire,
    /// The engine's type that the value is cast to before it travels.
    pub exported: String,
    /// Whether the value is turned into JSON before that.
    pub as_json: bool,
}

/// Returns the home of `data_type`, or what to write instead.
///
/// # Errors
/// When no Postgres type holds every value of it.
pub fn postgres_type(data_type: &str) -> Result<PostgresType, String> {
    home(&DataType::of(data_type))
}

fn home(data_type: &DataType) -> Result<PostgresType, String> {
    let plain = |text: &str, wire: Wire, exported: &str| PostgresType {
        text: text.to_owned(),
        wire,
        exported: exported.to_owned(),
        as_json: false,
    };
    Ok(match data_type {
        DataType::Scalar(scalar) => scalar_home(*scalar, plain)?,
        DataType::Decimal { precision, scale } => PostgresType {
            text: format!("numeric({precision},{scale})"),
            wire: Wire::Numeric(*scale),
            exported: format!("DECIMAL({precision},{scale})"),
            as_json: false,
        },
        DataType::Enum(_) => plain("text", Wire::Text, "VARCHAR"),
        // A list of lists need not be rectangular, and an array of Postgres must be.
        DataType::List(element) | DataType::Array(element, _) => match home(element)? {
            PostgresType { wire: Wire::Array(_) | Wire::Jsonb, .. } => json(),
            element => PostgresType {
                text: format!("{}[]", element.text),
                wire: Wire::Array(Box::new(element.wire)),
                exported: format!("{}[]", element.exported),
                as_json: false,
            },
        },
        DataType::Struct(_) | DataType::Map(..) => json(),
        DataType::Union(_) => return Err("take one member with `union_extract(…)`".to_owned()),
        DataType::Other(text) => return Err(format!("`{text}` has no place in Postgres; cast the column to VARCHAR")),
    })
}

fn json() -> PostgresType {
    PostgresType { text: "jsonb".to_owned(), wire: Wire::Jsonb, exported: "VARCHAR".to_owned(), as_json: true }
}

fn scalar_home(scalar: Scalar, plain: impl Fn(&str, Wire, &str) -> PostgresType) -> Result<PostgresType, String> {
    Ok(match scalar {
        Scalar::Boolean => plain("boolean", Wire::Bool, "BOOLEAN"),
        Scalar::TinyInt | Scalar::UTinyInt | Scalar::SmallInt => plain("smallint", Wire::Int2, "SMALLINT"),
        Scalar::USmallInt | Scalar::Integer => plain("integer", Wire::Int4, "INTEGER"),
        Scalar::UInteger | Scalar::BigInt => plain("bigint", Wire::Int8, "BIGINT"),
        Scalar::UBigInt => plain("numeric(20,0)", Wire::Numeric(0), "DECIMAL(20,0)"),
        Scalar::HugeInt | Scalar::UHugeInt => plain("numeric(38,0)", Wire::Numeric(0), "DECIMAL(38,0)"),
        Scalar::Float => plain("real", Wire::Float4, "FLOAT"),
        Scalar::Double => plain("double precision", Wire::Float8, "DOUBLE"),
        Scalar::Varchar => plain("text", Wire::Text, "VARCHAR"),
        Scalar::Json => plain("jsonb", Wire::Jsonb, "VARCHAR"),
        Scalar::Blob => plain("bytea", Wire::Bytea, "BLOB"),
        Scalar::Uuid => plain("uuid", Wire::Uuid, "VARCHAR"),
        Scalar::Date => plain("date", Wire::Date, "DATE"),
        Scalar::Time => plain("time without time zone", Wire::Time, "TIME"),
        Scalar::TimestampS | Scalar::TimestampMs | Scalar::Timestamp => {
            plain("timestamp without time zone", Wire::Timestamp, "TIMESTAMP")
        }
        Scalar::TimestampTz => plain("timestamp with time zone", Wire::TimestampTz, "TIMESTAMP WITH TIME ZONE"),
        Scalar::Interval => plain("interval", Wire::Interval, "INTERVAL"),
        Scalar::TimestampNs => return Err("Postgres keeps microseconds: cast the column to TIMESTAMP".to_owned()),
        Scalar::TimeNs => return Err("Postgres keeps microseconds: cast the column to TIME".to_owned()),
        Scalar::TimeTz => return Err("cast the column to TIME, or keep a TIMESTAMP WITH TIME ZONE".to_owned()),
        Scalar::Bit => return Err("cast the column to VARCHAR, or to BLOB".to_owned()),
        Scalar::Bignum => return Err("cast the column to DECIMAL(38,0), or to VARCHAR when it is larger".to_owned()),
        Scalar::Variant => return Err("cast the column to JSON".to_owned()),
        Scalar::Geometry => return Err("cast the column to BLOB or VARCHAR".to_owned()),
        Scalar::Null => return Err("give the NULL a type, such as `CAST(NULL AS VARCHAR)`".to_owned()),
    })
}

/// Returns the engine's type for a Postgres type as `format_type` prints it.
pub fn duckdb_type(text: &str) -> String {
    if let Some(element) = text.strip_suffix("[]") {
        return format!("{}[]", duckdb_type(element));
    }
    let (name, parameters) = match text.split_once('(') {
        Some((name, rest)) => (name.trim(), rest.split_once(')').map(|(inside, _)| inside)),
        None => (text, None),
    };
    let known = match (name, parameters) {
        ("boolean", _) => "BOOLEAN",
        ("smallint", _) => "SMALLINT",
        ("integer", _) => "INTEGER",
        ("bigint", _) => "BIGINT",
        ("real", _) => "FLOAT",
        ("double precision", _) => "DOUBLE",
        ("numeric", Some(parameters)) => return format!("DECIMAL({parameters})"),
        ("text" | "character varying" | "character" | "name", _) => "VARCHAR",
        ("json" | "jsonb", _) => "JSON",
        ("bytea", _) => "BLOB",
        ("uuid", _) => "UUID",
        ("date", _) => "DATE",
        ("interval", _) => "INTERVAL",
        ("time", _) | ("time without time zone", _) => "TIME",
        ("timestamp with time zone", _) => "TIMESTAMP WITH TIME ZONE",
        ("timestamp without time zone", _) => "TIMESTAMP",
        // `timestamp(3) with time zone` has its parameter in the middle.
        ("timestamp", _) if text.ends_with("with time zone") => "TIMESTAMP WITH TIME ZONE",
        ("timestamp", _) => "TIMESTAMP",
        _ => return text.to_ascii_uppercase(),
    };
    known.to_owned()
}

/// Returns the engine's type of a table's column as far as a query's column of type `query` has to be compared with it.
///
/// A Postgres table may have columns that the engine has no type for: `numeric` without limits takes any number, and a
/// type of the user's own takes the text that it reads.
pub fn fitted(column: &str, query: &str) -> String {
    let held = duckdb_type(column);
    let takes_query = match column {
        "numeric" => {
            matches!(DataType::of(query), DataType::Decimal { .. })
                || matches!(query, "SMALLINT" | "INTEGER" | "BIGINT")
        }
        _ => matches!(DataType::of(&held), DataType::Other(_)) && query == "VARCHAR",
    };
    if takes_query { query.to_owned() } else { held }
}
