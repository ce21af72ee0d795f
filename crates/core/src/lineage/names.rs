//! What a table's dotted name means, given what ATTACH, USE and CREATE TEMP did before.
//!
//! `[a, b]` could be lake and table or schema and table. Aliases win over lake names, and both win over schemas, as in
//! the engine, where an attached catalog wins over a schema of that name in the current one (which schemas there are is
//! not known here). `main` is always a schema: the lake `main` is written `lake`.

use std::collections::{BTreeMap, BTreeSet};

use super::{BodyLineage, LineageContext};
use crate::asset::Asset;
use crate::diagnostic::nearest;
use crate::id::LakeName;
use crate::sql::body::TableName;
use crate::sql::classify::{AttachTarget, attach_target};

/// The name of the lake and of the Postgres database that bare `ducklake` and `datatable` mean.
const MAIN: &str = "main";

/// The ATTACH string of a database without a file.
const IN_MEMORY: &str = ":memory:";

/// The engine's own views that an unqualified name finds: those of its schemas `main` and `pg_catalog`.
const SYSTEM_VIEWS: [&str; 36] = [
    "duckdb_columns",
    "duckdb_constraints",
    "duckdb_databases",
    "duckdb_indexes",
    "duckdb_logs",
    "duckdb_schemas",
    "duckdb_tables",
    "duckdb_types",
    "duckdb_views",
    "pg_am",
    "pg_attrdef",
    "pg_attribute",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_database",
    "pg_depend",
    "pg_description",
    "pg_enum",
    "pg_index",
    "pg_indexes",
    "pg_namespace",
    "pg_prepared_statements",
    "pg_proc",
    "pg_sequence",
    "pg_sequences",
    "pg_settings",
    "pg_tables",
    "pg_tablespace",
    "pg_type",
    "pg_views",
    "pragma_database_list",
    "sqlite_master",
    "sqlite_schema",
    "sqlite_temp_master",
    "sqlite_temp_schema",
];

/// What a name means.
pub(super) enum Resolved {
    /// An asset of the project.
    Asset(Asset),
    /// A temp table, a system table, or a table of a file whose read is counted at its ATTACH.
    NotAnAsset,
    /// Something outside the project, with what it is.
    Unknown(String),
}

/// Why an ATTACH names nothing of the project.
pub(super) struct AttachProblem {
    pub message: String,
    pub help: String,
}

/// An attached database.
#[derive(Clone, Debug)]
enum Catalog {
    Lake(LakeName),
    Datatable(String),
    /// Temp, system and in-memory tables, files, and what an ATTACH named wrongly (told there, once).
    Beside,
    /// Something outside, with its ATTACH string's scheme.
    Foreign(String),
}

impl Catalog {
    fn default_schema(&self) -> &'static str {
        match self {
            Catalog::Datatable(_) => "public",
            _ => MAIN,
        }
    }

    fn table(&self, schema: &str, table: &str) -> Resolved {
        match self {
            Catalog::Lake(lake) => Resolved::Asset(Asset::lake_table(lake.as_str(), schema, table)),
            Catalog::Datatable(database) => Resolved::Asset(Asset::datatable(database, schema, table)),
            Catalog::Beside => Resolved::NotAnAsset,
            Catalog::Foreign(what) => Resolved::Unknown(format!("the table `{table}` of {what}")),
        }
    }
}

/// Names as they stand at one statement.
pub(super) struct Session<'a> {
    ctx: &'a LineageContext<'a>,
    catalogs: BTreeMap<String, Catalog>,
    current: Catalog,
    current_schema: Option<String>,
    temporary: BTreeSet<String>,
    macros: BTreeSet<String>,
}

