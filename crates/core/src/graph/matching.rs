//! Which written assets a read covers: the same canonical asset, or keys under a glob.
//!
//! Globs are those of the engine's file functions: `*` and `?` stay inside a path part, `**` crosses parts, `[a-z]` is
//! a class. Braces are literal, since `{partition}` stands in keys.

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::asset::Asset;

/// The part of an object or volume asset that may be a glob, with the store or volume that it lies in.
pub(super) fn file_part(asset: &Asset) -> Option<(FilePlace<'_>, &str)> {
    match asset {
        Asset::Object { store, key } => Some((FilePlace::Store(store), key)),
        Asset::Volume { volume, path } => Some((FilePlace::Volume(volume), path)),
        Asset::Lake { .. } | Asset::Datatable { .. } => None,
    }
}

/// Where a file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FilePlace<'a> {
    Store(&'a str),
    Volume(&'a str),
}

/// An asset that may be a glob, ready to be compared.
#[derive(Clone, Debug)]
pub struct AssetPattern {
    asset: Asset,
    glob: Option<globset::GlobMatcher>,
}

impl AssetPattern {
    /// Returns the pattern of `asset`.
    pub fn new(asset: Asset) -> Self {
        let glob = file_part(&asset).and_then(|(_, text)| file_glob(text)).map(|glob| glob.compile_matcher());
        Self { asset, glob }
    }

    /// Returns whether the pattern covers `other`: it is the same asset, or a key under the glob.
    pub fn covers(&self, other: &Asset) -> bool {
        if self.asset == *other {
            return true;
        }
        match (&self.glob, file_part(&self.asset), file_part(other)) {
            (Some(glob), Some((place, _)), Some((other_place, text))) => place == other_place && glob.is_match(text),
            _ => false,
        }
    }
}

/// Returns the glob that `text` is, or `None` when it is a plain name or no valid glob.
pub(super) fn file_glob(text: &str) -> Option<Glob> {
    if !text.contains(['*', '?', '[']) {
        return None;
    }
    let escaped: String = text
        .chars()
        .map(|letter| match letter {
            '{' => "[{]".to_owned(),
            '}' => "[}]".to_owned(),
            other => other.to_string(),
        })
        .collect();
    GlobBuilder::new(&escaped).literal_separator(true).backslash_escape(false).build().ok()
}

/// Many globs matched at once, so that matching stays linear in the keys.
pub(super) fn glob_set(globs: &[Glob]) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob.clone());
    }
    builder.build().expect("each glob was built before, and a set of them has no limit that sources reach")
}
