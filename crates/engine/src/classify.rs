//! What an engine message means: its kind, its position, and how the caller should react.
//!
//! This is the only file that matches on the texts of DuckDB and its extensions; each phrase has a test. DuckDB's C
//! interface gives no codes, so there is no other way.

pub use pintail_core::write::ErrorClass;
use serde::Deserialize;

/// One engine message, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineMessage {
    /// DuckDB's exception type, such as `Binder` or `TransactionContext`; empty when the text names none.
    pub kind: String,
    /// The message for people, without the type and without the quoted source lines.
    pub message: String,
    /// The byte offset in the text that was sent.
    pub position: Option<usize>,
    /// Names that the engine proposes instead.
    pub candidates: Vec<String>,
    /// How to react.
    pub class: ErrorClass,
}

/// The JSON form that `errors_as_json` gives.
#[derive(Deserialize)]
struct JsonError {
    exception_type: String,
    exception_message: String,
    #[serde(default)]
    position: Option<String>,
    #[serde(default)]
    candidates: Option<String>,
}

/// Phrases that decide the class whatever the exception type says, most specific first.
const PHRASES: &[(&str, ErrorClass)] = &[
    ("Interrupted!", ErrorClass::Cancelled),
    // A lost server says so first, whatever was being done; what was sent is settled by a look-up.
    ("server closed the connection unexpectedly", ErrorClass::Transient),
    ("terminating connection due to", ErrorClass::Transient),
    ("SSL connection has been closed unexpectedly", ErrorClass::Transient),
    ("no connection to the server", ErrorClass::Transient),
    ("the database system is starting up", ErrorClass::Transient),
    ("the database system is shutting down", ErrorClass::Transient),
    ("the database system is in recovery mode", ErrorClass::Transient),
    ("the database system is not yet accepting connections", ErrorClass::Transient),
    ("Connection refused", ErrorClass::Transient),
    ("could not receive data from server", ErrorClass::Transient),
    ("could not send data to server", ErrorClass::Transient),
    ("too many clients already", ErrorClass::Transient),
    ("remaining connection slots are reserved", ErrorClass::Transient),
    ("Failed to execute query \"ROLLBACK\":", ErrorClass::Transient),
    ("Failed to execute query \"COMMIT\": server", ErrorClass::Transient),
    ("Transaction conflict", ErrorClass::Conflict),
    ("Exceeded the maximum retry count", ErrorClass::Conflict),
    // On a SQLite catalog a true conflict shows as a lock error at COMMIT.
    ("Failed to flush changes into DuckLake: database is locked", ErrorClass::Conflict),
    ("Failed to commit DuckLake transaction", ErrorClass::Conflict),
    ("database is locked", ErrorClass::Transient),
    // Whoever opens a SQLite file in the moment in which its last user removes the write-ahead log is told this.
    ("\"PRAGMA journal_mode=WAL\": disk I/O error", ErrorClass::Transient),
    ("Conflicting lock is held", ErrorClass::Transient),
    ("GetValueInternal on a value that is NULL", ErrorClass::Transient),
    ("Could not connect to server", ErrorClass::Transient),
    // A store of objects that is away, or whose connection broke off; what it refuses has a status instead.
    (" error for HTTP ", ErrorClass::Transient),
    ("Unexpected response when uploading part to S3", ErrorClass::Transient),
    ("No space left on device", ErrorClass::User),
    ("File too large", ErrorClass::User),
    ("Disk quota exceeded", ErrorClass::User),
    ("database has been invalidated", ErrorClass::Bug),
];

/// Exception types that are faults of the engine, not of the statement.
const BUG_KINDS: &[&str] = &["INTERNAL", "FATAL", "Serialization"];

impl EngineMessage {
    /// Takes the text of a DuckDB error apart.
    pub fn parse(text: &str) -> Self {
        let (kind, message, position, candidates) = match parse_json(text) {
            Some(error) => {
                let position = error.position.and_then(|position| position.parse().ok());
                let candidates = error.candidates.map(|names| split_candidates(&names)).unwrap_or_default();
                (error.exception_type, error.exception_message, position, candidates)
            }
            None => {
                let (kind, message) = split_kind(text);
                (kind, message, None, Vec::new())
            }
        };
        let message = without_suggestions(without_source_lines(&message), &candidates);
        let candidates = candidates.into_iter().filter(|name| !is_system_name(name)).collect();
        let class = classify(&kind, &message);
        Self { kind, message, position, candidates, class }
    }