impl<'a> Session<'a> {
    /// Returns the names before the first statement.
    pub fn new(ctx: &'a LineageContext<'a>) -> Self {
        let beside = ["temp", "system", "memory"].into_iter().map(|name| (name.to_owned(), Catalog::Beside));
        let lakes = ctx.lakes.iter().map(|lake| (lake.sql_name().to_ascii_lowercase(), Catalog::Lake(lake.clone())));
        Self {
            ctx,
            catalogs: beside.chain(lakes).collect(),
            current: Catalog::Lake(ctx.default_lake.clone()),
            current_schema: None,
            temporary: BTreeSet::new(),
            macros: BTreeSet::new(),
        }
    }

    /// Takes an ATTACH; the alias is the asset's own name when none is given.
    pub fn attach(
        &mut self,
        target: &str,
        alias: Option<&str>,
        lineage: &mut BodyLineage,
    ) -> Result<(), AttachProblem> {
        let found = self.attached(target);
        let alias = alias.map_or_else(|| own_name(target), str::to_owned);
        match &found {
            Ok(Catalog::Lake(lake)) => {
                lineage.aliases.insert(alias.clone(), lake.clone());
            }
            Ok(Catalog::Datatable(database)) => {
                lineage.datatable_aliases.insert(alias.clone(), database.clone());
            }
            Ok(Catalog::Beside | Catalog::Foreign(_)) | Err(_) => {}
        }
        let (catalog, problem) = match found {
            Ok(catalog) => (catalog, Ok(())),
            Err(problem) => (Catalog::Beside, Err(problem)),
        };
        self.catalogs.insert(alias.to_ascii_lowercase(), catalog);
        problem
    }

    fn attached(&self, target: &str) -> Result<Catalog, AttachProblem> {
        match attach_target(target) {
            AttachTarget::Lake(name) => self.lake(name.unwrap_or(MAIN)).map(Catalog::Lake),
            AttachTarget::Datatable(name) => self.datatable(name.unwrap_or(MAIN)).map(Catalog::Datatable),
            AttachTarget::Other if target == IN_MEMORY || attached_file(target).is_some() => Ok(Catalog::Beside),
            AttachTarget::Other => Ok(Catalog::Foreign(scheme(target))),
        }
    }

    fn lake(&self, name: &str) -> Result<LakeName, AttachProblem> {
        let found = self.ctx.lakes.iter().find(|lake| lake.as_str().eq_ignore_ascii_case(name));
        let known = self.ctx.lakes.iter().map(LakeName::as_str);
        found.cloned().ok_or_else(|| AttachProblem {
            message: format!("there is no lake `{name}`"),
            help: did_you_mean(name, known, "ducklake", "lake"),
        })
    }

    fn datatable(&self, name: &str) -> Result<String, AttachProblem> {
        let found = self.ctx.datatables.iter().find(|database| database.eq_ignore_ascii_case(name));
        let known = self.ctx.datatables.iter().map(String::as_str);
        found.cloned().ok_or_else(|| AttachProblem {
            message: format!("there is no datatable `{name}`"),
            help: did_you_mean(name, known, "datatable", "datatable"),
        })
    }

    /// Takes a USE: a catalog, a catalog and a schema, or a schema of the current catalog.
    pub fn use_name(&mut self, parts: &[String]) {
        let Some(first) = parts.first() else { return };
        match self.catalogs.get(&first.to_ascii_lowercase()) {
            Some(catalog) => {
                self.current = catalog.clone();
                self.current_schema = parts.get(1).cloned();
            }
            None => self.current_schema = Some(first.clone()),
        }
    }

    /// Takes a CREATE TEMP.
    pub fn add_temporary(&mut self, object: &str, name: &TableName) {
        let names = if object == "macro" { &mut self.macros } else { &mut self.temporary };
        names.extend(name.parts.last().map(|name| name.to_ascii_lowercase()));
    }

    /// Takes a DROP; returns whether it dropped a temp table.
    pub fn drop_temporary(&mut self, name: &TableName) -> bool {
        match name.parts.as_slice() {
            [table] => self.temporary.remove(&table.to_ascii_lowercase()),
            [catalog, .., table] if catalog.eq_ignore_ascii_case("temp") => {
                self.temporary.remove(&table.to_ascii_lowercase());
                true
            }
            _ => false,
        }
    }

