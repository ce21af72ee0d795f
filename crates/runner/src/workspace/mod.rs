//! The project as it lies on disk: `pintail.toml` and the files of scripts, tests and macros.
//!
//! Invariant: loading never fails half way; what is wrong is a diagnostic, and everything else is there. Only the caller
//! reads the environment; here it is an argument.

mod catalog;
mod config;
mod consumer;
mod decode;
mod environment;
mod ingest;
mod load;
mod not_yet;
mod reader;
mod secrets;
mod size;
mod toml_tree;
mod variables;

pub use catalog::{Catalog, StoreUrl};
pub use config::{
    Broker, BrokerKind, Config, DataPath, Datatable, Deferred, Lake, ObjectStore, Packages, RunConfig, Setting,
    Variable, Volume,
};
pub use consumer::ConsumerConfig;
pub use decode::consumer::parse_start;
pub use decode::{CONFIG_FILE, ConfigSource, read_config};
pub use environment::Environment;
pub use ingest::{BrokerTls, IngestConfig, KafkaConfig, NatsConfig, RateLimit, SaslUser, TlsFiles};
pub use load::{Project, ScriptFile, TestFile, find_root, load_project};
pub use secrets::Secrets;
pub use size::ByteSize;
pub use variables::VariableError;
