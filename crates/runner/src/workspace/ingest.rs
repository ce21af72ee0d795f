//! `[ingest]` as it is typed: where events come in, where they wait, and where they land.
//!
//! What the settings mean is the ingest's; here are their values and defaults. Paths are below the project root, and whether
//! a file is there is asked only by who needs it: other commands of the project do without it.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintail_core::diagnostic::{Code, Diagnostic};
use pintail_core::id::LakeName;
use pintail_core::source::Span;
use secrecy::SecretString;

use super::config::DataPath;
use super::decode::CONFIG_FILE;
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
    /// Whether a client's certificate says which `source` it may send.
    pub source_from_certificate: bool,
    /// How often a client may send; as often as it likes when absent.
    pub rate_limit: Option<RateLimit>,
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
    /// Every file that must be there.
    pub files: Vec<NamedFile>,
    /// Environment variables that are not set, and that only who takes events in needs.
    pub unset: Vec<Diagnostic>,
    /// Those that also who reads large payloads needs.
    pub blobs_unset: Vec<Diagnostic>,
}

impl IngestConfig {
    /// Returns whether `address` may be listened on: one that others reach needs a guard, or a word that none is meant.
    pub fn may_listen_on(&self, address: &SocketAddr) -> bool {
        let needs_certificate = self.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        address.ip().is_loopback() || self.open || needs_certificate || !self.tokens.is_empty()
    }
}

impl IngestConfig {
    /// Returns what keeps this machine from taking events in: environment variables that are not set, and files that it does
    /// not have or may not read.
    pub fn missing(&self) -> Vec<Diagnostic> {
        let unset = self.unset.iter().chain(&self.blobs_unset).cloned();
        unset.chain(self.missing_files()).collect()
    }

    fn missing_files(&self) -> Vec<Diagnostic> {
        let finding = |named: &NamedFile| {
            let error = File::open(&named.path).and_then(|file| file.metadata()).map(|facts| facts.is_file());
            let why = match error {
                Ok(true) => return None,
                Ok(false) => "it is no file".to_owned(),
                Err(error) => error.to_string(),
            };
            let message = format!("`{}` names {}, which cannot be read: {why}", named.key, named.path.display());
            let found = Diagnostic::new(Code::INGEST_FILE, CONFIG_FILE, named.span, message);
            Some(found.with_help("paths are below the project's folder; put the file there, or name the right one"))
        };
        self.files.iter().filter_map(finding).collect()
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

/// How often a client may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// So many requests a second, for long.
    pub per_second: NonZeroU32,
    /// So many at once, after a pause.
    pub burst: NonZeroU32,
}

/// TLS towards a broker, files in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerTls {
    /// The authority of the broker's certificate; those that the system trusts when absent.
    pub ca: Option<PathBuf>,
    /// Our certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A file that `[ingest]` names, which must be there when it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The key that names it.
    pub key: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Where it is named.
    pub span: Span,
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
    /// A user and the password.
    pub user: Option<(String, SecretString)>,
    /// A file with a user's JWT and key.
    pub credentials: Option<PathBuf>,
    /// TLS; without it, what the URL says.
    pub tls: Option<BrokerTls>,
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
    /// TLS; without it, plain connections.
    pub tls: Option<BrokerTls>,
    /// Who we are.
    pub sasl: Option<SaslUser>,
}

/// A user of Kafka's brokers.
#[derive(Clone, Debug)]
pub struct SaslUser {
    /// How the password is shown: `plain`, `scram-sha-256` or `scram-sha-512`.
    pub mechanism: &'static str,
    /// The user.
    pub user: String,
    /// The password.
    pub password: SecretString,
}

/// How a password can be shown to a broker of Kafka.
pub const SASL_MECHANISMS: [&str; 3] = ["plain", "scram-sha-256", "scram-sha-512"];

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
            source_from_certificate: false,
            rate_limit: None,
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
            files: Vec::new(),
            unset: Vec::new(),
            blobs_unset: Vec::new(),
        }
    }
}