    /// Returns whether the text says that there was no transaction to roll back, which a ROLLBACK after a failed COMMIT
    /// always answers.
    pub fn is_no_transaction(&self) -> bool {
        self.message.contains("no transaction is active")
    }

    /// Returns whether the text says that another program holds the catalog's file.
    pub fn is_locked(&self) -> bool {
        self.message.contains("database is locked")
    }

    /// Returns whether the text says that a file which the catalog names is not there.
    pub fn is_missing_file(&self) -> bool {
        self.message.contains("Cannot open file") && self.message.contains("No such file or directory")
    }

    /// Returns whether the text says that the statement needs httpfs, which scripts load themselves.
    pub fn is_httpfs_needed(&self) -> bool {
        self.message.contains("requires the extension httpfs to be loaded")
    }

    /// Returns whether the text says that no file has the name or fits the pattern.
    pub fn is_no_file(&self) -> bool {
        self.message.starts_with("No files found that match the pattern")
    }

    /// Returns whether the text says that there is no object at an address, or none that fits a pattern.
    pub fn is_no_object(&self) -> bool {
        self.is_no_file() || self.message.contains("404 (Not Found)") || self.message.contains("HTTP 404")
    }

    /// Returns whether the text says that a statement would write a database that is attached for reading.
    pub fn is_read_only(&self) -> bool {
        self.message.contains("attached in read-only mode")
    }

    /// Returns whether the text says that a disk, a quota or the allowed size of a file is used up.
    pub fn is_disk_full(&self) -> bool {
        ["No space left on device", "Disk quota exceeded", "File too large"]
            .iter()
            .any(|phrase| self.message.contains(phrase))
    }

    /// Returns whether the text says that there is more to spill than the spill directory may hold.
    pub fn is_spill_full(&self) -> bool {
        self.message.contains("max_temp_directory_size")
    }

    /// Returns whether the text says that the memory limit is reached.
    pub fn is_out_of_memory(&self) -> bool {
        self.kind.eq_ignore_ascii_case("Out of Memory")
    }

    /// Returns whether the error is about the values of a row, so that the same row fails again and others may pass.
    pub fn is_about_values(&self) -> bool {
        ["Constraint", "Conversion", "Invalid Input", "Out of Range", "Mismatch Type"]
            .iter()
            .any(|kind| self.kind.eq_ignore_ascii_case(kind))
            && !self.is_disk_full()
    }

    /// Returns whether the text says that a row asks for a folder or file whose name is longer than a file system takes, so
    /// that the same row fails again and others may pass.
    pub fn is_name_too_long(&self) -> bool {
        self.message.contains("File name too long")
    }

    /// Returns whether the text says that a snapshot is not there (expired, or above the head).
    pub fn is_no_snapshot(&self) -> bool {
        self.message.contains("No snapshot found at")
    }
}

fn parse_json(text: &str) -> Option<JsonError> {
    // Parser errors arrive as `Parser Error: {json}`, the others as bare JSON.
    let start = text.find('{')?;
    let prefix = text[..start].trim_end();
    if !(prefix.is_empty() || prefix.ends_with("Error:")) {
        return None;
    }
    serde_json::from_str(&text[start..]).ok()
}

