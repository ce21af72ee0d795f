//! Lakes: where one lies, how it is made and attached, and what its catalog says about heads, tables and commits.
//!
//! The catalog's tables are read through DuckDB (`__ducklake_metadata_<alias>`), about a millisecond each; DuckLake's own
//! table functions cost ten times that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use backon::{BlockingRetryable as _, ExponentialBuilder};
use pintail_core::id::{LakeName, SnapshotId, TableId};
use pintail_core::schema::{Column, Schema};
use pintail_core::sql::{Ident, Literal, Relation};

use crate::classify::ErrorClass;
use crate::error::EngineError;
use crate::instance::Instance;
use crate::lane::Lane;
use crate::native::Extension;
use crate::postgres::PostgresLocation;
use crate::session::Session;

pub mod audit;
mod commits;
pub mod compact;
mod create;
pub mod feed;
mod lost;
pub mod maintain;
mod named;
mod server;
mod slices;
mod versions;

pub use server::ServerFacts;

pub use lost::{Settled, settle_lost, was_made_in_vain};

pub use commits::{Commit, Concern, SliceConcern, commits_between, commits_concerning, find_attempt};
pub use named::{Named, named};
pub use slices::{Feed, LiveTable, live_tables, newest_stamps};
pub use versions::{
    at_version, fold_again, read_old_versions, rows_known_at, snapshot, snapshot_at, snapshots, stays, table_at,
    tables_at,
};

/// The schema of our own tables in every lake; hidden from lists and lineage.
pub const OWN_SCHEMA: &str = "_pintail";

/// DuckLake repeats the catalog's part of a commit that another process forestalled; its own pauses are long, and grow fast.
const RETRIES: &str = "SET GLOBAL ducklake_max_retry_count = 30; SET GLOBAL ducklake_retry_wait_ms = 20; \
                       SET GLOBAL ducklake_retry_backoff = 1.2";

/// Where a lake's catalog is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Catalog {
    /// A SQLite file, in WAL mode.
    Sqlite(PathBuf),
    /// A Postgres database of the lake's own.
    Postgres(PostgresLocation),
}

/// One lake as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LakeLocation {
    /// Its name.
    pub name: LakeName,
    /// The catalog.
    pub catalog: Catalog,
    /// The data path: a local folder or an object-store prefix.
    pub data: String,
}

/// A table or view of a lake, as its catalog describes it at the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// The catalog's id.
    pub id: TableId,
    /// Whether it is a view.
    pub is_view: bool,
    /// The columns in order, with DuckDB's type texts.
    pub schema: Schema,
    /// The partition spec in order: column and transform (`identity`, `year`, …).
    pub partition: Vec<(String, String)>,
}

impl TableFacts {
    /// Stands for the id of a table that an open transaction has made: the catalog gives ids at COMMIT.
    pub const UNCOMMITTED: TableId = TableId(-1);

    /// Returns the table's id in the catalog, when it has one yet.
    pub fn committed_id(&self) -> Option<TableId> {
        (self.id != Self::UNCOMMITTED).then_some(self.id)
    }
}

impl LakeLocation {
    /// Returns the catalog's file, where it is one.
    pub fn catalog_file(&self) -> Option<&Path> {
        match &self.catalog {
            Catalog::Sqlite(path) => Some(path),
            Catalog::Postgres(_) => None,
        }
    }

    /// Returns the catalog as a person names it.
    pub fn catalog_text(&self) -> String {
        match &self.catalog {
            Catalog::Sqlite(path) => path.display().to_string(),
            Catalog::Postgres(location) => format!("Postgres, {location}"),
        }
    }

    /// Returns whether two writes that delete nothing still conflict when they fill one slice at once. On SQLite every
    /// transaction is alone; on Postgres DuckLake sees two plain inserts, and the write has to touch a fence.
    pub fn conflicts_on_empty_delete(&self) -> bool {
        matches!(self.catalog, Catalog::Sqlite(_))
    }

    /// Returns whether the catalog has to be kept open between steps: only a file has.
    pub fn needs_keeper(&self) -> bool {
        matches!(self.catalog, Catalog::Sqlite(_))
    }

    /// Returns the alias under which the engine writes; scripts never see it.
    pub fn write_alias(&self) -> String {
        format!("_pt_w_{}", self.name)
    }

    /// Returns the name under which scripts see the lake: `lake` for `main`, its own name otherwise.
    pub fn sql_name(&self) -> String {
        self.name.sql_name().to_owned()
    }

