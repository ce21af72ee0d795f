//! A step that failed, in the words that the user gets: what was being done, what happened, where in the script, what is
//! committed now, and what to do next.

use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::source::Span;
use pintail_core::write::ErrorClass;
use pintail_engine::EngineError;
use pintail_engine::classify::EngineMessage;
use pintail_store::RecordedError;

use crate::with_sources;

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// How to react.
    pub class: ErrorClass,
    /// The diagnostic code that explains it.
    pub code: Code,
    /// What was being done, such as `stage the query`.
    pub stage: String,
    /// What happened.
    pub message: String,
    /// Where in the script's file.
    pub span: Option<Span>,
    /// What to do about it.
    pub help: Option<String>,
    /// Names and rows that show it; NULL is `None`.
    pub sample: Option<Sample>,
    /// What is committed now.
    pub committed: String,
}

/// Rows that show a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The column names.
    pub columns: Vec<String>,
    /// The rows as text.
    pub rows: Vec<Vec<Option<String>>>,
}

impl StepFailure {
    /// Returns a failure that the user must mend.
    pub fn user(code: Code, stage: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            class: ErrorClass::User,
            code,
            stage: stage.into(),
            message: message.into(),
            span: None,
            help: None,
            sample: None,
            committed: String::new(),
        }
    }

    /// Returns the failure of a step that the user stopped.
    pub fn cancelled(stage: impl Into<String>) -> Self {
        Self { class: ErrorClass::Cancelled, ..Self::user(Code::CANCELLED, stage, "stopped on request") }
    }

    /// Returns the failure of an operation on the store.
    pub fn store(stage: impl Into<String>, error: &pintail_store::WriteError) -> Self {
        let class = match error.class() {
            pintail_store::ErrorClass::Transient => ErrorClass::Transient,
            pintail_store::ErrorClass::User => ErrorClass::User,
            _ => ErrorClass::Bug,
        };
        Self { class, ..Self::user(Code::ENGINE_ERROR, stage, with_sources(error)) }
    }

    /// Returns the failure to read the store.
    pub fn unread(stage: impl Into<String>, error: &pintail_store::ReadError) -> Self {
        Self { class: ErrorClass::Transient, ..Self::user(Code::ENGINE_ERROR, stage, with_sources(error)) }
    }

    /// Returns the failure of text that the user wrote: the engine's position in the statement, mapped into the file by
    /// `original`, or the whole of `span`.
    pub fn in_text(error: EngineError, original: impl Fn(usize) -> usize, span: Span) -> Self {
        let position = error.failure().and_then(|failure| failure.message.position);
        let failure = Self::from(error);
        let place = position.map_or(span, |position| {
            let at = original(position).clamp(span.start, span.end);
            Span::new(at, at)
        });
        failure.at(place)
    }

    /// Returns the class as the store spells it.
    pub fn store_class(&self) -> pintail_store::ErrorClass {
        match (self.code == Code::SUPERSEDED, self.class) {
            (true, _) => pintail_store::ErrorClass::Superseded,
            (_, ErrorClass::User | ErrorClass::Cancelled) => pintail_store::ErrorClass::User,
            (_, ErrorClass::Conflict) => pintail_store::ErrorClass::Conflict,
            (_, ErrorClass::Transient) => pintail_store::ErrorClass::Transient,
            (_, ErrorClass::Bug) => pintail_store::ErrorClass::Bug,
        }
    }

    /// Says what is live after a commit whose files are gone.
    fn without_files(self, snapshot: SnapshotId) -> Self {
        let committed = format!(
            "snapshot {snapshot} is live and cannot be read; the version before it can, by `query --at {}`",
            snapshot.0 - 1
        );
        let help = "drop the table in the lake, then `pintail run --select <script> --full-refresh` writes it anew; nothing can \
                    be deleted from it row by row, because that would read the lost files";
        Self { stage: "commit".to_owned(), committed, ..self }.with_help(help)
    }

    /// Adds what to do about it.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the place in the script's file.
    pub fn at(mut self, span: impl Into<Option<Span>>) -> Self {
        self.span = span.into();
        self
    }

    /// Adds rows that show it.
    pub fn with_sample(mut self, sample: Sample) -> Self {
        self.sample = Some(sample).filter(|sample| !sample.rows.is_empty());
        self
    }

    /// Returns the failure as the store keeps it.
    pub fn recorded(&self) -> RecordedError {
        RecordedError {
            stage: self.stage.clone(),
            message: match &self.sample {
                Some(sample) => format!("{}\n{}", self.message, sample.as_lines()),
                None => self.message.clone(),
            },
            statement: Some(self.stage.clone()),
            committed: self.committed.clone(),
            next: self.help.clone(),
        }
    }
}

