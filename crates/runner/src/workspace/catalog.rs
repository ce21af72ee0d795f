//! Where a lake keeps its catalog and where the store is: SQLite files and Postgres servers.
//!
//! Invariant: a password is taken out of a connection text here, once, so that the rest of it can be shown.

use std::path::PathBuf;

use pintail_core::connection::{percent_decoded, read_value};
use secrecy::SecretString;

/// A lake's catalog.
#[derive(Clone, Debug)]
pub enum Catalog {
    /// `sqlite:<path>`.
    Sqlite {
        /// The file, below the project root unless absolute.
        path: PathBuf,
    },
    /// `postgres:<key=value …>` or `postgres://…`.
    Postgres {
        /// The connection text without its password.
        connection: String,
        /// The password, from `password =` or from the connection text.
        password: Option<SecretString>,
    },
}

impl Catalog {
    /// Returns whether both are one catalog, as far as their texts tell.
    pub fn is_same_place(&self, other: &Catalog) -> bool {
        match (self, other) {
            (Catalog::Sqlite { path }, Catalog::Sqlite { path: other }) => path == other,
            (Catalog::Postgres { connection, .. }, Catalog::Postgres { connection: other, .. }) => connection == other,
            _ => false,
        }
    }
}

/// Where the metadata store is.
#[derive(Clone, Debug)]
pub enum StoreUrl {
    /// `sqlite:<path>`.
    Sqlite {
        /// The file, below the project root unless absolute.
        path: PathBuf,
    },
    /// `postgres:…`.
    Postgres {
        /// The connection text without its password.
        connection: String,
        /// The password.
        password: Option<SecretString>,
    },
}

/// What a catalog or store text names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Location<'t> {
    Sqlite(&'t str),
    /// The text after `postgres:`, or the whole URL.
    Postgres(&'t str),
    DuckDbFile,
    Unknown,
}

/// Tells what `text` names by its scheme, or by its ending where there is no scheme.
pub(super) fn classify(text: &str) -> Location<'_> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Location::Postgres(text);
    }
    if let Some(rest) = text.strip_prefix("postgres:").or_else(|| text.strip_prefix("postgresql:")) {
        return if rest.trim().is_empty() { Location::Unknown } else { Location::Postgres(rest.trim()) };
    }
    if let Some(path) = text.strip_prefix("sqlite:") {
        let path = path.strip_prefix("//").unwrap_or(path);
        return if path.is_empty() { Location::Unknown } else { Location::Sqlite(path) };
    }
    let is_duckdb = [".duckdb", ".db", ".ddb", ".ducklake"].iter().any(|ending| text.ends_with(ending));
    if text.starts_with("duckdb:") || is_duckdb { Location::DuckDbFile } else { Location::Unknown }
}

/// A Postgres connection text with its password taken out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) connection: String,
    pub(super) password: Option<String>,
}

/// Takes the password out of a Postgres URL or key=value text.
pub(super) fn split_password(text: &str) -> Split {
    match text.split_once("://") {
        Some((scheme, rest)) => split_url(text, scheme, rest),
        None => split_keys(text),
    }
}

fn split_url(text: &str, scheme: &str, rest: &str) -> Split {
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let user_and_password = authority.rsplit_once('@');
    let parts = user_and_password.and_then(|(user, host)| user.split_once(':').map(|(user, pass)| (user, pass, host)));
    match parts {
        Some((user, password, host)) => {
            Split { connection: format!("{scheme}://{user}@{host}{tail}"), password: Some(percent_decoded(password)) }
        }
        None => Split { connection: text.to_owned(), password: None },
    }
}

fn split_keys(text: &str) -> Split {
    let mut kept = Vec::new();
    let mut password = None;
    for (key, value, raw) in key_values(text) {
        if key.eq_ignore_ascii_case("password") {
            password = Some(value);
        } else {
            kept.push(raw);
        }
    }
    Split { connection: kept.join(" "), password }
}

/// Splits `key=value key='quoted value'` as libpq does; each item has its key, its plain value and its own text.
fn key_values(text: &str) -> Vec<(&str, String, &str)> {
    let mut items = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let key_end = rest.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(rest.len());
        let after_key = rest[key_end..].trim_start();
        let Some(after_equals) = after_key.strip_prefix('=') else {
            items.push((&rest[..key_end], String::new(), &rest[..key_end]));
            rest = after_key;
            continue;
        };
        let (value, after_value) = read_value(after_equals.trim_start());
        let raw = rest[..rest.len() - after_value.len()].trim_end();
        items.push((&rest[..key_end], value, raw));
        rest = after_value.trim_start();
    }
    items
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Location, classify, split_password};

    proptest! {
        #[test]
        fn a_quoted_password_is_read_back_and_leaves_no_trace(password in r"\PC{0,12}") {
            let quoted = password.replace('\\', r"\\").replace('\'', r"\'");
            let split = split_password(&format!("host=db password='{quoted}' dbname=lake"));
            prop_assert_eq!(split.connection, "host=db dbname=lake");
            prop_assert_eq!(split.password, Some(password));
        }

        #[test]
        fn any_text_can_be_split(text in r"(postgres://|[a-z]=|'|\\|@|:|%4|é| |\PC){0,12}") {
            split_password(&text);
            classify(&text);
        }
    }

    #[test]
    fn locations_are_told_by_scheme() {
        let cases = [
            ("sqlite:.pintail/main.sqlite", Location::Sqlite(".pintail/main.sqlite")),
            ("sqlite:///srv/main.sqlite", Location::Sqlite("/srv/main.sqlite")),
            ("sqlite:", Location::Unknown),
            ("postgres:host=db dbname=lake", Location::Postgres("host=db dbname=lake")),
            ("postgresql://db/lake", Location::Postgres("postgresql://db/lake")),
            ("postgres:", Location::Unknown),
            ("duckdb:lake.duckdb", Location::DuckDbFile),
            ("lake.db", Location::DuckDbFile),
            ("lake.ducklake", Location::DuckDbFile),
            ("mysql:host=db", Location::Unknown),
            ("main.sqlite", Location::Unknown),
        ];
        for (text, expected) in cases {
            assert_eq!(classify(text), expected, "{text}");
        }
    }

    fn check_split(text: &str, connection: &str, password: Option<&str>) {
        let split = split_password(text);
        assert_eq!((split.connection.as_str(), split.password.as_deref()), (connection, password), "{text}");
    }

    #[test]
    fn passwords_are_taken_out_of_connections() {
        check_split("host=db dbname=lake", "host=db dbname=lake", None);
        check_split("host=db password=pw dbname=lake", "host=db dbname=lake", Some("pw"));
        check_split(r"host=db password='it\'s \\ my' user='a b'", "host=db user='a b'", Some(r"it's \ my"));
        check_split("host = db PASSWORD = x", "host = db", Some("x"));
        check_split("password=", "", Some(""));
        check_split(
            "postgres://u:p%40ss@db:5432/lake?sslmode=require",
            "postgres://u@db:5432/lake?sslmode=require",
            Some("p@ss"),
        );
        check_split("postgres://u:p@ss@db/lake", "postgres://u@db/lake", Some("p@ss"));
        check_split("postgres://db/lake", "postgres://db/lake", None);
        check_split("postgres://u:100%@db", "postgres://u@db", Some("100%"));
    }
}
