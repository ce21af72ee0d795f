//! A lake and a log in a temp folder, and short ways to feed the one and ask the other.

use std::path::PathBuf;
use std::sync::Arc;

use pintail_core::id::LakeName;
use pintail_engine::fault::Faults;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, InstanceOptions, LakeLocation, ObjectStore, PostgresLocation};
use pintail_streams::Writer;
use pintail_telemetry::cloudevents::from_json;
use pintail_telemetry::log::{Arrival, Log, LogOptions, Record};
use pintail_telemetry::raw::RawTable;
use pintail_telemetry::sink::{FlushPolicy, LogSink, LogSinkError};
use pintail_telemetry::sources::OpenLake;
use pintail_testkit::services::{Database, database, object_prefix};
use secrecy::SecretString;
use tokio::runtime::Runtime;

/// When events came that have no time of their own.
pub const RECEIVED: i64 = 1_767_323_045_678_999;

/// A lake and a log that vanish with the test.
pub struct Place {
    pub folder: tempfile::TempDir,
    pub location: LakeLocation,
    pub runtime: Runtime,
    stores: Vec<ObjectStore>,
    _database: Option<Database>,
}

/// Which kind of catalog and files.
#[derive(Clone, Copy, Debug)]
pub enum On {
    Sqlite,
    Postgres,
    PostgresAndS3,
}

impl Place {
    pub fn new(on: On) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = match on {
            On::Sqlite => None,
            On::Postgres | On::PostgresAndS3 => Some(database()),
        };
        let catalog = match &database {
            None => Catalog::Sqlite(folder.path().join("main.sqlite")),
            Some(database) => {
                let password = SecretString::from(database.password());
                let text = database.connection_without_password();
                Catalog::Postgres(PostgresLocation::parse(&text, Some(password)).unwrap())
            }
        };
        let (data, stores) = match on {
            On::PostgresAndS3 => {
                let prefix = object_prefix();
                let store = ObjectStore {
                    name: "test".to_owned(),
                    url: prefix.url.clone(),
                    endpoint: Some(prefix.endpoint),
                    region: None,
                    url_style: Some("path".to_owned()),
                    use_ssl: Some(false),
                    key: Some(SecretString::from(prefix.key)),
                    secret: Some(SecretString::from(prefix.secret)),
                };
                (format!("{}/data/", prefix.url), vec![store])
            }
            _ => (format!("{}/data/", folder.path().display()), Vec::new()),
        };
        let location = LakeLocation { name: LakeName("main".to_owned()), catalog, data };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { folder, location, runtime, stores, _database: database }
    }

    pub fn writer(&self) -> Writer {
        self.writer_with("")
    }

    /// Opens the lake with faults, as in `stamped=panic`.
    pub fn writer_with(&self, faults: &str) -> Writer {
        Writer::open(&self.location, options(&self.stores), Faults::parse(faults).unwrap()).unwrap()
    }

    /// Returns what opens the lake for a source, with faults.
    pub fn lake(&self, faults: &str) -> OpenLake {
        let (location, options) = (self.location.clone(), options(&self.stores));
        let faults = Faults::parse(faults).unwrap();
        Arc::new(move || Writer::open(&location, options.clone(), faults.clone()))
    }

    /// Reaches the object store through `endpoint`, which may be a proxy before it, from now on.
    pub fn reach_store_through(&mut self, endpoint: &str) {
        self.stores.iter_mut().for_each(|store| store.endpoint = Some(endpoint.to_owned()));
    }

    /// Returns where the object store is reached.
    pub fn store_endpoint(&self) -> String {
        self.stores[0].endpoint.clone().unwrap()
    }

    /// Opens the log `name`.
    pub fn log(&self, name: &str) -> Log {
        let path = self.folder.path().join(format!("{name}.sqlite"));
        self.runtime.block_on(Log::open(&LogOptions { path, limit: 1 << 30 })).unwrap()
    }

    /// Appends `records` as one request.
    pub fn append(&self, log: &Log, records: &[Record]) {
        self.runtime.block_on(log.append(records)).unwrap();
    }

    pub fn sink(&self, log: &Log) -> LogSink {
        self.try_sink(log, "").unwrap()
    }

    pub fn try_sink(&self, log: &Log, faults: &str) -> Result<LogSink, LogSinkError> {
        let policy = FlushPolicy { rows: 100, bytes: 1 << 20, age_micros: 3_600_000_000 };
        let (writer, table) = (self.writer_with(faults), RawTable::default());
        LogSink::open(writer, table, log.clone(), policy, self.runtime.handle().clone())
    }

    /// Closes a log, so that it can be opened again.
    pub fn close(&self, log: &Log) {
        self.runtime.block_on(log.close());
    }
}

/// Returns how the instances of tests are opened.
pub fn options(stores: &[ObjectStore]) -> InstanceOptions {
    let vendor = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    InstanceOptions {
        extensions: ExtensionFolders(vec![vendor]),
        threads: Some(2),
        object_stores: stores.to_vec(),
        ..InstanceOptions::default()
    }
}

/// Returns an event with `members` beside id, source and type.
pub fn event(id: &str, members: &str) -> Record {
    let comma = if members.is_empty() { "" } else { "," };
    let json = format!(r#"{{"specversion":"1.0","id":"{id}","source":"/s","type":"t"{comma}{members}}}"#);
    let event = from_json(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"));
    Record::Event(Arrival { event, received_micros: RECEIVED })
}

/// Returns the rows of a query as text, `lake.` standing for the lake.
pub fn rows(writer: &Writer, sql: &str) -> Vec<String> {
    let result = writer.session().query("ask", &named(writer, sql)).unwrap();
    let row = |row: Vec<Option<String>>| {
        let values: Vec<String> = row.into_iter().map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect();
        values.join("|")
    };
    result.text_rows().unwrap().into_iter().map(row).collect()
}

/// Sends a statement as somebody else would, in a commit of its own.
pub fn foreign(writer: &Writer, sql: &str) {
    let lane = writer.lake().lane();
    let _pass = lane.enter().unwrap();
    writer.session().batch("write from outside", &named(writer, sql)).unwrap();
}

fn named(writer: &Writer, sql: &str) -> String {
    sql.replace("lake.", &format!("{}.", writer.alias()))
}

/// Makes the same test of each function for both kinds of catalog.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod sqlite { $(#[test] fn $name() { super::$name(crate::harness::On::Sqlite); })* }
        mod postgres { $(#[test] fn $name() { super::$name(crate::harness::On::Postgres); })* }
    };
}
pub(crate) use on_both;
