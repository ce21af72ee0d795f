//! Events from files: NDJSON, CSV and Parquet, one file or a whole tree.
//!
//! Invariant: how many records of which file are in the lake stands in the lake, in the commit of the rows. An import that
//! was killed goes on there, and one that is repeated does nothing; a file that has changed in between is refused, never
//! guessed at. Files are read in the order of their names, and never moved or registered: their rows are written anew, so
//! that retention may delete the lake's files and never the user's.

mod ledger;
mod ndjson;
mod table;

use std::io;
use std::path::{Path, PathBuf};

use pintail_engine::{EngineError, InstanceOptions};
use pintail_streams::dead_letter::{DeadLetter, EventName};
use pintail_streams::{PositionTable, Writer};

use crate::cloudevents::{EventError, from_json};
use crate::log::Arrival;
use crate::raw::{LayoutError, RawTable};
use crate::sink::{Batch, FlushPolicy, LandError, Sink, SourceName};

use ledger::Entry;

/// Files that cannot be imported. What has landed before stays, and is not imported again.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file or folder failed.
    #[error("could not {operation} {}", .path.display())]
    File {
        /// `read`.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nothing there is a file that can be imported.
    #[error("there is nothing to import in {}: no .ndjson, .jsonl, .csv or .parquet", .path.display())]
    Nothing {
        /// The folder.
        path: PathBuf,
    },
    /// A file's name has another ending.
    #[error("{} is none of .ndjson, .jsonl, .csv and .parquet", .path.display())]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// DuckDB cannot read a file, or the lake failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The lake's table cannot take events.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// A batch did not land.
    #[error(transparent)]
    Land(#[from] LandError),
}

/// A file that is not what it was when records of it were imported: nothing of it is imported now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The file.
    pub path: PathBuf,
    /// So many records of what it was are in the lake.
    pub records: u64,
}

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Files of which something was new.
    pub files: u64,
    /// Files that were in the lake already.
    pub known: u64,
    /// Events that landed.
    pub rows: u64,
    /// Records that were no events.
    pub letters: u64,
    /// Files that were left out, since they have changed.
    pub changed: Vec<Changed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Ndjson,
    Csv,
    Parquet,
}

/// Imports files into one table.
pub struct Import {
    sink: Sink,
    position: u64,
    policy: FlushPolicy,
    reading: InstanceOptions,
    received_micros: i64,
}

/// What is gathered for the next commit.
#[derive(Default)]
struct Gathered {
    batch: Batch,
    bytes: u64,
    entries: Vec<Entry>,
}

impl Import {
    /// Opens the lake's side; `reading` is how files of tables are opened, `received_micros` the time of events without one.
    pub fn open(
        writer: Writer,
        table: RawTable,
        policy: FlushPolicy,
        reading: InstanceOptions,
        received_micros: i64,
    ) -> Result<Self, ImportError> {
        let name = SourceName {
            position: PositionTable::source("files"),
            source: "files".to_owned(),
            origin: "file".to_owned(),
        };
        let (sink, at) = Sink::open(writer, table, name, "0")?;
        ledger::prepare(sink.writer())?;
        Ok(Self { sink, position: at.parse().unwrap_or(0), policy, reading, received_micros })
    }

    /// Imports the file `path`, or every file below the folder `path`; `tell` is called after each commit.
    pub fn run(&mut self, path: &Path, mut tell: impl FnMut(&Imported)) -> Result<Imported, ImportError> {
        let mut done = Imported::default();
        let mut gathered = Gathered::default();
        for (path, format) in files(path)? {
            let name = std::path::absolute(&path).unwrap_or_else(|_| path.clone()).display().to_string();
            let fingerprint = ledger::fingerprint(&path)?;
            let known = ledger::find(self.sink.writer(), &name)?;
            let skip = match known {
                None => 0,
                Some(known) if known.fingerprint != fingerprint => {
                    done.changed.push(Changed { path, records: known.records });
                    continue;
                }
                Some(known) if known.is_whole => {
                    done.known += 1;
                    continue;
                }
                Some(known) => known.records,
            };
            done.files += 1;
            let file = Reading { path: &path, name: &name, fingerprint: &fingerprint, format, skip };
            self.read(&file, &mut gathered, &mut done, &mut tell)?;
        }
        self.land(&mut gathered, &mut done, &mut tell)?;
        Ok(done)
    }

