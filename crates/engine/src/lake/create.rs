//! How a lake is made: folders, a SQLite catalog in WAL mode, no inlining, and our own schema with its fences.
//!
//! Two processes may make one lake at once: everything happens under the lake's lane, and each part is looked for first.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use pintail_core::sql::strategy::create_fences;
use pintail_core::sql::{Ident, Statement};

use super::{Catalog, LakeLocation, OWN_SCHEMA, has_schema};
use crate::error::EngineError;
use crate::guard::protect_snapshots;
use crate::session::Session;

/// Attaches `lake` for writing, making what is missing of it.
pub(super) fn make_if_missing(lake: &LakeLocation, session: &Session) -> Result<(), EngineError> {
    refuse_foreign_files(lake)?;
    make_folder(lake.catalog_file().and_then(Path::parent))?;
    if !lake.data.contains("://") {
        make_folder(Some(Path::new(&lake.data)))?;
    }
    let alias = lake.write_alias();
    let lane = lake.lane();
    let is_made = lake.exists()?;
    // Who makes a lake is alone; who finds one only passes.
    let pass = if is_made { lane.enter()? } else { lane.enter_exclusively()? };
    let is_new = !is_made && !lake.exists()?;
    lake.attach(session, "attach the lake for writing", &alias, "")?;
    if is_new {
        session.batch(
            "turn inlining off for good",
            &format!("CALL {}.set_option('data_inlining_row_limit', 0)", Ident::new(&alias)),
        )?;
    }
    if let (true, Catalog::Postgres(location)) = (is_new, &lake.catalog) {
        protect_snapshots(location)?;
    }
    drop(pass);
    prepare(lake, session)
}

/// Attaches a lake that is there, making nothing. Its file appears before the lake in it is complete, so a failure is
/// tried once more under the lane, where its maker has ended.
pub(super) fn attach_made(lake: &LakeLocation, session: &Session) -> Result<(), EngineError> {
    let alias = lake.write_alias();
    let attach = || lake.attach(session, "attach the lake", &alias, "CREATE_IF_NOT_EXISTS false, ");
    if attach().is_ok() {
        return Ok(());
    }
    let lane = lake.lane();
    let pass = lane.enter()?;
    let attached = attach();
    drop(pass);
    attached
}

/// Makes our own schema in an attached lake that lacks it.
pub(super) fn prepare(lake: &LakeLocation, session: &Session) -> Result<(), EngineError> {
    let alias = lake.write_alias();
    if has_schema(session, &alias, OWN_SCHEMA)? {
        return Ok(());
    }
    let lane = lake.lane();
    let pass = lane.enter_exclusively()?;
    let prepared = prepare_in_lane(session, &alias);
    drop(pass);
    prepared
}

fn prepare_in_lane(session: &Session, alias: &str) -> Result<(), EngineError> {
    match has_schema(session, alias, OWN_SCHEMA)? {
        true => Ok(()),
        false => make_own_schema(session, alias),
    }
}

fn make_folder(folder: Option<&Path>) -> Result<(), EngineError> {
    let Some(folder) = folder else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|source| EngineError::File {
        operation: "create the folder",
        path: folder.to_owned(),
        source,
    })
}

/// Refuses a catalog file that is not SQLite, before DuckDB turns it into something else.
///
/// It is looked at once per process, before this process has opened it as a database: closing a file gives back every lock
/// that the process holds on it, also those of the SQLite inside DuckDB, and another process would then remove the
/// write-ahead log that is in use here.
pub(super) fn refuse_foreign_files(lake: &LakeLocation) -> Result<(), EngineError> {
    static SEEN: OnceLock<Mutex<BTreeSet<PathBuf>>> = OnceLock::new();
    let Some(path) = lake.catalog_file() else { return Ok(()) };
    // Held while the file is read, so that no other slot of this process opens it meanwhile.
    let mut seen = SEEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if seen.contains(path) {
        return Ok(());
    }
    refuse_foreign_file(lake, path)?;
    seen.insert(path.to_owned());
    Ok(())
}

fn refuse_foreign_file(lake: &LakeLocation, path: &Path) -> Result<(), EngineError> {
    let Ok(mut file) = fs::File::open(path) else { return Ok(()) };
    let mut head = Vec::new();
    file.by_ref().take(16).read_to_end(&mut head).map_err(|source| EngineError::File {
        operation: "read the lake's catalog",
        path: path.to_owned(),
        source,
    })?;
    let refuse = |reason: String| Err(EngineError::CatalogRefused { lake: lake.name.to_string(), reason });
    if head.is_empty() || head.starts_with(b"SQLite format 3\0") {
        return Ok(());
    }
    if head.get(8..12) == Some(b"DUCK") {
        return refuse(format!(
            "{} is a DuckDB file; as a catalog it takes neither a second process nor a pinned reader; use a SQLite \
             catalog (`catalog = \"sqlite:<path>\"`) or Postgres",
            path.display()
        ));
    }
    refuse(format!("{} is not a SQLite file", path.display()))
}

fn make_own_schema(session: &Session, alias: &str) -> Result<(), EngineError> {
    let mut statements = create_fences(alias);
    statements.push(Statement::new(
        "say who made the schema",
        format!("CALL {}.set_commit_message('pintail', 'prepare the lake for Pintail')", Ident::new(alias)),
    ));
    session.batch("begin", "BEGIN")?;
    let made = session.run_all(&statements).and_then(|_| session.batch("commit", "COMMIT"));
    if made.is_err() {
        // The first error is the one to tell; a failed ROLLBACK leaves a session that its owner drops.
        let _ = session.batch("roll back", "ROLLBACK");
    }
    made
}