    /// Returns the lake's commit lane.
    pub fn lane(&self) -> Lane {
        match &self.catalog {
            Catalog::Sqlite(path) => Lane::of_catalog(self.name.as_str(), path),
            Catalog::Postgres(location) => Lane::of_postgres(self.name.as_str(), location),
        }
    }

    /// Returns whether the lake is there; a server that cannot be asked is an error.
    pub fn exists(&self) -> Result<bool, EngineError> {
        match &self.catalog {
            Catalog::Sqlite(path) => Ok(path.exists()),
            Catalog::Postgres(location) => server::holds_lake(location),
        }
    }

    /// Returns the error of a lake that is not there.
    pub fn missing(&self) -> EngineError {
        EngineError::LakeMissing { lake: self.name.to_string(), catalog: self.catalog_text() }
    }

    /// Attaches the lake for writing under its write alias, making it when it does not exist.
    pub fn attach_for_writing(&self, instance: &Instance, session: &Session) -> Result<(), EngineError> {
        self.load_extensions(instance)?;
        create::make_if_missing(self, session)
    }

    /// Attaches the lake for writing under its write alias, as it is: nothing is made.
    pub fn attach_existing(&self, instance: &Instance, session: &Session) -> Result<(), EngineError> {
        self.require()?;
        self.load_extensions(instance)?;
        create::refuse_foreign_files(self)?;
        create::attach_made(self, session)
    }

    /// Makes what an attached lake lacks to be written by Pintail: a lake that others made has no fences.
    pub fn prepare_attached(&self, session: &Session) -> Result<(), EngineError> {
        create::prepare(self, session)
    }

    /// Attaches the lake for writing under the name that scripts use. The extensions are loaded by an earlier attach.
    pub fn attach_for_script(&self, session: &Session) -> Result<(), EngineError> {
        self.attach(session, "attach the lake for the script", &self.sql_name(), "")
    }

    /// Attaches the lake for writing under the name that scripts use, making its catalog when it is missing, without
    /// anything of ours: what a person who sends SQL by hand has.
    pub fn attach_plain(&self, instance: &Instance, session: &Session) -> Result<(), EngineError> {
        self.load_extensions(instance)?;
        self.attach(session, "attach the lake", &self.sql_name(), "")
    }

    /// Attaches the lake read-only as `alias`, at `snapshot` or at the head.
    pub fn attach_for_reading(
        &self,
        instance: &Instance,
        session: &Session,
        alias: &str,
        snapshot: Option<SnapshotId>,
    ) -> Result<(), EngineError> {
        self.require()?;
        self.load_extensions(instance)?;
        let version = snapshot.map_or_else(String::new, |snapshot| format!("SNAPSHOT_VERSION {snapshot}, "));
        self.attach(session, "attach the lake for reading", alias, &format!("READ_ONLY, {version}"))
    }

    /// Begins a read transaction on the catalog's file and leaves it open.
    pub fn begin_keeping_open(&self, session: &Session) -> Result<(), EngineError> {
        session.batch("begin", "BEGIN")?;
        head(session, &self.write_alias()).map(|_| ())
    }

    fn require(&self) -> Result<(), EngineError> {
        match self.exists()? {
            true => Ok(()),
            false => Err(self.missing()),
        }
    }

    /// Returns what the lake cannot be attached without.
    pub fn extensions(&self) -> Vec<Extension> {
        let scanner = match &self.catalog {
            Catalog::Sqlite(_) => Extension::SqliteScanner,
            Catalog::Postgres(_) => Extension::PostgresScanner,
        };
        let mut extensions = vec![Extension::DuckLake, scanner];
        if self.data.contains("://") {
            extensions.push(Extension::Httpfs);
        }
        extensions
    }

    fn load_extensions(&self, instance: &Instance) -> Result<(), EngineError> {
        for extension in self.extensions() {
            instance.load(extension)?;
        }
        if let Catalog::Postgres(location) = &self.catalog {
            instance.settle("retry often and soon", RETRIES)?;
            if let Some(password) = location.password() {
                instance.settle("give DuckDB the catalog's password", &self.secret(password))?;
            }
        }
        match self.data.contains("://") {
            true => instance.reach(&self.data),
            false => Ok(()),
        }
    }

    /// Returns the statement that keeps the password out of every other text.
    fn secret(&self, password: &str) -> String {
        let (name, password) = (Ident::new(self.secret_name()), Literal::new(password));
        format!("CREATE OR REPLACE TEMPORARY SECRET {name} (TYPE postgres, PASSWORD {password})")
    }

    fn secret_name(&self) -> String {
        format!("_pt_catalog_{}", self.name)
    }

