//! `[ingest]` as it is typed: where events come in, where they wait, and where they land.
//!
//! What the settings mean is the ingest's; here are their values and defaults. Paths are below the project root.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintail_core::id::LakeName;
use secrecy::SecretString;

use super::config::DataPath;
use super::size::ByteSize;

/// How events are taken in.
#[derive(Clone, Debug)]
pub struct IngestConfig {
    /// The lake.
    pub lake: LakeName,
    /// The schema of the table of raw events.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Where HTTP is listened on.
    pub listen: SocketAddr,
    /// Whether everybody may send from anywhere, as `open` says.
    pub open: bool,
    /// Who may send; everybody when there are none and clients need no certificate.
    pub tokens: Vec<SecretString>,
    /// TLS, when there is a certificate.
    pub tls: Option<TlsFiles>,
    /// The largest request.
    pub body_limit: ByteSize,
    /// The file of the write-ahead log.
    pub log: PathBuf,
    /// So much may wait for the lake.
    pub log_limit: ByteSize,
    /// A flush is due at so many rows,
    pub flush_rows: u64,
    /// at so many bytes,
    pub flush_bytes: ByteSize,
    /// or when the oldest event has waited so long.
    pub flush_age: Duration,
    /// Where large payloads go.
    pub blobs: DataPath,
    /// Larger ones than this.
    pub blob_threshold: ByteSize,
    /// The key by which new payloads are sealed, one of `blob_keys`.
    pub blob_key: Option<String>,
    /// Keys by id, base64 of 32 bytes.
    pub blob_keys: BTreeMap<String, SecretString>,
    /// NATS JetStream as a source.
    pub nats: Option<NatsConfig>,
    /// Kafka as a source.
    pub kafka: Option<KafkaConfig>,
}

impl IngestConfig {
    /// Returns whether `address` may be listened on: one that others reach needs a guard, or a word that none is meant.
    pub fn may_listen_on(&self, address: &SocketAddr) -> bool {
        let needs_certificate = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        address.ip().is_loopback() || self.open || needs_certificate || !self.tokens.is_empty()
    }
}

/// Files of TLS, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authority of clients' certificates.
    pub client_ca: Option<PathBuf>,
}

/// A stream of NATS JetStream.
#[derive(Clone, Debug)]
pub struct NatsConfig {
    /// The servers; secret, since it may hold a password.
    pub url: SecretString,
    /// The stream.
    pub stream: String,
    /// The durable consumer's name.
    pub consumer: String,
    /// Only these subjects.
    pub subject: Option<String>,
    /// A token for the server.
    pub token: Option<SecretString>,
    /// A message that is delivered more often than this without landing is a dead letter.
    pub max_tries: u32,
    /// After so long the server delivers again what has not landed.
    pub ack_wait: Duration,
}

/// Topics of Kafka.
#[derive(Clone, Debug)]
pub struct KafkaConfig {
    /// Servers as `host:port`.
    pub brokers: Vec<String>,
    /// The topics.
    pub topics: Vec<String>,
    /// Where a partition begins that the lake knows nothing of: at its first message, or at those that are new.
    pub from_start: bool,
}

impl IngestConfig {
    pub(super) fn embedded(root: &Path) -> Self {
        Self {
            lake: LakeName("main".to_owned()),
            schema: "main".to_owned(),
            table: "raw_events".to_owned(),
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            open: false,
            tokens: Vec::new(),
            tls: None,
            body_limit: ByteSize(32 << 20),
            log: root.join(".pintail/ingest/log.sqlite"),
            log_limit: ByteSize(1 << 30),
            flush_rows: 100_000,
            flush_bytes: ByteSize(64 << 20),
            flush_age: Duration::from_secs(5),
            blobs: DataPath::Local(root.join(".pintail/blobs")),
            blob_threshold: ByteSize(1 << 20),
            blob_key: None,
            blob_keys: BTreeMap::new(),
            nats: None,
            kafka: None,
        }
    }
}
