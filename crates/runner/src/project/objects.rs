//! Where the objects lie that a body names: `s3://<store>/<key>` is an asset, and the engine reads an address.
//!
//! Only the store's part of the text is replaced, so that placeholders and globs in the key stay as they are.

use std::collections::BTreeMap;

use pintail_core::asset::Asset;
use pintail_core::diagnostic::{Code, Diagnostic, nearest};
use pintail_core::source::Span;

use super::ParsedText;
use crate::workspace::{Config, ObjectStore};

const SCHEME: &str = "s3://";

/// Returns the address of `asset`, when it is an object of a configured store.
pub fn object_address(config: &Config, asset: &Asset) -> Option<String> {
    let Asset::Object { store, key } = asset else { return None };
    let store = store_named(&config.object_stores, store)?;
    Some(format!("{}/{key}", store.url.trim_end_matches('/')))
}

/// Returns whether `text` reads an object of a store.
pub fn reads_objects(text: &ParsedText) -> bool {
    text.lineage.reads.iter().any(|read| matches!(read.asset, Asset::Object { .. }))
}

/// Notes in `text` which parts of it stand for a store's address, and says which stores there are not.
pub(super) fn resolve(text: &mut ParsedText, config: &Config, diagnostics: &mut Vec<Diagnostic>) {
    let mut places: BTreeMap<Span, String> = BTreeMap::new();
    for read in &text.lineage.reads {
        let Asset::Object { store, .. } = &read.asset else { continue };
        let Some(span) = store_span(&text.blanked, read.span) else { continue };
        match store_named(&config.object_stores, store) {
            Some(found) => {
                places.insert(span, found.url.trim_end_matches('/').to_owned());
            }
            None => diagnostics.push(unknown(store, &text.path, read.span, config)),
        }
    }
    text.places = places.into_iter().collect();
}

/// The store `name`; without a name the only one.
fn store_named<'c>(stores: &'c BTreeMap<String, ObjectStore>, name: &str) -> Option<&'c ObjectStore> {
    match (name, stores.len()) {
        ("", 1) => stores.values().next(),
        (name, _) => stores.get(name),
    }
}

/// Returns where `s3://<store>` stands inside a literal.
fn store_span(text: &str, literal: Span) -> Option<Span> {
    let written = text.get(literal.start..literal.end)?;
    let at = written.to_ascii_lowercase().find(SCHEME)?;
    let store = &written[at + SCHEME.len()..];
    let end = at + SCHEME.len() + store.find('/')?;
    Some(Span::new(literal.start + at, literal.start + end))
}

fn unknown(store: &str, path: &str, span: Span, config: &Config) -> Diagnostic {
    let known = || config.object_stores.keys().map(String::as_str);
    let (message, help) = match (store, nearest(store, known())) {
        ("", _) => (
            "`s3:///` means the only object store, but pintail.toml does not configure exactly one".to_owned(),
            "name the store: `s3://<store>/<key>`".to_owned(),
        ),
        (store, Some(near)) => (format!("there is no object store `{store}`"), format!("did you mean `{near}`?")),
        (store, None) => (
            format!("there is no object store `{store}`"),
            format!("declare it in pintail.toml: `[object_store.{store}]` with its `url`"),
        ),
    };
    Diagnostic::new(Code::UNKNOWN_OBJECT_STORE, path, span, message).with_help(help)
}

#[cfg(test)]
mod tests {
    use pintail_core::source::Span;

    use super::store_span;

    #[test]
    fn the_stores_part_of_an_address_is_found_and_the_key_is_left() {
        let part = |text: &str| {
            let span = store_span(text, Span::new(0, text.len()));
            span.map(|span| text[span.start..span.end].to_owned())
        };
        assert_eq!(part("'s3://raw/{partition}/*.csv'").as_deref(), Some("s3://raw"));
        assert_eq!(part("\"S3://raw/a.csv\"").as_deref(), Some("S3://raw"));
        assert_eq!(part("'s3:///a.csv'").as_deref(), Some("s3://"));
        assert_eq!(part("'s3://raw'"), None);
    }
}