    fn attach(&self, session: &Session, purpose: &'static str, alias: &str, options: &str) -> Result<(), EngineError> {
        let (target, meta) = match &self.catalog {
            Catalog::Sqlite(path) => (
                format!("ducklake:sqlite:{}", path.display()),
                ", META_JOURNAL_MODE 'WAL', META_BUSY_TIMEOUT 5000".to_owned(),
            ),
            Catalog::Postgres(location) => (
                format!("ducklake:postgres:{}", location.dsn()),
                match location.password() {
                    Some(_) => format!(", META_SECRET {}", Literal::new(self.secret_name())),
                    None => String::new(),
                },
            ),
        };
        let sql = format!(
            "ATTACH {} AS {} ({options}DATA_PATH {}, OVERRIDE_DATA_PATH true{meta}, DATA_INLINING_ROW_LIMIT 0)",
            Literal::new(target),
            Ident::new(alias),
            Literal::new(self.data.clone()),
        );
        // Only a file is opened by many at once; a server that is away is waited for by those who know for how long.
        let is_busy_file = |error: &EngineError| self.needs_keeper() && error.class() == ErrorClass::Transient;
        let attach = || session.batch(purpose, &sql);
        attach
            .retry(
                ExponentialBuilder::default().with_min_delay(Duration::from_millis(5)).with_max_times(8).with_jitter(),
            )
            .when(is_busy_file)
            .call()
    }
}

/// Returns the name of the metadata database of an attached lake.
fn metadata(alias: &str) -> Ident {
    Ident::new(format!("__ducklake_metadata_{alias}"))
}

/// Returns the newest snapshot of the lake attached as `alias`, as the catalog says.
pub fn head(session: &Session, alias: &str) -> Result<SnapshotId, EngineError> {
    session.one(
        "read the lake's head",
        &format!("SELECT max(snapshot_id) FROM {}.ducklake_snapshot", metadata(alias)),
        |row| row.get(0).map(SnapshotId),
    )
}

/// Returns the snapshot that the session's transaction sees, and fixes it.
pub fn transaction_snapshot(session: &Session, alias: &str) -> Result<SnapshotId, EngineError> {
    session.one(
        "fix the transaction's snapshot",
        &format!("SELECT id FROM {}.current_snapshot()", Ident::new(alias)),
        |row| row.get(0).map(SnapshotId),
    )
}

/// Returns what the catalog says about `schema.table`, or `None` when there is no such table or view.
///
/// Names are compared without case, as DuckDB does.
pub fn table_facts(
    session: &Session,
    alias: &str,
    schema: &str,
    table: &str,
) -> Result<Option<TableFacts>, EngineError> {
    let found = session.rows_with(
        "look the table up",
        &format!(
            "SELECT t.table_id, false, s.schema_name, t.table_name
             FROM {metadata}.ducklake_table t
             JOIN {metadata}.ducklake_schema s USING (schema_id)
             WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL
               AND lower(s.schema_name) = lower($1) AND lower(t.table_name) = lower($2)
             UNION ALL
             SELECT v.view_id, true, s.schema_name, v.view_name
             FROM {metadata}.ducklake_view v
             JOIN {metadata}.ducklake_schema s USING (schema_id)
             WHERE v.end_snapshot IS NULL AND s.end_snapshot IS NULL
               AND lower(s.schema_name) = lower($1) AND lower(v.view_name) = lower($2)",
            metadata = metadata(alias)
        ),
        &[schema, table],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, bool>(1)?, row.get::<_, String>(2)?, row.get::<_, String>(3)?)),
    )?;
    let Some((id, is_view, schema_name, table_name)) = found.into_iter().next() else { return Ok(None) };
    let relation = Relation::in_catalog(alias, &schema_name, &table_name);
    let columns = session.describe(&relation.to_string())?;
    let partition = match is_view {
        true => Vec::new(),
        false => partition_spec(session, alias, id)?,
    };
    Ok(Some(TableFacts { id: TableId(id), is_view, schema: schema_of(columns), partition }))
}

