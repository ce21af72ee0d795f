//! The one parser of asset URIs.
//!
//! A URI is `<scheme>://<catalog>/<rest>`. Names of lakes and databases are split at `.` before they are unescaped, so
//! that `%2E` and quoted parts (`"a.b"`) may hold a dot. Keys of objects are taken byte for byte.

use crate::diagnostic::nearest;
use crate::id::LakeName;

use super::name::{canonical_name, unescape};
use super::{
    Asset, AssetError, AssetErrorKind, DEFAULT_DATATABLE, DEFAULT_DATATABLE_SCHEMA, DEFAULT_LAKE, DEFAULT_LAKE_SCHEMA,
    check_lake_name,
};

const SCHEMES: [&str; 4] = ["ducklake", "datatable", "s3", "volume"];

/// What `ATTACH '<uri>'` names: a lake or a Postgres database as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Catalog {
    /// `ducklake`, `ducklake://<lake>`.
    Lake(LakeName),
    /// `datatable`, `datatable://<db>`.
    Datatable(String),
}

impl Asset {
    /// Parses the URI of an asset.
    ///
    /// # Errors
    /// When `text` is none, with the offset of the fault inside it.
    pub fn parse(text: &str) -> Result<Self, AssetError> {
        parse_asset(text, None)
    }

    /// Parses the URI of an asset where a lake or database alone means its table `default_table`: `ducklake`,
    /// `ducklake://main`, `datatable`.
    ///
    /// # Errors
    /// When `text` is no such URI, with the offset of the fault inside it.
    pub fn parse_or_named(text: &str, default_table: &str) -> Result<Self, AssetError> {
        parse_asset(text, Some(default_table))
    }

    /// Parses `<uri>.<column>`, such as `ducklake://main/customers.id` or `ducklake://main/sales.orders.id`.
    ///
    /// # Errors
    /// When `text` is no URI with a column, with the offset of the fault inside it.
    pub fn parse_column(text: &str) -> Result<(Self, String), AssetError> {
        let dot = last_dot_of_last_part(text).ok_or_else(|| {
            AssetError::malformed(text.len(), "the column is missing")
                .with_help("write `<uri>.<column>`, such as `ducklake://main/customers.id`")
        })?;
        let asset = Asset::parse(&text[..dot])?;
        let column = parse_name(&text[dot + 1..], "column").map_err(|error| error.shifted(dot + 1))?;
        Ok((asset, column))
    }
}

impl Catalog {
    /// Parses the URI of a lake or database as a whole; `None` when `text` has neither scheme.
    ///
    /// # Errors
    /// When the scheme is right and the rest is not.
    pub fn parse(text: &str) -> Option<Result<Self, AssetError>> {
        let (scheme, rest, start) = split_scheme(text);
        let rest = rest.unwrap_or_default();
        let name = rest.strip_suffix('/').unwrap_or(rest);
        match scheme.to_ascii_lowercase().as_str() {
            "ducklake" => Some(parse_lake(name, start).map(Catalog::Lake)),
            "datatable" => Some(parse_database(name, start).map(Catalog::Datatable)),
            _ => None,
        }
    }
}

/// Splits `scheme://rest`; `start` is where the rest begins. Without `://` the whole text is the scheme.
fn split_scheme(text: &str) -> (&str, Option<&str>, usize) {
    match text.split_once("://") {
        Some((scheme, rest)) => (scheme, Some(rest), scheme.len() + "://".len()),
        None => (text, None, text.len()),
    }
}

fn parse_asset(text: &str, default_table: Option<&str>) -> Result<Asset, AssetError> {
    if let Some(error) = windmill_reference(text) {
        return Err(error);
    }
    let (scheme, rest, start) = split_scheme(text);
    let whole = rest.unwrap_or_default();
    match (scheme.to_ascii_lowercase().as_str(), rest) {
        ("ducklake", rest) if rest.is_some() || default_table.is_some() => {
            parse_lake_table(whole, start, default_table)
        }
        ("datatable", rest) if rest.is_some() || default_table.is_some() => {
            parse_datatable(whole, start, default_table)
        }
        ("s3", Some(rest)) => parse_object(rest, start),
        ("volume", Some(rest)) => parse_volume(rest, start),
        _ => Err(unknown_scheme(text, scheme, rest.is_some())),
    }
}

