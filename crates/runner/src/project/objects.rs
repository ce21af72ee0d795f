//! Where the objects and files lie that a body names: `s3://<store>/<key>` and `volume://<name>/<path>` are assets, and
//! the engine reads an address or a path.
//!
//! Only the place's part of the text is replaced, so that placeholders and globs in the key stay as they are.

use std::collections::BTreeMap;

use pintail_core::asset::Asset;
use pintail_core::diagnostic::{Code, Diagnostic, nearest};
use pintail_core::source::Span;

use super::ParsedText;
use super::files::folder_of;
use crate::workspace::{Config, ObjectStore, Project};

const OBJECT: &str = "s3://";
const VOLUME: &str = "volume://";

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

/// Notes in `text` which parts of it stand for a store's address or a volume's folder, and says which there are not.
pub(super) fn resolve(text: &mut ParsedText, project: &Project, diagnostics: &mut Vec<Diagnostic>) {
    let config = &project.config;
    let mut places: BTreeMap<Span, String> = BTreeMap::new();
    for read in &text.lineage.reads {
        let scheme = match &read.asset {
            Asset::Object { .. } => OBJECT,
            Asset::Volume { .. } => VOLUME,
            Asset::Lake { .. } | Asset::Datatable { .. } => continue,
        };
        // A file that is written as a plain path is a file of the project.
        let Some(span) = place_span(&text.blanked, read.span, scheme) else { continue };
        let found = match &read.asset {
            Asset::Object { store, .. } => store_named(&config.object_stores, store)
                .map(|found| found.url.trim_end_matches('/').to_owned())
                .ok_or_else(|| unknown(store, &text.path, read.span, config)),
            Asset::Volume { volume, .. } => folder_of(project, volume)
                .map(|folder| folder.display().to_string())
                .ok_or_else(|| unknown_volume(volume, &text.path, read.span, config)),
            Asset::Lake { .. } | Asset::Datatable { .. } => continue,
        };
        match found {
            Ok(place) => _ = places.insert(span, place),
            Err(diagnostic) => diagnostics.push(diagnostic),
        }
    }
    text.places = places.into_iter().collect();
}

fn unknown_volume(volume: &str, path: &str, span: Span, config: &Config) -> Diagnostic {
    let help = match nearest(volume, config.volumes.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declare it in pintail.toml: `[volume.{volume}]` with its `path`"),
    };
    Diagnostic::new(Code::UNKNOWN_PLACE, path, span, format!("there is no volume `{volume}`")).with_help(help)
}

/// The store `name`; without a name the only one.
fn store_named<'c>(stores: &'c BTreeMap<String, ObjectStore>, name: &str) -> Option<&'c ObjectStore> {
    match (name, stores.len()) {
        ("", 1) => stores.values().next(),
        (name, _) => stores.get(name),
    }
}

/// Returns where `<scheme><place>` stands inside a literal.
fn place_span(text: &str, literal: Span, scheme: &str) -> Option<Span> {
    let written = text.get(literal.start..literal.end)?;
    let at = written.to_ascii_lowercase().find(scheme)?;
    let place = &written[at + scheme.len()..];
    let end = at + scheme.len() + place.find('/')?;
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

    use super::{OBJECT, VOLUME, place_span};

    #[test]
    fn the_stores_part_of_an_address_is_found_and_the_key_is_left() {
        let part = |text: &str| {
            let scheme = if text.contains(VOLUME) { VOLUME } else { OBJECT };
            let span = place_span(text, Span::new(0, text.len()), scheme);
            span.map(|span| text[span.start..span.end].to_owned())
        };
        assert_eq!(part("'s3://raw/{partition}/*.csv'").as_deref(), Some("s3://raw"));
        assert_eq!(part("\"S3://raw/a.csv\"").as_deref(), Some("S3://raw"));
        assert_eq!(part("'s3:///a.csv'").as_deref(), Some("s3://"));
        assert_eq!(part("'s3://raw'"), None);
        assert_eq!(part("'volume://landing/*.csv'").as_deref(), Some("volume://landing"));
    }
}
