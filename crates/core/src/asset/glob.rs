//! Which assets a glob covers: `*` and `?` inside one path part, `**` over parts, `[…]` for one character, as DuckDB
//! reads them; `{partition}` stands for any one part's text.

use globset::{GlobBuilder, GlobMatcher};

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

fn matches(pattern: &str, path: &str) -> bool {
    // Any text stands for the other side's partition: a glob that covers one covers them all.
    let path = path.replace(PARTITION, "2000-01-01");
    matcher(pattern).is_some_and(|matcher| matcher.is_match(path))
}

/// Compiles `pattern`; `None` when it is none (an unclosed `[`), which then only covers itself.
fn matcher(pattern: &str) -> Option<GlobMatcher> {
    // DuckDB has no alternatives: braces and backslashes are plain characters.
    let pattern = pattern.replace(PARTITION, "*").replace('\\', "[\\]").replace('{', "[{]").replace('}', "[}]");
    let glob = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(false).build().ok()?;
    Some(glob.compile_matcher())
}
