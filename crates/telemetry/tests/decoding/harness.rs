//! Lakes of every kind, raw events in them, and what must hold after any pass.

use std::path::PathBuf;

use pintail_core::id::LakeName;
use pintail_core::sql::{Literal, Statement};
use pintail_core::stream::WindowLimits;
use pintail_engine::fault::Faults;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, EngineError, InstanceOptions, LakeLocation, ObjectStore, PostgresLocation};
use pintail_streams::audit::{Summary, invariants};
use pintail_streams::consumer::{Consumer, Landed, Pass, Shard, Source, Spec};
use pintail_streams::rollup::shard_table;
use pintail_streams::{Decoder, Writer};
use pintail_testkit::services::{Database, Flaky, ObjectPrefix, database, object_prefix};
use secrecy::SecretString;

/// A lake, open for writing, and what it lies in.
pub struct Lake {
    pub writer: Writer,
    _folder: tempfile::TempDir,
    _database: Option<Database>,
}

/// A raw event; what is not said is what a good one has.
#[derive(Clone, Debug)]
pub struct Raw {
    pub subject: String,
    pub event_type: &'static str,
    pub id: String,
    pub time: &'static str,
    pub data: String,
}

impl Raw {
    /// Returns an event with the signals `signals`, a JSON array.
    pub fn status(subject: &str, id: &str, signals: &str) -> Self {
        Self {
            subject: subject.to_owned(),
            event_type: "dimo.status",
            id: id.to_owned(),
            time: "2026-01-02 03:04:05+00",
            data: format!(r#"{{"signals": {signals}}}"#),
        }
    }

    /// Returns an event with one value of `speed`, taken at `time`.
    pub fn speed(subject: &str, id: &str, time: &str, value: f64) -> Self {
        Self::status(subject, id, &format!(r#"[{{"name": "speed", "timestamp": "{time}", "value": {value}}}]"#))
    }

    /// Returns an event with the events `events`, a JSON array.
    pub fn events(subject: &str, id: &str, events: &str) -> Self {
        let data = format!(r#"{{"events": {events}}}"#);
        Self { event_type: "dimo.events", data, ..Self::status(subject, id, "[]") }
    }
}

fn options() -> InstanceOptions {
    let vendor = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    InstanceOptions { extensions: ExtensionFolders(vec![vendor]), threads: Some(2), ..InstanceOptions::default() }
}

/// A lake whose catalog is a file.
pub fn on_sqlite() -> Lake {
    let folder = tempfile::tempdir().unwrap();
    let catalog = Catalog::Sqlite(folder.path().join("main.sqlite"));
    let data = format!("{}/data/", folder.path().display());
    open(catalog, data, options(), folder, None)
}

/// A lake whose catalog is a database.
pub fn on_postgres() -> Lake {
    in_database(database())
}

/// A lake whose catalog is `database`.
pub fn in_database(database: Database) -> Lake {
    let folder = tempfile::tempdir().unwrap();
    let password = SecretString::from(database.password());
    let location = PostgresLocation::parse(&database.connection_without_password(), Some(password)).unwrap();
    let data = format!("{}/data/", folder.path().display());
    open(Catalog::Postgres(location), data, options(), folder, Some(database))
}

/// A lake whose data lie in an object store.
pub fn on_s3() -> Lake {
    let prefix = object_prefix();
    let endpoint = prefix.endpoint.clone();
    in_store(&prefix, endpoint)
}

/// A lake whose data lie in an object store behind a network that can fail.
pub fn on_flaky_s3() -> (Lake, Flaky) {
    let prefix = object_prefix();
    let flaky = Flaky::before(&prefix.endpoint);
    (in_store(&prefix, flaky.endpoint().to_owned()), flaky)
}

fn in_store(prefix: &ObjectPrefix, endpoint: String) -> Lake {
    let folder = tempfile::tempdir().unwrap();
    let store = ObjectStore {
        name: "raw".to_owned(),
        url: prefix.url.clone(),
        endpoint: Some(endpoint),
        region: None,
        url_style: Some("path".to_owned()),
        use_ssl: Some(false),
        key: Some(SecretString::from(prefix.key.clone())),
        secret: Some(SecretString::from(prefix.secret.clone())),
    };
    let options = InstanceOptions { object_stores: vec![store], ..options() };
    let catalog = Catalog::Sqlite(folder.path().join("main.sqlite"));
    open(catalog, format!("{}/lake/", prefix.url), options, folder, None)
}

fn open(
    catalog: Catalog,
    data: String,
    options: InstanceOptions,
    folder: tempfile::TempDir,
    database: Option<Database>,
) -> Lake {
    let location = LakeLocation { name: LakeName("main".to_owned()), catalog, data };
    let writer = Writer::open(&location, options, Faults::default()).unwrap();
    let lake = Lake { writer, _folder: folder, _database: database };
    lake.sql(
        "CREATE TABLE raw_events (subject VARCHAR, \"time\" TIMESTAMPTZ, type VARCHAR, id VARCHAR, source VARCHAR,
         producer VARCHAR, data_content_type VARCHAR, data_version VARCHAR, extras VARCHAR, data VARCHAR,
         data_base64 BLOB, data_index_key VARCHAR, voids_id VARCHAR)",
    );
    lake
}

impl Lake {
    /// Returns what opens the lake once more, on any thread, as another process does.
    pub fn opener(&self) -> impl Fn() -> Result<Writer, EngineError> + Send + Sync + use<> {
        let (location, options) = (self.writer.lake().clone(), self.writer.options().clone());
        move || Writer::open(&location, options.clone(), Faults::default())
    }

    /// Returns the lake on new connections.
    pub fn reopened(self) -> Self {
        let writer = self.opener()().unwrap();
        Self { writer, ..self }
    }

    /// Sends one statement in which tables are named without their lake.
    pub fn sql(&self, sql: &str) {
        self.writer.session().use_database(self.writer.alias()).unwrap();
        self.writer.session().run(&Statement::new("test", sql)).unwrap();
    }

    /// Lands raw events in one commit.
    pub fn land(&self, rows: &[Raw]) {
        let text = |text: &str| Literal::new(text).to_string();
        let value = |row: &Raw| {
            format!(
                "({}, {}, {}, {}, 'source', {})",
                text(&row.subject),
                text(row.time),
                text(row.event_type),
                text(&row.id),
                text(&row.data)
            )
        };
        let values: Vec<String> = rows.iter().map(value).collect();
        self.sql(&format!(
            "INSERT INTO raw_events (subject, \"time\", type, id, source, data) VALUES {}",
            values.join(", ")
        ));
    }

    /// Makes passes until nothing is left, and returns what landed.
    pub fn consume(&self, spec: Spec, decoder: &dyn Decoder) -> Vec<Landed> {
        let mut consumer = Consumer::open(&self.writer, spec, decoder).unwrap().expect("nobody else has it");
        let mut landed = Vec::new();
        loop {
            match consumer.pass().unwrap() {
                Pass::Landed(more) => landed.push(more),
                Pass::Idle | Pass::NoSource { .. } => return landed,
                Pass::Again => {}
            }
        }
    }

    /// Shows the rows of a query, values parted by a bar.
    pub fn rows(&self, sql: &str) -> String {
        self.writer.session().use_database(self.writer.alias()).unwrap();
        let rows = self.writer.session().query("test", sql).unwrap().text_rows().unwrap();
        let line = |row: Vec<Option<String>>| {
            row.into_iter().map(|value| value.unwrap_or_else(|| "-".to_owned())).collect::<Vec<_>>().join(" | ") + "\n"
        };
        rows.into_iter().map(line).collect()
    }

    /// Checks what always holds: no row is there twice, each has its raw event, and each rollup is what its table says.
    pub fn check(&self, decoder: &dyn Decoder, shards: u32) {
        for target in decoder.targets() {
            let rollup = target.rollup.as_deref().expect("both tables have one").table().to_owned();
            let mut summaries =
                vec![Summary { table: rollup.clone(), rollup: rollup.clone(), base: target.table.clone() }];
            for index in 0..if shards < 2 { 0 } else { shards } {
                let condition = Shard { index, of: shards, by: "subject".to_owned() }.condition();
                let base = format!("(SELECT * FROM {} WHERE {condition})", target.table);
                let table = shard_table(&rollup, index);
                summaries.push(Summary { table: table.clone(), rollup: table, base });
            }
            for invariant in invariants(decoder, &target, &target.table, Some("raw_events"), &summaries) {
                assert_eq!(self.rows(&invariant.query), "0\n", "{}: {}", invariant.table, invariant.broken);
            }
        }
    }
}

/// Returns a consumer of the raw events, without shards.
pub fn decode() -> Spec {
    Spec::new("decode", Source { schema: "main".to_owned(), table: "raw_events".to_owned() })
}

/// Returns the same with windows of a few rows.
pub fn decode_in_small_windows() -> Spec {
    Spec { window: WindowLimits { rows: 2, ..WindowLimits::default() }, ..decode() }
}
