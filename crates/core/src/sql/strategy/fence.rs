//! The fence: one row that two writers of one asset both update, so that the lake sees their conflict.
//!
//! DuckLake sees none between two writes that delete nothing, and makes no snapshot for a write without effect; an
//! UPDATE of a row that always exists mends both. Invariant: an asset's fence never changes, because another process
//! with another release must hit the same row. Conflicts are per table, hence one table per fence.

use indoc::formatdoc;
use sha2::{Digest, Sha256};

use crate::asset::Asset;
use crate::sql::{Ident, Relation, Statement};

/// How many fences a lake has.
pub const FENCES: u8 = 16;

/// Returns the number of the asset's fence.
pub fn fence_number(asset: &Asset) -> u8 {
    let digest = Sha256::digest(asset.to_string().as_bytes());
    digest[0] % FENCES
}

/// Returns the update of the asset's fence in the lake attached as `catalog`.
pub fn fence(catalog: &str, asset: &Asset) -> Statement {
    let sql = formatdoc! {"
        UPDATE {table}
        SET touched = touched + 1",
        table = fence_table(catalog, fence_number(asset)),
    };
    Statement::new("touch the asset's fence", sql)
}

/// Returns the statements that make all fences in a new lake attached as `catalog`.
pub fn create_fences(catalog: &str) -> Vec<Statement> {
    let schema = format!("{}.{}", Ident::new(catalog), Ident::new("_pintail"));
    let schema = Statement::new("create Pintail's schema", format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
    let tables = (0..FENCES).map(|number| {
        let sql = formatdoc! {"
            CREATE TABLE IF NOT EXISTS {table} AS
            SELECT 0::BIGINT AS touched",
            table = fence_table(catalog, number),
        };
        Statement::new("create a fence", sql)
    });
    [schema].into_iter().chain(tables).collect()
}

fn fence_table(catalog: &str, number: u8) -> Relation {
    Relation::in_catalog(catalog, "_pintail", &format!("fence_{number:02}"))
}
