//! Table `asset_schema`: the versions of an asset's ordered columns and types.
//!
//! Invariant: two neighbouring versions differ. The version number is the one that the stamp carries, so that versions
//! read back from a lake fall into the same places.

use pintail_core::asset::Asset;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::schema::{Column, Schema};
use serde::{Deserialize, Serialize};

use crate::database::{Row, Tx, query, retry};
use crate::encoding::{Fields, json};
use crate::error::{ReadContext, ReadError, WriteContext, WriteError};
use crate::materialization::AssetKey;
use crate::open::Store;

/// One version of an asset's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The number; grows by one with each change of shape.
    pub version: u32,
    /// The first snapshot that has it; `None` for an asset outside a lake.
    pub from_snapshot: Option<SnapshotId>,
    /// The columns in order.
    pub schema: Schema,
}

/// A column as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredColumn {
    name: String,
    #[serde(rename = "type")]
    data_type: String,
}

/// A version that may be new.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenSchema<'a> {
    pub(crate) asset: &'a AssetKey,
    pub(crate) lake: Option<&'a LakeName>,
    pub(crate) version: u32,
    pub(crate) from_snapshot: Option<SnapshotId>,
    pub(crate) schema: &'a Schema,
}

impl Store {
    /// Records `schema` unless the newest version up to its own is equal; returns whether it was new. A version that is
    /// stored with other columns gives way to the later snapshot.
    pub async fn record_schema_if_changed(&self, asset: &Asset, seen: &SchemaVersion) -> Result<bool, WriteError> {
        let operation = || format!("record schema version {} of {asset}", seen.version);
        let key = AssetKey::from(asset);
        let seen = SeenSchema {
            asset: &key,
            lake: asset.lake(),
            version: seen.version,
            from_snapshot: seen.from_snapshot,
            schema: &seen.schema,
        };
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            let changed = self.insert_schema_if_changed(&mut tx, seen).await.writing(operation)?;
            tx.commit().await.writing(operation)?;
            Ok(changed)
        })
        .await
    }

    pub(crate) async fn insert_schema_if_changed(
        &self,
        tx: &mut Tx,
        seen: SeenSchema<'_>,
    ) -> Result<bool, sqlx::Error> {
        let columns = encode(seen.schema);
        let sql = "
            SELECT columns FROM asset_schema WHERE project = $1 AND asset = $2 AND version <= $3
            ORDER BY version DESC LIMIT 1";
        let newest = query(sql)
            .bind(self.project_text())
            .bind(seen.asset.as_str())
            .bind(seen.version)
            .fetch_optional(tx)
            .await?;
        if newest.map(|row| row.text("columns")).transpose()? == Some(columns.clone()) {
            return Ok(false);
        }
        let sql = "
            INSERT INTO asset_schema (project, asset, version, lake, from_snapshot, columns)
            VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (project, asset, version)
            DO UPDATE SET from_snapshot = excluded.from_snapshot, columns = excluded.columns
            WHERE coalesce(asset_schema.from_snapshot, 0) <= coalesce(excluded.from_snapshot, 0)";
        let changed = query(sql)
            .bind(self.project_text())
            .bind(seen.asset.as_str())
            .bind(seen.version)
            .bind(seen.lake.map(LakeName::as_str))
            .bind(seen.from_snapshot.map(|snapshot| snapshot.0))
            .bind(columns)
            .execute(tx)
            .await?;
        Ok(0 < changed)
    }

    /// Returns the versions of an asset's columns, oldest first.
    pub async fn schema_versions(&self, asset: &AssetKey) -> Result<Vec<SchemaVersion>, ReadError> {
        let sql = "SELECT * FROM asset_schema WHERE project = $1 AND asset = $2 ORDER BY version";
        let rows = query(sql).bind(self.project_text()).bind(asset.as_str()).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(SchemaVersion::from_row).collect())
            .reading(|| format!("the schema versions of {asset}"))
    }
}

impl SchemaVersion {
    fn from_row(row: &Row) -> Result<Self, sqlx::Error> {
        let stored: Vec<StoredColumn> = row.json("columns")?;
        let columns =
            stored.into_iter().map(|column| Column { name: column.name, data_type: column.data_type }).collect();
        Ok(Self {
            version: row.number("version")?,
            from_snapshot: row.optional_integer("from_snapshot")?.map(SnapshotId),
            schema: Schema { columns },
        })
    }
}

fn encode(schema: &Schema) -> String {
    let columns = schema.columns.iter();
    let stored = columns.map(|column| StoredColumn { name: column.name.clone(), data_type: column.data_type.clone() });
    json(&stored.collect::<Vec<_>>())
}
