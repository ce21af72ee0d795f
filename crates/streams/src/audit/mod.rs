//! What always holds of the tables that a decoder writes, as queries that count what breaks it, and what is known of the
//! positions of streams (`positions.rs`).
//!
//! Everything is read and nothing is mended. Whoever audits a lake runs the queries on one snapshot, so that rows and
//! rollups are of one commit.

mod positions;

use indoc::formatdoc;
use pintail_core::sql::Ident;

use crate::decoder::{Decoder, Parent, Target};
use crate::rollup::Rollup;

pub use positions::{PositionRow, Written, position_rows};

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// Which table it is about.
    pub table: String,
    /// What is counted, for people: `rows that are there twice`.
    pub broken: String,
    /// Answers with one BIGINT: how often it is broken.
    pub query: String,
}

/// A rollup's table, and the relation that it sums up.
pub struct Summary {
    /// The table's name, for people.
    pub table: String,
    /// The table, as it stands after FROM.
    pub rollup: String,
    /// Its base or its shard's part of it, as it stands after FROM.
    pub base: String,
}

/// Returns what must hold of `target`, whose table is `base` as it stands after FROM; `source` is where its rows came from,
/// absent when rows may have left it since.
pub fn invariants(
    decoder: &dyn Decoder,
    target: &Target,
    base: &str,
    source: Option<&str>,
    summaries: &[Summary],
) -> Vec<Invariant> {
    let mut invariants = vec![no_row_twice(target, base)];
    let parent = decoder.parent();
    if let (Some(source), false) = (source, parent.is_empty()) {
        invariants.push(every_row_has_its_parent(target, base, source, &parent));
    }
    let rollup = target.rollup.as_deref();
    invariants
        .extend(rollup.into_iter().flat_map(|rollup| summaries.iter().flat_map(|summary| agrees(rollup, summary))));
    invariants
}

fn no_row_twice(target: &Target, base: &str) -> Invariant {
    let names: Vec<String> = target.identity.columns.iter().map(|name| Ident::new(name).to_string()).collect();
    let query = formatdoc! {"
        SELECT coalesce(sum(_pt_count - 1), 0)::BIGINT
        FROM (
          SELECT count(*) AS _pt_count
          FROM {base}
          GROUP BY {names}
          HAVING count(*) > 1
        )",
        names = names.join(", "),
    };
    Invariant { table: target.table.clone(), broken: "rows that are there already".to_owned(), query }
}

fn every_row_has_its_parent(target: &Target, base: &str, source: &str, parent: &[Parent]) -> Invariant {
    let same: Vec<String> = parent
        .iter()
        .map(|Parent { target, source }| {
            format!("_pt_source.{} IS NOT DISTINCT FROM _pt_base.{}", Ident::new(source), Ident::new(target))
        })
        .collect();
    let query = formatdoc! {"
        SELECT count(*)
        FROM {base} AS _pt_base
        WHERE NOT EXISTS (
          SELECT 1
          FROM {source} AS _pt_source
          WHERE {same}
        )",
        same = same.join("\n    AND "),
    };
    Invariant { table: target.table.clone(), broken: "rows that no row of the source explains".to_owned(), query }
}

fn agrees(rollup: &dyn Rollup, summary: &Summary) -> Vec<Invariant> {
    let check = rollup.check(&summary.base, &summary.rollup);
    let counted = |column: &str, broken: &str| Invariant {
        table: summary.table.clone(),
        broken: broken.to_owned(),
        query: format!("SELECT {column}\nFROM (\n{check}\n)"),
    };
    vec![
        counted("missing", "keys of its base that are missing"),
        counted("extra", "rows that its base does not explain"),
        counted("different", "rows with other values than its base gives"),
    ]
}
