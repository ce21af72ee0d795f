//! Asset URIs in annotations.

use crate::annotation::draft::Problem;
use crate::annotation::tokens::Value;
use crate::asset::{Asset, AssetError, AssetErrorKind};
use crate::diagnostic::Code;

/// Reads the URI of an asset.
pub fn read_asset(value: &Value<'_>) -> Result<Asset, Problem> {
    Asset::parse(&value.text).map_err(|error| problem(value, error, Code::BAD_ASSET))
}

/// Reads the URI of an asset, where a lake or database alone means its table `default_table`.
pub fn read_asset_or_named(value: &Value<'_>, default_table: &str) -> Result<Asset, Problem> {
    Asset::parse_or_named(&value.text, default_table).map_err(|error| problem(value, error, Code::BAD_ASSET))
}

/// Reads `<uri>.<column>`.
pub fn read_column_of_asset(value: &Value<'_>) -> Result<(Asset, String), Problem> {
    Asset::parse_column(&value.text).map_err(|error| problem(value, error, Code::BAD_ASSET))
}

/// Reads the URI of something that is read. What Windmill names besides assets is let pass with a note.
pub fn read_upstream(value: &Value<'_>) -> Result<Asset, Problem> {
    Asset::parse(&value.text).map_err(|error| problem(value, error, Code::WINDMILL_IGNORED))
}

fn problem(value: &Value<'_>, error: AssetError, code_of_references: Code) -> Problem {
    let code = match error.kind {
        AssetErrorKind::Malformed => Code::BAD_ASSET,
        AssetErrorKind::Resource | AssetErrorKind::Dbt => code_of_references,
    };
    let mut problem = Problem::new(code, value.span_from(error.offset), error.message);
    problem.help = error.help;
    problem
}