impl Sample {
    /// How many rows people are shown; all of them are in JSON and among the results of tests.
    const SHOWN: usize = 20;

    /// Returns the rows that people are shown, and a line about the rest.
    pub fn shown(&self) -> (&[Vec<Option<String>>], Option<String>) {
        let shown = &self.rows[..self.rows.len().min(Self::SHOWN)];
        let more = self.rows.len() - shown.len();
        (shown, (0 < more).then(|| format!("… {more} more in `--json`")))
    }

    fn as_lines(&self) -> String {
        let line = |row: &Vec<Option<String>>| {
            row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" | ")
        };
        let (rows, more) = self.shown();
        let head = self.columns.join(" | ");
        std::iter::once(head).chain(rows.iter().map(line)).chain(more).collect::<Vec<_>>().join("\n")
    }
}

impl From<EngineError> for StepFailure {
    fn from(error: EngineError) -> Self {
        let class = error.class();
        let code = match class {
            ErrorClass::User => Code::ENGINE_ERROR,
            ErrorClass::Conflict => Code::CONFLICT,
            ErrorClass::Transient => Code::TRANSIENT_ERROR,
            ErrorClass::Cancelled => Code::CANCELLED,
            ErrorClass::Bug => Code::ENGINE_ERROR,
        };
        let code = match &error {
            EngineError::DatabaseMissing { .. } => Code::CATALOG_DATABASE_MISSING,
            EngineError::TooFewConnections { .. } => Code::TOO_FEW_CONNECTIONS,
            EngineError::NoObjectStore { .. } => Code::OBJECT_STORE_MISSING,
            _ => code,
        };
        let (stage, message) = match error.failure() {
            Some(failure) => {
                let kind = if failure.message.kind.is_empty() {
                    String::new()
                } else {
                    format!("{} error: ", failure.message.kind)
                };
                (failure.purpose.to_owned(), format!("{kind}{}", failure.message.message))
            }
            None => ("reach the lake".to_owned(), with_sources(&error)),
        };
        let mut candidates = error.failure().map(|failure| failure.message.candidates.clone()).unwrap_or_default();
        candidates.retain(|name| !is_internal(name));
        let known = error.failure().and_then(|failure| known_help(&failure.message));
        let help = match candidates.as_slice() {
            [] => known.map(str::to_owned),
            [one] => Some(format!("did you mean `{one}`?")),
            several => Some(format!("near names: {}", several.join(", "))),
        };
        let failure = Self { class, code, stage, message, span: None, help, sample: None, committed: String::new() };
        match error {
            EngineError::FilesLost { snapshot, .. } => failure.without_files(snapshot),
            _ => failure,
        }
    }
}

/// Returns what helps against what the engine says, where that is known.
fn known_help(message: &EngineMessage) -> Option<&'static str> {
    if message.is_locked() {
        return Some(
            "another program has the lake's catalog open for writing: close it or wait for it, then run again",
        );
    }
    if message.is_disk_full() {
        return Some("make room where the named file lies, then run again: nothing has to be cleaned up by hand");
    }
    if message.is_spill_full() {
        return Some(
            "what does not fit into memory goes to `temp_directory`, up to `temp_limit` and up to the room on its disk: raise \
             `temp_limit` under [run] in pintail.toml (the slots share it), make room, or raise `memory_limit`",
        );
    }
    if message.is_out_of_memory() {
        return Some(
            "raise `memory_limit` under [run] in pintail.toml, or use fewer `slots`, which share it; what can be spilled goes \
             to `temp_directory`, up to `temp_limit`",
        );
    }
    if message.is_httpfs_needed() {
        return Some("put `LOAD httpfs;` above the query");
    }
    if message.is_missing_file() {
        return Some(
            "the catalog names a file that is not there: when `data` in pintail.toml was changed, change it back or move \
             the files; when they were deleted, `run --full-refresh` writes the table anew",
        );
    }
    if message.is_no_file() {
        return Some("a path in SQL starts at the folder of the project, wherever the script lies");
    }
    if message.is_read_only() {
        return Some("here a lake is only read; what writes is a script, and `pintail run` runs it");
    }
    None
}

/// Returns whether `name` is one that the engine or Pintail made for itself, which nobody means.
fn is_internal(name: &str) -> bool {
    let table = name.rsplit('.').next().unwrap_or(name);
    ["pg_", "duckdb_", "sqlite_", "ducklake_", "pragma_", "_pt_", "fence_"]
        .iter()
        .any(|prefix| table.starts_with(prefix))
        || name.split('.').any(|part| matches!(part, "_pintail" | "pg_catalog" | "information_schema"))
}