    fn read(
        &mut self,
        file: &Reading<'_>,
        gathered: &mut Gathered,
        done: &mut Imported,
        tell: &mut impl FnMut(&Imported),
    ) -> Result<(), ImportError> {
        let entry = |records, is_whole| Entry {
            path: file.name.to_owned(),
            fingerprint: file.fingerprint.to_owned(),
            records,
            is_whole,
        };
        let reading = self.reading.clone();
        let mut count = 0;
        let mut each = |record: SourceRecord<'_>| {
            count += 1;
            if count <= file.skip {
                return Ok(());
            }
            self.take(&mut gathered.batch, file.name, count, &record);
            gathered.bytes += record.text.len() as u64;
            if self.is_full(gathered) {
                gathered.note(entry(count, false));
                self.land(gathered, done, tell)?;
            }
            Ok(())
        };
        match file.format {
            Format::Ndjson => ndjson::read(file.path, &mut each)?,
            Format::Csv | Format::Parquet => {
                table::read(&reading, file.path, file.format == Format::Csv, &mut each)?;
            }
        }
        gathered.note(entry(count, true));
        Ok(())
    }

    fn take(&self, batch: &mut Batch, file: &str, number: u64, record: &SourceRecord<'_>) {
        let position = format!("{file} record {number}");
        match &record.event {
            Ok(event) => {
                batch.arrivals.push(Arrival { event: event.clone(), received_micros: self.received_micros });
                batch.positions.push(position);
            }
            Err(error) => batch.letters.push(DeadLetter {
                origin: "file".to_owned(),
                position,
                part: None,
                reason: error.to_string(),
                raw: record.text.to_vec(),
                decoder: None,
                event: EventName::default(),
            }),
        }
    }

    fn is_full(&self, gathered: &Gathered) -> bool {
        let records = gathered.batch.arrivals.len() + gathered.batch.letters.len();
        self.policy.rows <= records as u64 || self.policy.bytes <= gathered.bytes
    }

    /// Lands what is gathered, with how far each file has come.
    fn land(
        &mut self,
        gathered: &mut Gathered,
        done: &mut Imported,
        tell: &mut impl FnMut(&Imported),
    ) -> Result<(), ImportError> {
        let Gathered { mut batch, entries, .. } = std::mem::take(gathered);
        if entries.is_empty() {
            return Ok(());
        }
        batch.changes = Some(ledger::NAME);
        batch.records = ledger::write(self.sink.writer().alias(), &entries);
        let (from, to) = (self.position.to_string(), (self.position + 1).to_string());
        let landed = self.sink.land(&from, &to, batch)?;
        self.position += 1;
        done.rows += landed.rows;
        done.letters += landed.letters;
        tell(done);
        Ok(())
    }
}

/// A file that is being read.
struct Reading<'a> {
    path: &'a Path,
    name: &'a str,
    fingerprint: &'a str,
    format: Format,
    /// So many records are in the lake already.
    skip: u64,
}

/// One record of a file.
struct SourceRecord<'a> {
    text: &'a [u8],
    event: Result<crate::cloudevents::Event, EventError>,
}

impl<'a> SourceRecord<'a> {
    fn parse(text: &'a [u8]) -> Self {
        Self { text, event: from_json(text) }
    }
}

impl Gathered {
    /// Notes how far a file has come; what was noted of it before is older.
    fn note(&mut self, entry: Entry) {
        self.entries.retain(|noted| noted.path != entry.path);
        self.entries.push(entry);
    }
}

/// Returns the files of `path`, in the order of their names.
fn files(path: &Path) -> Result<Vec<(PathBuf, Format)>, ImportError> {
    let failed = |source| ImportError::File { operation: "read", path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(failed)?.is_dir() {
        let format = format_of(path).ok_or_else(|| ImportError::Unknown { path: path.to_owned() })?;
        return Ok(vec![(path.to_owned(), format)]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |source| ImportError::File { operation: "list", path: folder.clone(), source };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
            match (is_hidden, path.is_dir()) {
                (true, _) => {}
                (false, true) => folders.push(path),
                // Other files may lie beside the data, as they do in a Hive tree.
                (false, false) => found.extend(format_of(&path).map(|format| (path, format))),
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    match found.is_empty() {
        true => Err(ImportError::Nothing { path: path.to_owned() }),
        false => Ok(found),
    }
}

fn format_of(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "ndjson" | "jsonl" => Some(Format::Ndjson),
        "csv" => Some(Format::Csv),
        "parquet" => Some(Format::Parquet),
        _ => None,
    }
}
