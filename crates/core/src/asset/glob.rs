//! Which assets a glob covers: `*` and `?` inside one path part, `**` over parts, `[…]` for one character, as DuckDB
//! reads them; `{partition}` stands for any one part's text.

use globset::{Glob, GlobBuilder};

use super::Asset;

/// The placeholder that a step replaces by its partition's identity.
const PARTITION: &str = "{partition}";

impl Asset {
    /// Returns whether the asset stands for more than one object or file.
    pub fn is_glob(&self) -> bool {
        match self {
            Asset::Lake { .. } | Asset::Datatable { .. } => false,
            Asset::Object { key: path, .. } | Asset::Volume { path, .. } => {
                path.contains(['*', '?', '[']) || path.contains(PARTITION)
            }
        }
    }

    /// Returns whether everything that `other` names is also named by this asset: the two are equal, or this is a glob
    /// that matches the other's key.
    pub fn covers(&self, other: &Asset) -> bool {
        if self == other {
            return true;
        }
        match (self, other) {
            (Asset::Object { store, key }, Asset::Object { store: other_store, key: other_key }) => {
                store == other_store && matches(key, other_key)
            }
            (Asset::Volume { volume, path }, Asset::Volume { volume: other_volume, path: other_path }) => {
                volume == other_volume && matches(path, other_path)
            }
            _ => false,
        }
    }
}

impl Asset {
    /// Returns the glob that the key or path is; `None` for a table, a plain name, and a pattern that is none (an
    /// unclosed `[`), which only covers itself.
    pub(crate) fn path_glob(&self) -> Option<Glob> {
        let (Asset::Object { key: path, .. } | Asset::Volume { path, .. }) = self else { return None };
        if self.is_glob() { compile(path) } else { None }
    }

    /// Returns the key or path as a glob sees it, with some partition's identity in the placeholder's place.
    pub(crate) fn path_for_globs(&self) -> Option<String> {
        let (Asset::Object { key: path, .. } | Asset::Volume { path, .. }) = self else { return None };
        Some(with_some_partition(path))
    }
}

fn matches(pattern: &str, path: &str) -> bool {
    compile(pattern).is_some_and(|glob| glob.compile_matcher().is_match(with_some_partition(path)))
}

/// Any text stands for a partition on the matched side: a glob that covers one covers them all.
fn with_some_partition(path: &str) -> String {
    path.replace(PARTITION, "2000-01-01")
}

/// Compiles `pattern`; `None` when it is none.
fn compile(pattern: &str) -> Option<Glob> {
    // DuckDB has no alternatives: braces and backslashes are plain characters.
    let pattern = pattern.replace(PARTITION, "*").replace('\\', "[\\]").replace('{', "[{]").replace('}', "[}]");
    GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(false).build().ok()
}
