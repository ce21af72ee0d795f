//! Test scripts: singular ones name assets; generic ones name `this` and take arguments.

use std::collections::BTreeSet;

use pintail_core::annotation::Header;
use pintail_core::asset::Asset;
use pintail_core::source::Span;

use super::ParsedText;

/// The name by which a generic test reads the tested rows.
pub const THIS: &str = "this";

/// What kind of test a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestKind {
    /// It names assets and runs with the last of them.
    Singular,
    /// It reads `this` and runs where a `test` line names it.
    Generic,
}

/// A test script, compiled.
#[derive(Clone, Debug)]
pub struct CompiledTest {
    /// Its path below `tests/` without the extension.
    pub name: String,
    /// Its header; only `description` counts.
    pub header: Header,
    /// Its body.
    pub text: ParsedText,
    /// Where the query stands; `None` when there is none, which is a diagnostic.
    pub query: Option<Span>,
    /// The statements before the query that are sent.
    pub setup: Vec<Span>,
    /// What kind it is.
    pub kind: TestKind,
}

impl CompiledTest {
    /// Returns the assets that it reads, `this` left out.
    pub fn assets(&self) -> BTreeSet<&Asset> {
        self.text.lineage.reads.iter().map(|read| &read.asset).filter(|asset| !is_this(asset)).collect()
    }

    /// Returns how many arguments a generic test uses: the greatest number behind a `$`.
    pub fn arguments(&self) -> usize {
        self.text.body.parameters.iter().filter_map(|parameter| parameter.name.parse().ok()).max().unwrap_or(0)
    }
}

/// Returns whether `asset` is how the resolver sees the name `this`.
pub fn is_this(asset: &Asset) -> bool {
    matches!(asset, Asset::Lake { schema, table, .. } if schema == "main" && table == THIS)
}