/// Recognises Windmill's references to things that are no assets.
fn windmill_reference(text: &str) -> Option<AssetError> {
    let (kind, message) = if text.starts_with("res://") || text.starts_with("$res:") {
        (AssetErrorKind::Resource, "a Windmill resource is configuration, not an asset")
    } else if text.starts_with("dbt://") {
        (AssetErrorKind::Dbt, "a dbt model is not an asset here")
    } else {
        return None;
    };
    Some(AssetError { kind, message: message.to_owned(), offset: 0, help: None })
}

fn unknown_scheme(text: &str, scheme: &str, has_separator: bool) -> AssetError {
    let lower = scheme.to_ascii_lowercase();
    if !has_separator {
        let error = AssetError::malformed(0, format!("`{text}` is not an asset URI"));
        let (head, tail) = text.split_once([':', '/']).unwrap_or((text, ""));
        return match nearest(head, SCHEMES) {
            Some(scheme) if SCHEMES.contains(&lower.as_str()) => {
                error.with_help(format!("name what lies in it: `{scheme}://{}`", example_of(scheme)))
            }
            Some(scheme) if !tail.is_empty() => {
                error.with_help(format!("write `{scheme}://{}`", tail.trim_start_matches(['/', ':'])))
            }
            _ => error.with_help(format!("a table of the lake `main` is `ducklake://main/{text}`")),
        };
    }
    let error = AssetError::malformed(0, format!("unknown scheme `{scheme}`"));
    match nearest(scheme, SCHEMES) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help("assets are `ducklake://`, `datatable://`, `s3://` and `volume://`"),
    }
}

fn example_of(scheme: &str) -> &'static str {
    match scheme {
        "ducklake" => "main/orders",
        "datatable" => "main/orders",
        "s3" => "raw/orders.parquet",
        _ => "landing/orders.csv",
    }
}

fn parse_lake(name: &str, start: usize) -> Result<LakeName, AssetError> {
    if name.is_empty() {
        return Ok(LakeName(DEFAULT_LAKE.to_owned()));
    }
    let name = parse_name(name, "lake").map_err(|error| error.shifted(start))?;
    check_lake_name(&name).map_err(|error| AssetError::malformed(start, error.to_string()))?;
    Ok(LakeName(canonical_name(&name)))
}

fn parse_database(name: &str, start: usize) -> Result<String, AssetError> {
    if name.is_empty() {
        return Ok(DEFAULT_DATATABLE.to_owned());
    }
    let name = parse_name(name, "database").map_err(|error| error.shifted(start))?;
    Ok(canonical_name(&name))
}

fn parse_lake_table(rest: &str, start: usize, default_table: Option<&str>) -> Result<Asset, AssetError> {
    let (lake, table, table_start) = split_catalog(rest, start, default_table)?;
    let lake = parse_lake(lake, start)?;
    let (schema, table) = parse_table(&table, table_start)?;
    Ok(Asset::lake_table(lake.as_str(), schema.as_deref().unwrap_or(DEFAULT_LAKE_SCHEMA), &table))
}

fn parse_datatable(rest: &str, start: usize, default_table: Option<&str>) -> Result<Asset, AssetError> {
    let (database, table, table_start) = split_catalog(rest, start, default_table)?;
    let database = parse_database(database, start)?;
    let (schema, table) = parse_table(&table, table_start)?;
    Ok(Asset::datatable(&database, schema.as_deref().unwrap_or(DEFAULT_DATATABLE_SCHEMA), &table))
}

/// Splits `catalog/table`, with the default table, escaped, where the URI has none.
fn split_catalog<'a>(
    rest: &'a str,
    start: usize,
    default_table: Option<&str>,
) -> Result<(&'a str, String, usize), AssetError> {
    let (catalog, table) = rest.split_once('/').unwrap_or((rest, ""));
    let table_start = start + catalog.len() + "/".len();
    match (table, default_table) {
        ("", Some(default)) => Ok((catalog, super::Escaped(default).to_string(), table_start)),
        ("", None) => Err(AssetError::malformed(start + rest.len(), "the table is missing")
            .with_help("write `<catalog>/<table>` or `<catalog>/<schema>.<table>` after the scheme")),
        _ => Ok((catalog, table.to_owned(), table_start)),
    }
}

