//! The typed configuration and its defaults: what `pintail.toml` says, and what no file means.
//!
//! Invariant: every relative path is below the project root; every secret is wrapped, and its value is in
//! [`Config::secrets`] for the redactor.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono_tz::Tz;
use pintail_core::id::{LakeName, ProjectName};
use secrecy::SecretString;

use super::catalog::{Catalog, StoreUrl};
use super::consumer::ConsumerConfig;
use super::ingest::IngestConfig;
use super::secrets::Secrets;
use super::size::ByteSize;

/// The whole configuration with the selected profile laid over it.
#[derive(Clone, Debug)]
pub struct Config {
    /// `[project] name`: what tells the project from others in a shared store.
    pub project_name: Option<ProjectName>,
    /// The selected profile.
    pub profile: Option<String>,
    /// The profile whose assets are read where this one has not built them.
    pub deferred: Option<Deferred>,
    /// Lakes; `main` is always among them.
    pub lakes: BTreeMap<LakeName, Lake>,
    /// Where the metadata store is.
    pub store: StoreUrl,
    /// How runs use the machine.
    pub run: RunConfig,
    /// How lakes are looked after.
    pub maintain: MaintainConfig,
    /// Consumers of change feeds, by name.
    pub consumers: BTreeMap<String, ConsumerConfig>,
    /// How events are taken in.
    pub ingest: IngestConfig,
    /// Postgres databases.
    pub datatables: BTreeMap<String, Datatable>,
    /// Object stores.
    pub object_stores: BTreeMap<String, ObjectStore>,
    /// Directories.
    pub volumes: BTreeMap<String, Volume>,
    /// `$name` in scripts.
    pub vars: BTreeMap<String, Variable>,
    /// Connections that event triggers use, by kind.
    pub brokers: BTreeMap<BrokerKind, Broker>,
    /// Packages, as written.
    pub packages: Packages,
    /// Every secret value that was read.
    pub secrets: Secrets,
}

/// The profile that the selected one defers to.
#[derive(Clone, Debug)]
pub struct Deferred {
    /// Its name.
    pub profile: String,
    /// What the schemas of the selected profile end with.
    pub schema_suffix: String,
    /// Its lakes, as far as they are others than those of the selected profile.
    pub lakes: BTreeMap<LakeName, Lake>,
}

impl Deferred {
    /// Returns the name under which a lake of that profile is attached beside the selected one's.
    pub fn lake_name(&self, lake: &LakeName) -> LakeName {
        LakeName(format!("_pt_{}_{lake}", self.profile))
    }
}

/// One lake.
#[derive(Clone, Debug)]
pub struct Lake {
    /// Where its catalog is.
    pub catalog: Catalog,
    /// How those who only ask reach the catalog, when it is not as those who write.
    pub reader: Option<Catalog>,
    /// Where its files are.
    pub data: DataPath,
}

/// Where a lake's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPath {
    /// A directory.
    Local(PathBuf),
    /// A URL such as `s3://bucket/prefix`.
    Url(String),
}

/// How runs use the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunConfig {
    /// Steps at once.
    pub slots: NonZeroU32,
    /// Memory of the process, divided by slots.
    pub memory_limit: ByteSize,
    /// Where the engine spills.
    pub temp_directory: PathBuf,
    /// How much it may spill.
    pub temp_limit: ByteSize,
    /// Inputs of so many successful runs of each asset are kept.
    pub keep_runs: u32,
    /// Inputs are kept for at least so many days.
    pub keep_days: u32,
    /// The zone of schedules that name none.
    pub timezone: Tz,
    /// Whether the steps of a run share one transaction.
    pub atomic: bool,
    /// Tags of the scripts that this process takes; empty for all.
    pub worker: Vec<String>,
}

/// How lakes are looked after.
#[derive(Clone, Debug, PartialEq)]
pub struct MaintainConfig {
    /// How often, where that is done again and again.
    pub every: Duration,
    /// Versions younger than this stay.
    pub keep: Duration,
    /// Files of versions that have gone stay for so long.
    pub grace: Duration,
    /// After so long a silence a consumer no longer holds what it has not read.
    pub stale: Duration,
    /// Whether small files are merged.
    pub merge: bool,
    /// A file of less than this is small.
    pub small_files: ByteSize,
    /// Tables of which at least this part is deleted are written again; `None` for none.
    pub rewrite: Option<f64>,
    /// No table's files are touched after so long.
    pub budget: Duration,
}

impl Default for MaintainConfig {
    fn default() -> Self {
        let (minute, day) = (Duration::from_secs(60), Duration::from_secs(86_400));
        Self {
            every: 15 * minute,
            keep: 7 * day,
            grace: day,
            stale: 60 * minute,
            merge: true,
            small_files: ByteSize(64_000_000),
            rewrite: Some(0.5),
            budget: 30 * minute,
        }
    }
}

