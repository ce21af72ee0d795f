//! Which files are in the lake, and how far: a table of the lake, written in the commits of the rows.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use indoc::formatdoc;
use pintail_core::sql::{Literal, Relation, Statement};
use pintail_engine::EngineError;
use pintail_engine::lake::OWN_SCHEMA;
use pintail_streams::Writer;
use pintail_streams::commit::make_table;
use sha2::{Digest as _, Sha256};

use super::ImportError;

const TABLE: &str = "imported_files";

/// The table's schema and name.
pub(super) const NAME: (&str, &str) = (OWN_SCHEMA, TABLE);

/// So much of the beginning and of the end of a file tells it from others.
const SAMPLE: u64 = 1 << 20;

/// How far a file has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) fingerprint: String,
    pub(super) records: u64,
    pub(super) is_whole: bool,
}

pub(super) fn prepare(writer: &Writer) -> Result<(), EngineError> {
    let create = formatdoc! {"
        CREATE TABLE {table} (
          path VARCHAR, fingerprint VARCHAR, records BIGINT, is_whole BOOLEAN, updated_at TIMESTAMPTZ
        )",
        table = relation(writer.alias()),
    };
    make_table(writer, OWN_SCHEMA, TABLE, &[Statement::new("make the table of imported files", create)])
}

pub(super) fn find(writer: &Writer, path: &str) -> Result<Option<Entry>, EngineError> {
    let sql = format!(
        "SELECT fingerprint, records, is_whole FROM {} WHERE path = {} LIMIT 1",
        relation(writer.alias()),
        Literal::new(path)
    );
    let found = writer.session().rows("look the file up", &sql, |row| {
        let records = row.get::<_, i64>(1)?.cast_unsigned();
        Ok(Entry { path: path.to_owned(), fingerprint: row.get(0)?, records, is_whole: row.get(2)? })
    })?;
    Ok(found.into_iter().next())
}

/// Returns the statements that replace what is known of the files.
pub(super) fn write(alias: &str, entries: &[Entry]) -> Vec<Statement> {
    let table = relation(alias);
    let paths: Vec<String> = entries.iter().map(|entry| Literal::new(&entry.path).to_string()).collect();
    let rows = entries.iter().map(|entry| {
        let (path, fingerprint) = (Literal::new(&entry.path), Literal::new(&entry.fingerprint));
        format!("({path}, {fingerprint}, {}, {}, now())", entry.records, entry.is_whole)
    });
    let rows: Vec<String> = rows.collect();
    vec![
        Statement::new(
            "forget older states of the files",
            format!("DELETE FROM {table} WHERE path IN ({})", paths.join(", ")),
        ),
        Statement::new("note the files", format!("INSERT INTO {table} VALUES\n  {}", rows.join(",\n  "))),
    ]
}

/// Returns what tells a file from others of the same name: its size, and a hash of its beginning and its end.
pub(super) fn fingerprint(path: &Path) -> Result<String, ImportError> {
    let sample = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut hash = Sha256::new();
        let mut part = Vec::new();
        file.by_ref().take(SAMPLE).read_to_end(&mut part)?;
        hash.update(&part);
        file.seek(SeekFrom::Start(size.saturating_sub(SAMPLE)))?;
        part.clear();
        file.take(SAMPLE).read_to_end(&mut part)?;
        hash.update(&part);
        let hash: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{size}:{hash}"))
    };
    sample().map_err(|source| ImportError::File { operation: "read", path: path.to_owned(), source })
}

fn relation(alias: &str) -> Relation {
    Relation::in_catalog(alias, OWN_SCHEMA, TABLE)
}
