//! The state of slices: the current version of each, and the failure that came after it.
//!
//! Invariant: one query for any number of assets, which ranks by an index and reads only the rows that it returns. A
//! failure stands beside the current version, never in its place.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pintail_core::asset::Asset;
use pintail_core::id::LakeName;
use pintail_core::partition::PartitionKey;

use crate::database::{Query, Row, query};
use crate::encoding::{Fields, json};
use crate::error::{ReadContext, ReadError};
use crate::materialization::{AssetKey, Materialization};
use crate::open::Store;

/// How many assets are bound one by one, which lets the filter reach the index. A longer list is bound as one value, so
/// that there is no limit, and the ranking passes once over the project's index.
const FEW_ASSETS: usize = 500;

/// What is known of one slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceState {
    /// The asset.
    pub asset: AssetKey,
    /// The partition; `None` for the whole of an unpartitioned asset.
    pub partition: Option<PartitionKey>,
    /// The newest version that was materialized or confirmed as unchanged; `None` when there never was one.
    pub current: Option<Materialization>,
    /// The newest failure, when it is newer than the current version.
    pub failure: Option<Materialization>,
}

impl Store {
    /// Returns the state of every slice of `assets` (of all assets for `None`), by asset and partition, in one query.
    pub async fn current_slices(&self, assets: Option<&[Asset]>) -> Result<Vec<SliceState>, ReadError> {
        let rows = self.slice_query(assets).read_all(self.database()).await;
        rows.and_then(|rows| gather(&rows)).reading(|| "the state of slices".into())
    }

    fn slice_query(&self, assets: Option<&[Asset]>) -> Query {
        let filter = self.asset_filter(assets);
        let sql = format!(
            "SELECT 'current' AS side, current_slice.* FROM current_slice WHERE project = $1{filter} \
             UNION ALL SELECT 'failure' AS side, latest_failure.* FROM latest_failure WHERE project = $1{filter}"
        );
        let project = query(sql).bind(self.project_text());
        let Some(assets) = assets else { return project };
        let keys = assets.iter().map(Asset::to_string);
        match assets.len() <= FEW_ASSETS {
            true => keys.fold(project, Query::bind),
            false => project.bind(json(&keys.collect::<Vec<_>>())),
        }
    }

    /// Returns the condition on assets, whose values begin at placeholder 2.
    fn asset_filter(&self, assets: Option<&[Asset]>) -> String {
        let Some(assets) = assets else { return String::new() };
        if FEW_ASSETS < assets.len() {
            return format!(" AND asset IN ({})", self.database().dialect().texts_of_json(2));
        }
        let places: Vec<String> = (0..assets.len()).map(|at| format!("${}", at + 2)).collect();
        // No list may be empty in Postgres; NULL is in none.
        format!(" AND asset IN ({})", if places.is_empty() { "NULL".to_owned() } else { places.join(", ") })
    }

    /// Returns one line for each slice of `lake` with all that its stamp holds, so that two states can be compared: a
    /// rebuilt state has the fingerprint of the recorded one. Not in it: clock times and row ids, which a rebuild makes
    /// anew, the table id, which the commit that creates a table does not know, and confirmations, which have no commit.
    pub async fn state_fingerprint(&self, lake: &LakeName) -> Result<String, ReadError> {
        let sql = "
            SELECT * FROM (
                SELECT materialization.*,
                    row_number() OVER (PARTITION BY asset, partition ORDER BY snapshot DESC, id DESC) AS place
                FROM materialization
                WHERE project = $1 AND lake = $2 AND status = 'materialized' AND undone_at IS NULL
            ) AS ranked
            WHERE place = 1";
        let rows = query(sql).bind(self.project_text()).bind(lake.as_str()).read_all(self.database()).await;
        rows.and_then(|rows| rows.iter().map(Materialization::from_row).collect::<Result<Vec<_>, _>>())
            .map(|mut versions| {
                // Sorted here, since the two backends sort texts and NULLs in their own ways.
                versions.sort_by(|one, other| (&one.asset, &one.partition).cmp(&(&other.asset, &other.partition)));
                versions.iter().map(fingerprint_line).collect()
            })
            .reading(|| format!("the state of lake {lake}"))
    }
}

/// Puts the two sides of each slice together.
fn gather(rows: &[Row]) -> Result<Vec<SliceState>, sqlx::Error> {
    let mut slices: BTreeMap<(AssetKey, Option<PartitionKey>), SliceState> = BTreeMap::new();
    for row in rows {
        let found = Materialization::from_row(row)?;
        let key = (found.asset.clone(), found.partition.clone());
        let slice = slices.entry(key).or_insert_with_key(|(asset, partition)| SliceState {
            asset: asset.clone(),
            partition: partition.clone(),
            current: None,
            failure: None,
        });
        match row.text("side")?.as_str() {
            "current" => slice.current = Some(found),
            _ => slice.failure = Some(found),
        }
    }
    let mut slices: Vec<SliceState> = slices.into_values().collect();
    slices.iter_mut().for_each(SliceState::drop_old_failure);
    Ok(slices)
}

