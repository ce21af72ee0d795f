//! Which types the lake can hold, and the cast that a managed write puts around the others.
//!
//! Why: DuckLake stores HUGEINT as DOUBLE in Parquet, so that a `sum()` of BIGINT silently loses digits; it refuses
//! BIT, ENUM, UNION, fixed ARRAY and BIGNUM; and it moves a TIMETZ to UTC. The engine describes a bare NULL column as
//! INTEGER, so the NULL type is seen only where a bound plan shows it.

use super::data_type::{DataType, Field, Scalar};
use super::{Column, Schema};
use crate::annotation::ColumnDecl;

/// What a managed write does with a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LakeType {
    /// The lake holds it as it is.
    Same,
    /// The stage is cast to this type; the cast fails on a value that does not fit.
    CastTo(String),
    /// The lake cannot hold it.
    Refused {
        /// What to write in the query instead.
        help: String,
    },
}

/// The columns of a query as the lake will hold them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LakeCast {
    /// The schema after the casts.
    pub schema: Schema,
    /// The columns that are cast, with the type they are cast to.
    pub casts: Vec<Column>,
}

/// A column whose type the lake cannot hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedColumn {
    /// The column, with its type.
    pub column: Column,
    /// What to write in the query instead.
    pub help: String,
}

/// Returns what a managed write does with a column of type `data_type` that is `declared` with a type or not.
pub fn lake_type(data_type: &str, declared: Option<&str>) -> LakeType {
    let from = DataType::of(data_type);
    match held(&from, declared.map(DataType::of).as_ref()) {
        Ok(to) if to == from => LakeType::Same,
        Ok(to) => LakeType::CastTo(to.to_string()),
        Err(help) => LakeType::Refused { help },
    }
}

/// Returns the schema in which the lake will hold `query`, or every column that it cannot.
pub fn lake_schema<'a>(
    query: &Schema,
    declared: impl IntoIterator<Item = &'a ColumnDecl>,
) -> Result<LakeCast, Vec<RefusedColumn>> {
    let declared: Vec<&ColumnDecl> = declared.into_iter().collect();
    let mut shape = LakeCast::default();
    let mut refused = Vec::new();
    for column in &query.columns {
        let declaration = declared.iter().find(|declared| declared.name.eq_ignore_ascii_case(&column.name));
        match lake_type(&column.data_type, declaration.and_then(|declared| declared.data_type.as_deref())) {
            LakeType::Same => shape.schema.columns.push(column.clone()),
            LakeType::CastTo(data_type) => {
                let cast = Column { name: column.name.clone(), data_type };
                shape.schema.columns.push(cast.clone());
                shape.casts.push(cast);
            }
            LakeType::Refused { help } => refused.push(RefusedColumn { column: column.clone(), help }),
        }
    }
    if refused.is_empty() { Ok(shape) } else { Err(refused) }
}

/// The type that the lake holds for `from`, or what to write instead.
fn held(from: &DataType, declared: Option<&DataType>) -> Result<DataType, String> {
    match from {
        DataType::Scalar(scalar) => held_scalar(*scalar, declared),
        DataType::Decimal { .. } => Ok(from.clone()),
        DataType::Enum(_) => Ok(DataType::Scalar(Scalar::Varchar)),
        DataType::Union(_) => Err("take one member with `union_extract(…)`, or cast the column to VARCHAR".into()),
        DataType::Array(element, _) | DataType::List(element) => {
            let declared = match declared {
                Some(DataType::List(element) | DataType::Array(element, _)) => Some(&**element),
                _ => None,
            };
            Ok(DataType::List(Box::new(held(element, declared)?)))
        }
        DataType::Map(key, value) => {
            let (declared_key, declared_value) = match declared {
                Some(DataType::Map(key, value)) => (Some(&**key), Some(&**value)),
                _ => (None, None),
            };
            Ok(DataType::Map(Box::new(held(key, declared_key)?), Box::new(held(value, declared_value)?)))
        }
        DataType::Struct(fields) => held_struct(fields, declared),
        DataType::Other(text) if text.starts_with("GEOMETRY(") => Ok(from.clone()),
        DataType::Other(text) => Err(format!("`{text}` is no built-in type; cast the column to one")),
    }
}

fn held_struct(fields: &[Field], declared: Option<&DataType>) -> Result<DataType, String> {
    let declared_field = |name: &str| match declared {
        Some(DataType::Struct(fields)) => fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)),
        _ => None,
    };
    let held_field = |field: &Field| {
        let data_type = held(&field.data_type, declared_field(&field.name).map(|field| &field.data_type));
        let data_type = data_type.map_err(|help| format!("in field `{}`: {help}", field.name))?;
        Ok(Field { data_type, ..field.clone() })
    };
    Ok(DataType::Struct(fields.iter().map(held_field).collect::<Result<_, String>>()?))
}

fn held_scalar(scalar: Scalar, declared: Option<&DataType>) -> Result<DataType, String> {
    match scalar {
        Scalar::HugeInt | Scalar::UHugeInt => Ok(match declared {
            Some(exact @ DataType::Decimal { .. }) => exact.clone(),
            _ => DataType::Scalar(Scalar::BigInt),
        }),
        Scalar::Null => match declared {
            Some(declared) => held(declared, None),
            None => Err("give the NULL a type, such as `CAST(NULL AS VARCHAR)`, or declare the column with one".into()),
        },
        Scalar::Bit => Err("cast the column to VARCHAR, or to BLOB".into()),
        Scalar::Bignum => Err("cast the column to DECIMAL(38,0), or to VARCHAR when it is larger".into()),
        Scalar::TimeTz => Err("cast the column to TIME, or keep a TIMESTAMP WITH TIME ZONE".into()),
        other => Ok(DataType::Scalar(other)),
    }
}