fn split_candidates(names: &str) -> Vec<String> {
    names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

fn split_kind(text: &str) -> (String, String) {
    match text.split_once(" Error: ") {
        Some((kind, message)) if kind.split_whitespace().count() <= 3 && !kind.contains('\n') => {
            (kind.to_owned(), message.to_owned())
        }
        _ => (String::new(), text.to_owned()),
    }
}

/// Drops `LINE 1: …` and its caret: positions are shown in the user's own file instead.
fn without_source_lines(message: &str) -> String {
    let end = message.find("\n\nLINE ").or_else(|| message.find("\nLINE ")).unwrap_or(message.len());
    // How extensions are installed and limits are set elsewhere is no advice here.
    let elsewhere = ["\n\nPlease try installing", "\nBy default, this setting utilizes", "\n\nPossible solutions:"];
    let end = elsewhere.iter().filter_map(|advice| message.find(advice)).fold(end, usize::min);
    message[..end].trim().to_owned()
}

/// Drops the line that repeats the candidates: they are told as help.
fn without_suggestions(message: String, candidates: &[String]) -> String {
    let starts = ["\nCandidate bindings:", "\nDid you mean"];
    match starts.iter().find_map(|start| message.find(start)) {
        Some(end) if !candidates.is_empty() => message[..end].trim_end().to_owned(),
        _ => message,
    }
}

/// A table of the engine's own is never what was meant.
fn is_system_name(name: &str) -> bool {
    ["information_schema.", "pg_catalog."].iter().any(|schema| name.contains(schema))
}

fn classify(kind: &str, message: &str) -> ErrorClass {
    if let Some((_, class)) = PHRASES.iter().find(|(phrase, _)| message.contains(phrase)) {
        return *class;
    }
    match BUG_KINDS.iter().any(|bug| kind.eq_ignore_ascii_case(bug)) {
        true => ErrorClass::Bug,
        false => ErrorClass::User,
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineMessage, ErrorClass};

    fn class(text: &str) -> ErrorClass {
        EngineMessage::parse(text).class
    }

    #[test]
    fn each_phrase_has_its_class() {
        let conflict = "TransactionContext Error: Failed to commit: Failed to commit DuckLake transaction.\n";
        assert_eq!(class(&format!("{conflict}Transaction conflict - attempting to delete")), ErrorClass::Conflict);
        assert_eq!(
            class(&format!("{conflict}Failed to flush changes into DuckLake: database is locked")),
            ErrorClass::Conflict
        );
        assert_eq!(
            class("x Error: Exceeded the maximum retry count of 10 set by the ducklake_max_retry_count setting"),
            ErrorClass::Conflict
        );
        assert_eq!(class("Invalid Error: Failed to query: database is locked"), ErrorClass::Transient);
        let opened =
            "Invalid Error: Failed to probe DuckLake metadata: Failed to execute query \"PRAGMA journal_mode=WAL\": ";
        assert_eq!(class(&format!("{opened}disk I/O error")), ErrorClass::Transient);
        assert_eq!(class("IO Error: Could not set lock: Conflicting lock is held"), ErrorClass::Transient);
        assert_eq!(class("INTERNAL Error: Calling GetValueInternal on a value that is NULL"), ErrorClass::Transient);
        assert_eq!(class("IO Error: server closed the connection unexpectedly"), ErrorClass::Transient);
        let lost = [
            "IO Error: terminating connection due to administrator command",
            "IO Error: SSL connection has been closed unexpectedly",
            "IO Error: no connection to the server",
            "IO Error: FATAL:  the database system is starting up",
            "IO Error: FATAL:  the database system is shutting down",
            "IO Error: FATAL:  the database system is in recovery mode",
            "IO Error: FATAL:  the database system is not yet accepting connections",
            "IO Error: Unable to connect to Postgres at \"host='db'\": connection to server failed: Connection refused",
            "IO Error: could not receive data from server: Connection reset by peer",
            "IO Error: could not send data to server: Broken pipe",
            "IO Error: FATAL:  sorry, too many clients already",
            "IO Error: FATAL:  remaining connection slots are reserved for non-replication superuser connections",
            "TransactionContext Error: Failed to commit: Failed to execute query \"ROLLBACK\": ",
            "TransactionContext Error: Failed to commit: Failed to execute query \"COMMIT\": server closed",
        ];
        for text in lost {
            assert_eq!(class(text), ErrorClass::Transient, "{text}");
        }
        let store = [
            "IO Error: Server returned nothing (no headers, no data) error for HTTP PUT to 'http://s3/b/data/a.parquet'",
            "IO Error: Unexpected response when uploading part to S3",
        ];
        for text in store {
            assert_eq!(class(text), ErrorClass::Transient, "{text}");
        }
        let refused = "HTTP Error: HTTP GET error on 'http://s3/b/a.parquet' (HTTP 403)";
        assert_eq!(class(refused), ErrorClass::User);
        assert_eq!(class("INTERRUPT Error: Interrupted!"), ErrorClass::Cancelled);
        assert_eq!(class("INTERNAL Error: SetMin or SetMax called with Value"), ErrorClass::Bug);
        assert_eq!(
            class("FATAL Error: database has been invalidated because of a previous fatal error"),
            ErrorClass::Bug
        );
        assert_eq!(class("IO Error: Failed to write: No space left on device"), ErrorClass::User);
        assert_eq!(class("IO Error: Could not write file \"/d/a\": File too large"), ErrorClass::User);
        assert_eq!(class("IO Error: Could not write file \"/d/a\": Disk quota exceeded"), ErrorClass::User);
        assert_eq!(class("Binder Error: no such column"), ErrorClass::User);
    }

    #[test]
    fn a_file_that_the_catalog_names_and_that_is_gone_is_told_from_a_path_that_matches_nothing() {
        let is_missing = |text: &str| EngineMessage::parse(text).is_missing_file();
        assert!(is_missing("IO Error: Cannot open file \"/d/a.parquet\": No such file or directory"));
        assert!(!is_missing("IO Error: No files found that match the pattern \"/d/a.csv\""));
    }

    #[test]
    fn a_needed_extension_is_told_without_how_it_is_installed_elsewhere() {
        let text = "Missing Extension Error: File s3://b/x requires the extension httpfs to be loaded\n\n\
                    Please try installing and loading the httpfs extension by running:\nINSTALL httpfs;";
        let message = EngineMessage::parse(text);
        assert!(message.is_httpfs_needed());
        assert_eq!(message.message, "File s3://b/x requires the extension httpfs to be loaded");
    }

    #[test]
    fn a_value_that_is_no_name_of_a_folder_is_told_from_a_disk_that_fails() {
        let is_too_long = |text: &str| EngineMessage::parse(text).is_name_too_long();
        assert!(is_too_long("IO Error: Failed to create directory \"/d/type=ttt\": File name too long"));
        assert!(!is_too_long("IO Error: Failed to create directory \"/d/type=t\": Permission denied"));
    }

    #[test]
    fn what_is_used_up_is_told_apart() {
        let used_up = |text: &str| {
            let message = EngineMessage::parse(text);
            (message.is_disk_full(), message.is_spill_full(), message.is_out_of_memory())
        };
        assert_eq!(used_up("IO Error: Could not write file \"/d/a\": No space left on device"), (true, false, false));
        let spill = "Out of Memory Error: failed to offload data block of size 256.0 KiB (768.0 KiB/976.5 KiB used).\n\
                     This limit was set by the 'max_temp_directory_size' setting.\nBy default, this setting utilizes the \
                     available disk space.\n\nPossible solutions:\n* Reducing the number of threads (SET threads=X)";
        assert_eq!(used_up(spill), (false, true, true));
        assert!(EngineMessage::parse(spill).message.ends_with("setting."), "advice for elsewhere is left out");
        assert_eq!(used_up("Out of Memory Error: could not allocate block of size 256.0 KiB"), (false, false, true));
        assert_eq!(used_up("Binder Error: no such column"), (false, false, false));
    }

    #[test]
    fn json_errors_give_position_and_candidates() {
        let text = r#"{"exception_type":"Binder","exception_message":"Referenced column \"nmae\" not found\n\nLINE 1: x","candidates":"name, a","position":"21","error_subtype":"COLUMN_NOT_FOUND"}"#;
        let message = EngineMessage::parse(text);
        assert_eq!(message.kind, "Binder");
        assert_eq!(message.message, "Referenced column \"nmae\" not found");
        assert_eq!(message.position, Some(21));
        assert_eq!(message.candidates, ["name", "a"]);
        let text = text.replace(r#" not found\n"#, r#" not found\nCandidate bindings: \"name\"\n"#);
        assert_eq!(EngineMessage::parse(&text).message, "Referenced column \"nmae\" not found");
        let text = text.replace("name, a", "information_schema.tables");
        assert_eq!(EngineMessage::parse(&text).candidates, [""; 0]);
        let parser = EngineMessage::parse(&format!("Parser Error: {text}"));
        assert_eq!(parser.position, Some(21));
    }

    #[test]
    fn a_brace_inside_plain_text_is_not_json() {
        let message = EngineMessage::parse("Invalid Input Error: bad value {a}");
        assert_eq!(message.kind, "Invalid Input");
        assert_eq!(message.message, "bad value {a}");
    }

    #[test]
    fn rollback_without_transaction_is_recognised() {
        let message = EngineMessage::parse("TransactionContext Error: cannot rollback - no transaction is active");
        assert!(message.is_no_transaction());
        assert!(EngineMessage::parse("Invalid Error: Failed to query: database is locked").is_locked());
        let missing = "IO Error: No files found that match the pattern \"data/nofile.csv\"";
        assert!(EngineMessage::parse(missing).is_no_file());
        let write = "Invalid Input Error: Cannot execute statement of type \"DELETE\" on database \"lake\" which is \
                     attached in read-only mode!";
        assert!(EngineMessage::parse(write).is_read_only());
        assert!(EngineMessage::parse("Invalid Input Error: No snapshot found at version 9999").is_no_snapshot());
    }
}
