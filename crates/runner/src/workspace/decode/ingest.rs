//! `[ingest]`, `[ingest.nats]` and `[ingest.kafka]`: read, and held against what goes together.

use std::net::SocketAddr;
use std::time::Duration;

use pintail_core::diagnostic::{Code, nearest};
use pintail_core::id::LakeName;
use pintail_core::source::Span;
use secrecy::SecretString;

use super::{Decoder, Table, quoted_list};
use crate::workspace::config::{Config, DataPath};
use crate::workspace::ingest::{IngestConfig, KafkaConfig, NatsConfig, TlsFiles};
use crate::workspace::reader::{Mode, Resolved};

const KEYS: [&str; 20] = [
    "lake",
    "table",
    "listen",
    "tokens",
    "open",
    "certificate",
    "key",
    "client_ca",
    "body_limit",
    "log",
    "log_limit",
    "flush_rows",
    "flush_bytes",
    "flush_age",
    "blobs",
    "blob_threshold",
    "blob_key",
    "blob_keys",
    "nats",
    "kafka",
];

const NATS_KEYS: [&str; 7] = ["url", "stream", "consumer", "subject", "token", "max_tries", "ack_wait"];

const KAFKA_KEYS: [&str; 3] = ["brokers", "topics", "from"];

impl Decoder<'_> {
    /// Reads `[ingest]`; the lakes of `config` are known.
    pub(super) fn ingest(&mut self, table: &Table, config: &mut Config) {
        let Some(node) = table.get("ingest") else { return };
        let span = node.key;
        let Some(table) = self.reader.table(table, "ingest") else { return };
        self.reader.deny_unknown(table, "[ingest]", &KEYS);
        let mut ingest = config.ingest.clone();
        self.ingest_table(table, config, &mut ingest);
        self.ingest_http(table, span, &mut ingest);
        self.ingest_waiting(table, &mut ingest);
        self.ingest_blobs(table, &mut ingest);
        ingest.nats = self.nats(table);
        ingest.kafka = self.kafka(table);
        config.ingest = ingest;
    }

    fn ingest_table(&mut self, table: &Table, config: &Config, ingest: &mut IngestConfig) {
        if let Some(lake) = self.reader.text(table, "lake") {
            let name = LakeName(lake.value.clone());
            if config.lakes.contains_key(&name) {
                ingest.lake = name;
            } else {
                let known: Vec<&str> = config.lakes.keys().map(LakeName::as_str).collect();
                let help = match nearest(&lake.value, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("there are {}", quoted_list(&known)),
                };
                self.reader.bad_value("lake", &lake, "one of the lakes", &help);
            }
        }
        let Some(name) = self.reader.text(table, "table") else { return };
        match name.value.split('.').collect::<Vec<_>>().as_slice() {
            [table] if !table.is_empty() => (*table).clone_into(&mut ingest.table),
            [schema, table] if !schema.is_empty() && !table.is_empty() => {
                (*schema).clone_into(&mut ingest.schema);
                (*table).clone_into(&mut ingest.table);
            }
            _ => self.reader.bad_value("table", &name, "a table", "such as `raw_events` or `telemetry.raw_events`"),
        }
    }

    fn ingest_http(&mut self, table: &Table, span: Span, ingest: &mut IngestConfig) {
        if let Some(listen) = self.reader.text(table, "listen") {
            match listen.value.parse::<SocketAddr>() {
                Ok(address) => ingest.listen = address,
                Err(_) => self.reader.bad_value("listen", &listen, "an address and a port", "such as `127.0.0.1:8080`"),
            }
        }
        if let Some(tokens) = self.reader.texts(table, "tokens") {
            ingest.tokens = tokens.iter().map(|token| self.token(token)).collect();
        }
        ingest.tls = self.tls(table);
        ingest.body_limit = self.size(table, "body_limit").unwrap_or(ingest.body_limit);
        ingest.open = self.reader.boolean(table, "open").unwrap_or(false);
        let is_used = self.reader.mode == Mode::Resolve;
        if is_used && !ingest.may_listen_on(&ingest.listen) {
            let message = format!("ingest would listen on {} and take events from anybody", ingest.listen);
            let help = "add `tokens = [\"${INGEST_TOKEN}\"]` or a `client_ca`; `open = true` says that it is meant";
            self.reader.report(Code::OPEN_INGEST, span, message, help);
        }
    }

    fn token(&mut self, token: &Resolved) -> SecretString {
        if !token.from_environment {
            self.reader.literal_secret("tokens", token.span);
        }
        self.reader.secrets.wrap(&token.value)
    }

    fn tls(&mut self, table: &Table) -> Option<TlsFiles> {
        let texts = ["certificate", "key", "client_ca"].map(|key| self.reader.text(table, key));
        let path = |text: &Resolved| self.root.join(&text.value);
        match &texts {
            [Some(certificate), Some(key), client_ca] => Some(TlsFiles {
                certificate: path(certificate),
                key: path(key),
                client_ca: client_ca.as_ref().map(path),
            }),
            [None, None, None] => None,
            // An overlay may leave the other to its base.
            _ if self.reader.mode == Mode::Check => None,
            [Some(alone), None, _] | [None, Some(alone), _] | [None, None, Some(alone)] => {
                let message = "TLS needs both `certificate` and `key`";
                self.reader.report(Code::BAD_SETTING, alone.span, message, "name the files of both, in PEM");
                None
            }
        }
    }

    fn ingest_waiting(&mut self, table: &Table, ingest: &mut IngestConfig) {
        if let Some(log) = self.reader.text(table, "log") {
            ingest.log = self.root.join(log.value);
        }
        ingest.log_limit = self.size(table, "log_limit").unwrap_or(ingest.log_limit);
        if let Some(rows) = self.reader.positive(table, "flush_rows") {
            ingest.flush_rows = u64::from(rows.get());
        }
        ingest.flush_bytes = self.size(table, "flush_bytes").unwrap_or(ingest.flush_bytes);
        ingest.flush_age = self.duration(table, "flush_age").unwrap_or(ingest.flush_age);
        if ingest.log_limit < ingest.body_limit
            && let Some(text) = self.reader.text(table, "log_limit").or_else(|| self.reader.text(table, "body_limit"))
        {
            let help = "a request of the largest size must fit into the log";
            self.reader.bad_value("log_limit", &text, "at least as much as `body_limit`", help);
        }
    }

    fn ingest_blobs(&mut self, table: &Table, ingest: &mut IngestConfig) {
        if let Some(blobs) = self.reader.text(table, "blobs") {
            let is_url = blobs.value.contains("://");
            if is_url && !blobs.value.starts_with("s3://") {
                self.reader.bad_value("blobs", &blobs, "a folder or `s3://bucket/prefix`", "");
            }
            ingest.blobs =
                if is_url { DataPath::Url(blobs.value) } else { DataPath::Local(self.root.join(blobs.value)) };
        }
        ingest.blob_threshold = self.size(table, "blob_threshold").unwrap_or(ingest.blob_threshold);
        if let Some(keys) = self.reader.table(table, "blob_keys") {
            for id in keys.keys() {
                if let Some(key) = self.reader.secret(keys, id) {
                    ingest.blob_keys.insert(id.clone(), key);
                }
            }
        }
        let Some(current) = self.reader.text(table, "blob_key") else { return };
        match ingest.blob_keys.contains_key(&current.value) || self.reader.mode == Mode::Check {
            true => ingest.blob_key = Some(current.value),
            false => {
                let help = "add it under `[ingest.blob_keys]`, as base64 of 32 bytes from the environment";
                self.reader.bad_value("blob_key", &current, "the id of one of `blob_keys`", help);
            }
        }
    }

    fn nats(&mut self, table: &Table) -> Option<NatsConfig> {
        let node = table.get("nats")?.key;
        let table = self.reader.table(table, "nats")?;
        self.reader.deny_unknown(table, "[ingest.nats]", &NATS_KEYS);
        let url = self.reader.text(table, "url");
        let stream = self.required(table, "ingest", "nats", node, "stream").map(|text| text.value);
        let text = |decoder: &mut Self, key| decoder.reader.text(table, key).map(|text| text.value);
        let consumer = text(self, "consumer").unwrap_or_else(|| "pintail".to_owned());
        let subject = text(self, "subject");
        let token = self.reader.secret(table, "token");
        let max_tries = self.reader.positive(table, "max_tries").map_or(10, |tries| tries.get());
        let ack_wait = self.duration(table, "ack_wait").unwrap_or(Duration::from_secs(60));
        let url = match url {
            Some(url) if url.from_environment => self.reader.secrets.wrap(&url.value),
            Some(url) => SecretString::from(url.value),
            None => SecretString::from("nats://127.0.0.1:4222"),
        };
        Some(NatsConfig { url, stream: stream?, consumer, subject, token, max_tries, ack_wait })
    }

    fn kafka(&mut self, table: &Table) -> Option<KafkaConfig> {
        let node = table.get("kafka")?.key;
        let table = self.reader.table(table, "kafka")?;
        self.reader.deny_unknown(table, "[ingest.kafka]", &KAFKA_KEYS);
        let mut list = |key: &str, help: &str| {
            let texts = self.reader.texts(table, key);
            if self.reader.mode == Mode::Resolve && texts.as_ref().is_none_or(Vec::is_empty) {
                self.reader.report(Code::BAD_SETTING, node, format!("`[ingest.kafka]` needs `{key}`"), help);
            }
            texts.map(|texts| texts.into_iter().map(|text| text.value).collect::<Vec<_>>())
        };
        let brokers = list("brokers", "such as `brokers = [\"127.0.0.1:9092\"]`");
        let topics = list("topics", "such as `topics = [\"events\"]`");
        let from_start = match self.reader.text(table, "from") {
            None => true,
            Some(text) => {
                if !matches!(text.value.as_str(), "start" | "end") {
                    self.reader.bad_value("from", &text, "`start` or `end`", "");
                }
                text.value != "end"
            }
        };
        Some(KafkaConfig { brokers: brokers?, topics: topics?, from_start })
    }
}