/// Parses `[schema.]table`; offsets are moved by `start`.
fn parse_table(text: &str, start: usize) -> Result<(Option<String>, String), AssetError> {
    if let Some(slash) = text.find('/') {
        return Err(AssetError::malformed(start + slash, "a table's name cannot hold `/`")
            .with_help(format!("a schema is separated by a dot: `{}`", text.replace('/', "."))));
    }
    let parts = split_dots(text);
    let mut names = Vec::new();
    for (offset, part) in &parts {
        names.push(parse_name(part, "table").map_err(|error| error.shifted(start + offset))?);
    }
    match <[String; 1]>::try_from(names) {
        Ok([table]) => Ok((None, table)),
        Err(names) => match <[String; 2]>::try_from(names) {
            Ok([schema, table]) => Ok((Some(schema), table)),
            Err(_) => Err(AssetError::malformed(start + parts[2].0, "a table's name has at most two parts")
                .with_help("write `<table>` or `<schema>.<table>`; a dot inside a name is `%2E`")),
        },
    }
}

/// Splits at dots outside `"…"`, with the offset of each part.
fn split_dots(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => {
                parts.push((start, &text[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push((start, &text[start..]));
    parts
}

fn last_dot_of_last_part(text: &str) -> Option<usize> {
    let part_start = text.rfind('/').map_or(0, |slash| slash + 1);
    let (start, _) = *split_dots(&text[part_start..]).last()?;
    (start > 0).then(|| part_start + start - 1)
}

/// Parses one name: plain with `%XX`, or in double quotes.
fn parse_name(text: &str, what: &str) -> Result<String, AssetError> {
    if let Some(inner) = text.strip_prefix('"') {
        let Some(inner) = inner.strip_suffix('"') else {
            return Err(AssetError::malformed(0, "the quote is never closed"));
        };
        return match inner.replace("\"\"", "\"") {
            name if name.is_empty() => Err(AssetError::malformed(0, format!("the {what}'s name is empty"))),
            name => Ok(name),
        };
    }
    if text.is_empty() {
        return Err(AssetError::malformed(0, format!("the {what}'s name is empty")));
    }
    if let Some((at, c)) = text.char_indices().find(|(_, c)| must_be_escaped(*c)) {
        let error = AssetError::malformed(at, format!("`{}` cannot stand in a {what}'s name", c.escape_debug()));
        return Err(match c {
            '*' | '[' => error.with_help("globs are for `s3://` and `volume://`"),
            _ => error.with_help(format!("write `{}` for it", super::Escaped(&c.to_string()))),
        });
    }
    match unescape(text)? {
        name if name.is_empty() => Err(AssetError::malformed(0, format!("the {what}'s name is empty"))),
        name => Ok(name),
    }
}

fn must_be_escaped(c: char) -> bool {
    matches!(c, '/' | '.' | '?' | '#' | '"' | '\'' | '`' | ',' | '*' | '[' | ']' | '\\')
        || c.is_whitespace()
        || c.is_control()
}

fn parse_object(rest: &str, start: usize) -> Result<Asset, AssetError> {
    let (store, key) = rest.split_once('/').unwrap_or((rest, ""));
    check_plain(store, "store").map_err(|error| error.shifted(start))?;
    if key.is_empty() {
        return Err(AssetError::malformed(start + rest.len(), "the object's key is missing")
            .with_help("write `s3://<store>/<key>`, or `s3:///<key>` for the default store"));
    }
    if let Some((at, _)) = key.char_indices().find(|(_, c)| c.is_control()) {
        let at = start + store.len() + "/".len() + at;
        return Err(AssetError::malformed(at, "a key cannot hold control characters"));
    }
    Ok(Asset::object(store, key))
}

fn parse_volume(rest: &str, start: usize) -> Result<Asset, AssetError> {
    let (volume, path) = rest.split_once('/').unwrap_or((rest, ""));
    if volume.is_empty() {
        return Err(AssetError::malformed(start, "the volume's name is empty")
            .with_help(format!("files of the project are `volume://project/{path}`")));
    }
    check_plain(volume, "volume").map_err(|error| error.shifted(start))?;
    Asset::volume_file(volume, path).map_err(|error| error.shifted(start + (rest.len() - path.len())))
}

/// Checks a name that is configured, never escaped.
fn check_plain(name: &str, what: &str) -> Result<(), AssetError> {
    let stranger = name.char_indices().find(|(_, c)| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
    match stranger {
        Some((at, c)) => {
            Err(AssetError::malformed(at, format!("`{}` cannot stand in a {what}'s name", c.escape_debug())))
        }
        None => Ok(()),
    }
}