    /// Returns whether the body made a temp macro of that name.
    pub fn is_macro(&self, name: &str) -> bool {
        self.macros.contains(&name.to_ascii_lowercase())
    }

    /// Returns what a name of one to three parts means.
    pub fn resolve(&self, parts: &[String]) -> Resolved {
        match parts {
            [table] if self.temporary.contains(&table.to_ascii_lowercase()) => Resolved::NotAnAsset,
            [table] if is_system_table(table) => Resolved::NotAnAsset,
            [table] => {
                let schema = self.current_schema.as_deref().unwrap_or(self.current.default_schema());
                self.current.table(schema, table)
            }
            [first, table] => match self.catalogs.get(&first.to_ascii_lowercase()) {
                Some(catalog) => catalog.table(catalog.default_schema(), table),
                None if is_system_schema(first) => Resolved::NotAnAsset,
                None => self.current.table(first, table),
            },
            [_, schema, _] if is_system_schema(schema) => Resolved::NotAnAsset,
            [catalog, schema, table] => match self.catalogs.get(&catalog.to_ascii_lowercase()) {
                Some(catalog) => catalog.table(schema, table),
                None => Resolved::Unknown(self.unknown_catalog(catalog)),
            },
            _ => Resolved::Unknown(format!("the name `{}`", parts.join("."))),
        }
    }

    fn unknown_catalog(&self, name: &str) -> String {
        if name.eq_ignore_ascii_case(MAIN) {
            return "`main` is a schema here; the lake `main` is written `lake`".to_owned();
        }
        match nearest(name, self.catalogs.keys().map(String::as_str)) {
            Some(near) => format!("there is no lake or alias `{name}`; did you mean `{near}`?"),
            None => format!("there is no lake or alias `{name}`"),
        }
    }
}

fn did_you_mean<'n>(name: &str, known: impl Iterator<Item = &'n str>, scheme: &str, section: &str) -> String {
    match nearest(name, known) {
        Some(near) => format!("did you mean `{scheme}://{near}`?"),
        None => format!("declare it in pintail.toml: `[{section}.{name}]`"),
    }
}

/// Returns the local file that an ATTACH opens: a DuckDB or SQLite database.
pub(super) fn attached_file(target: &str) -> Option<&str> {
    if attach_target(target) != AttachTarget::Other || target == IN_MEMORY {
        return None;
    }
    match target.split_once(':') {
        Some(("sqlite" | "duckdb", file)) => Some(file),
        Some(_) => None,
        None => Some(target).filter(|file| !file.is_empty() && !file.starts_with('$')),
    }
}

/// Returns the alias of an ATTACH that gives none.
fn own_name(target: &str) -> String {
    match attach_target(target) {
        AttachTarget::Lake(lake) => LakeName(lake.unwrap_or(MAIN).to_owned()).sql_name().to_owned(),
        AttachTarget::Datatable(database) => database.unwrap_or(MAIN).to_owned(),
        AttachTarget::Other => {
            let file = target.rsplit(['/', ':']).next().unwrap_or(target);
            file.split('.').next().unwrap_or(file).to_owned()
        }
    }
}

/// Names a foreign database by its kind only: a connection string may hold a password.
fn scheme(target: &str) -> String {
    match target.split_once(':') {
        Some((scheme, _)) => format!("a database attached with `{scheme}:`"),
        None => "a database outside the project".to_owned(),
    }
}

fn is_system_schema(schema: &str) -> bool {
    ["information_schema", "pg_catalog"].iter().any(|system| system.eq_ignore_ascii_case(schema))
}

fn is_system_table(table: &str) -> bool {
    SYSTEM_VIEWS.contains(&table.to_ascii_lowercase().as_str())
}