impl SliceState {
    fn drop_old_failure(&mut self) {
        let (Some(current), Some(failure)) = (&self.current, &self.failure) else { return };
        if failure.finished < current.finished {
            self.failure = None;
        }
    }
}

fn fingerprint_line(version: &Materialization) -> String {
    let mut line = version.asset.to_string();
    if let Some(partition) = &version.partition {
        write!(line, " [{partition}]").expect("writing to a string cannot fail");
    }
    if let Some(window) = version.window {
        write!(line, " {}..{}", window.start.to_rfc3339(), window.end.to_rfc3339())
            .expect("writing to a string cannot fail");
    }
    let snapshot = version.snapshot.map(|snapshot| snapshot.to_string()).unwrap_or_default();
    let rows = version.rows.map_or("?".to_owned(), |rows| rows.to_string());
    writeln!(
        line,
        " snapshot={snapshot} generation={} rows={rows} deleted={} inserted={} strategy={} schema={} script={} hash={} \
         run={} step={} attempt={} inputs={} files={}",
        version.generation,
        version.deleted,
        version.inserted,
        version.strategy,
        version.schema_version,
        version.script,
        version.script_hash,
        version.run,
        version.step,
        version.attempt,
        json(&version.inputs),
        json(&version.files),
    )
    .expect("writing to a string cannot fail");
    line
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use pintail_core::asset::Asset;
    use pintail_core::id::{LakeName, ProjectName, SnapshotId};
    use sqlx::Row as _;

    use crate::{Store, StoreLocation};

    async fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let location = StoreLocation::Sqlite { path: folder.path().join("store.sqlite") };
        let store = Store::open(&location, ProjectName("shop".into())).await.unwrap();
        (folder, store)
    }

    fn table(name: &str) -> Asset {
        Asset::Lake { lake: LakeName("main".into()), schema: "main".into(), table: name.into() }
    }

    /// Explains the query on a store of 100,000 materializations of 1,000 slices.
    async fn check_plan(assets: Option<&[Asset]>, expected: Expect) {
        let (_folder, store) = store().await;
        fill(&store).await;
        let explained = format!("EXPLAIN QUERY PLAN {}", store.slice_query(assets).sql());
        let readers = store.database().sqlite_readers();
        let rows = sqlx::query(sqlx::AssertSqlSafe(explained)).fetch_all(readers).await.unwrap();
        let lines: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        expected.assert_eq(&lines.join("\n"));
        let slices = store.current_slices(assets).await.unwrap();
        assert_eq!(slices.len(), if assets.is_some() { 200 } else { 1000 });
        for slice in slices {
            let current = slice.current.expect("every slice was written");
            assert_eq!(current.snapshot, Some(SnapshotId(100)), "{} {:?}", slice.asset, slice.partition);
        }
    }

    async fn fill(store: &Store) {
        let sql = "
            WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 99999)
            INSERT INTO materialization (project, asset, partition, run, step, attempt, script, status, origin, lake,
                snapshot, generation, deleted, inserted, strategy, schema_version, script_hash, inputs, files, started,
                finished)
            SELECT 'shop', 'ducklake://main/t' || (n % 10), 'p' || (n / 10 % 100), 'r', 's', 'a' || n, 'script',
                'materialized', 'recorded', 'main', n / 1000 + 1, 1, 0, 1, 'replace', 1, 'h', '{}', '{}', 0, 0
            FROM number";
        let mut tx = store.begin_write().await.unwrap();
        crate::database::query(sql).execute(&mut tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn all_slices_are_ranked_by_the_index_without_sorting() {
        check_plan(
            None,
            expect![[r#"
            COMPOUND QUERY
            LEFT-MOST SUBQUERY
            CO-ROUTINE ranked
            CO-ROUTINE (subquery-7)
            SEARCH materialization USING COVERING INDEX materialization_good (project=?)
            SCAN (subquery-7)
            SCAN ranked
            SEARCH made USING INTEGER PRIMARY KEY (rowid=?)
            UNION ALL
            CO-ROUTINE ranked
            CO-ROUTINE (subquery-8)
            SEARCH materialization USING COVERING INDEX materialization_bad (project=?)
            SCAN (subquery-8)
            SCAN ranked
            SEARCH made USING INTEGER PRIMARY KEY (rowid=?)"#]],
        )
        .await;
    }

    #[tokio::test]
    async fn the_slices_of_some_assets_are_found_without_a_look_at_the_others() {
        check_plan(
            Some(&[table("t1"), table("t2")]),
            expect![[r#"
            COMPOUND QUERY
            LEFT-MOST SUBQUERY
            CO-ROUTINE ranked
            CO-ROUTINE (subquery-7)
            SEARCH materialization USING COVERING INDEX materialization_good (project=? AND asset=?)
            SCAN (subquery-7)
            SCAN ranked
            SEARCH made USING INTEGER PRIMARY KEY (rowid=?)
            UNION ALL
            CO-ROUTINE ranked
            CO-ROUTINE (subquery-8)
            SEARCH materialization USING COVERING INDEX materialization_bad (project=? AND asset=?)
            SCAN (subquery-8)
            SCAN ranked
            SEARCH made USING INTEGER PRIMARY KEY (rowid=?)"#]],
        )
        .await;
    }
}