/// One Postgres database.
#[derive(Clone, Debug)]
pub struct Datatable {
    /// The whole URL, secret because of its password.
    pub url: SecretString,
}

/// One object store.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    /// `s3://bucket/prefix`.
    pub url: String,
    /// The server, as `host:port`; AWS when absent.
    pub endpoint: Option<String>,
    /// The region; `us-east-1` when absent.
    pub region: Option<String>,
    /// `path` or `vhost`.
    pub url_style: Option<String>,
    /// Whether the server speaks TLS; yes when absent.
    pub use_ssl: Option<bool>,
    /// The access key.
    pub key: Option<SecretString>,
    /// The secret of the access key.
    pub secret: Option<SecretString>,
}

/// One directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Where it is.
    pub path: PathBuf,
}

/// The value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum Variable {
    /// Text.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Boolean(bool),
}

/// The kinds of event triggers that have a section for their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BrokerKind {
    /// `[kafka]`.
    Kafka,
    /// `[mqtt]`.
    Mqtt,
    /// `[nats]`.
    Nats,
    /// `[postgres]`.
    Postgres,
    /// `[sqs]`.
    Sqs,
    /// `[gcp]`.
    Gcp,
    /// `[email]`.
    Email,
    /// `[webhook]`.
    Webhook,
    /// `[schedule]`.
    Schedule,
}

/// The settings of one kind of broker. Their keys are not checked: the trigger that reads them does that.
#[derive(Clone, Debug, Default)]
pub struct Broker {
    /// Settings by key.
    pub settings: BTreeMap<String, Setting>,
}

/// One setting of a broker; text that came from the environment is secret.
#[derive(Clone, Debug)]
pub enum Setting {
    /// Text that stands in the file.
    Text(String),
    /// Text with a value from the environment.
    Secret(SecretString),
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Several.
    List(Vec<Setting>),
    /// Named ones.
    Table(BTreeMap<String, Setting>),
}

/// The packages of a project by name. Their keys are not checked: the package command does that.
pub type Packages = BTreeMap<String, Setting>;

impl BrokerKind {
    /// Every kind with the name of its section.
    pub const ALL: [(BrokerKind, &'static str); 9] = [
        (BrokerKind::Kafka, "kafka"),
        (BrokerKind::Mqtt, "mqtt"),
        (BrokerKind::Nats, "nats"),
        (BrokerKind::Postgres, "postgres"),
        (BrokerKind::Sqs, "sqs"),
        (BrokerKind::Gcp, "gcp"),
        (BrokerKind::Email, "email"),
        (BrokerKind::Webhook, "webhook"),
        (BrokerKind::Schedule, "schedule"),
    ];
}

impl Config {
    /// Returns what no file means: a lake `main` on SQLite and local files, and a store beside it.
    pub fn embedded(root: &Path) -> Self {
        let main = LakeName("main".to_owned());
        Self {
            project_name: None,
            profile: None,
            deferred: None,
            lakes: BTreeMap::from([(main.clone(), Lake::embedded(root, &main))]),
            store: StoreUrl::Sqlite { path: root.join(".pintail/store.sqlite") },
            run: RunConfig::embedded(root),
            maintain: MaintainConfig::default(),
            consumers: BTreeMap::new(),
            ingest: IngestConfig::embedded(root),
            datatables: BTreeMap::new(),
            object_stores: BTreeMap::new(),
            volumes: BTreeMap::new(),
            vars: BTreeMap::new(),
            brokers: BTreeMap::new(),
            packages: BTreeMap::new(),
            secrets: Secrets::default(),
        }
    }
}

impl Lake {
    /// Returns the lake `name` with its catalog and files below `.pintail`.
    pub fn embedded(root: &Path, name: &LakeName) -> Self {
        Self {
            catalog: Catalog::Sqlite { path: root.join(format!(".pintail/{name}.sqlite")) },
            reader: None,
            data: DataPath::Local(root.join(format!(".pintail/data/{name}"))),
        }
    }
}

impl RunConfig {
    fn embedded(root: &Path) -> Self {
        Self {
            slots: NonZeroU32::new(2).expect("two is not zero"),
            memory_limit: ByteSize(4_000_000_000),
            temp_directory: root.join(".pintail/tmp"),
            temp_limit: ByteSize(20_000_000_000),
            keep_runs: 3,
            keep_days: 3,
            timezone: Tz::UTC,
            atomic: false,
            worker: Vec::new(),
        }
    }
}