/// Returns which of `names`, schemas and tables, no table or view of the lake has at its head.
pub fn absent_names<'n>(
    session: &Session,
    alias: &str,
    names: &[(&'n str, &'n str)],
) -> Result<Vec<(&'n str, &'n str)>, EngineError> {
    let lower = |name: &(&str, &str)| (name.0.to_lowercase(), name.1.to_lowercase());
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let wanted: Vec<String> = names.iter().map(|(_, table)| Literal::new(table.to_lowercase()).to_string()).collect();
    let found: Vec<(String, String)> = session.rows(
        "look for the tables",
        &format!(
            "SELECT lower(s.schema_name), x.name
             FROM (SELECT schema_id, lower(table_name) AS name FROM {metadata}.ducklake_table WHERE end_snapshot IS NULL
                   UNION ALL
                   SELECT schema_id, lower(view_name) FROM {metadata}.ducklake_view WHERE end_snapshot IS NULL) x
             JOIN {metadata}.ducklake_schema s ON s.schema_id = x.schema_id AND s.end_snapshot IS NULL
             WHERE x.name IN ({wanted})",
            metadata = metadata(alias),
            wanted = wanted.join(", ")
        ),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    Ok(names.iter().copied().filter(|name| !found.contains(&lower(name))).collect())
}

/// Returns described columns as a schema.
pub fn schema_of(columns: Vec<(String, String)>) -> Schema {
    Schema { columns: columns.into_iter().map(|(name, data_type)| Column { name, data_type }).collect() }
}

/// Returns the columns that the files of a table are sorted by, in order; an expression is its text.
pub fn sort_keys(session: &Session, alias: &str, table: TableId) -> Result<Vec<String>, EngineError> {
    session.rows(
        "read the table's sort keys",
        &format!(
            "SELECT trim(e.expression, '\"')
             FROM {metadata}.ducklake_sort_info i
             JOIN {metadata}.ducklake_sort_expression e ON e.sort_id = i.sort_id AND e.table_id = i.table_id
             WHERE i.table_id = {table} AND i.end_snapshot IS NULL
             ORDER BY e.sort_key_index",
            metadata = metadata(alias),
            table = table.0,
        ),
        |row| row.get(0),
    )
}

fn partition_spec(session: &Session, alias: &str, table_id: i64) -> Result<Vec<(String, String)>, EngineError> {
    session.rows(
        "read the table's partition spec",
        &format!(
            "SELECT c.column_name, p.transform
             FROM {metadata}.ducklake_partition_info i
             JOIN {metadata}.ducklake_partition_column p ON p.partition_id = i.partition_id AND p.table_id = i.table_id
             JOIN {metadata}.ducklake_column c
               ON c.table_id = p.table_id AND c.column_id = p.column_id AND c.end_snapshot IS NULL
             WHERE i.end_snapshot IS NULL AND i.table_id = {table_id}
             ORDER BY p.partition_key_index",
            metadata = metadata(alias)
        ),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Returns whether the lake has `schema`.
pub fn has_schema(session: &Session, alias: &str, schema: &str) -> Result<bool, EngineError> {
    let sql = format!(
        "SELECT count(*) > 0 FROM {}.ducklake_schema WHERE lower(schema_name) = lower({}) AND end_snapshot IS NULL",
        metadata(alias),
        Literal::new(schema)
    );
    session.one("look for the schema", &sql, |row| row.get(0))
}

/// Returns every name that a table or view ever had, by id: a renamed one has several.
pub fn table_names(session: &Session, alias: &str) -> Result<Vec<(TableId, String, String)>, EngineError> {
    session.rows(
        "read the names of tables",
        &format!(
            "SELECT DISTINCT t.table_id, s.schema_name, t.table_name
             FROM {metadata}.ducklake_table t JOIN {metadata}.ducklake_schema s USING (schema_id)
             UNION
             SELECT DISTINCT v.view_id, s.schema_name, v.view_name
             FROM {metadata}.ducklake_view v JOIN {metadata}.ducklake_schema s USING (schema_id)",
            metadata = metadata(alias)
        ),
        |row| Ok((TableId(row.get(0)?), row.get(1)?, row.get(2)?)),
    )
}

/// Returns every table and view of the lake outside our own schema, as `(schema, name, id, is_view)`.
pub fn list_tables(session: &Session, alias: &str) -> Result<Vec<(String, String, TableId, bool)>, EngineError> {
    session.rows(
        "list the lake's tables",
        &format!(
            "SELECT s.schema_name, x.name, x.id, x.is_view
             FROM (SELECT schema_id, table_name AS name, table_id AS id, false AS is_view
                   FROM {metadata}.ducklake_table WHERE end_snapshot IS NULL
                   UNION ALL
                   SELECT schema_id, view_name, view_id, true
                   FROM {metadata}.ducklake_view WHERE end_snapshot IS NULL) x
             JOIN {metadata}.ducklake_schema s ON s.schema_id = x.schema_id AND s.end_snapshot IS NULL
             WHERE s.schema_name <> {own}
             ORDER BY ALL",
            metadata = metadata(alias),
            own = Literal::new(OWN_SCHEMA)
        ),
        |row| Ok((row.get(0)?, row.get(1)?, TableId(row.get(2)?), row.get(3)?)),
    )
}
