//! `[ingest]`: read, and held against what goes together. The brokers that it reads are in [`sources`].

mod sources;

use std::net::SocketAddr;
use std::path::PathBuf;

use pintail_core::diagnostic::{Code, Diagnostic, nearest};
use pintail_core::id::LakeName;
use pintail_core::source::Span;
use secrecy::SecretString;

use super::{Decoder, Table, quoted_list};
use crate::workspace::config::{Config, DataPath};
use crate::workspace::ingest::{IngestConfig, NamedFile, RateLimit, TlsFiles};
use crate::workspace::reader::{Mode, Resolved};

const KEYS: [&str; 23] = [
    "lake",
    "table",
    "listen",
    "tokens",
    "open",
    "certificate",
    "key",
    "client_ca",
    "source_from_certificate",
    "rate_limit",
    "rate_burst",
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

impl Decoder<'_> {
    /// Reads `[ingest]`; the lakes of `config` are known.
    pub(super) fn ingest(&mut self, table: &Table, config: &mut Config) {
        let Some(node) = table.get("ingest") else { return };
        let span = node.key;
        let Some(table) = self.reader.table(table, "ingest") else { return };
        self.reader.deny_unknown(table, "[ingest]", &KEYS);
        let mut ingest = config.ingest.clone();
        self.ingest_table(table, config, &mut ingest);
        ingest.unset = self.for_who_needs_it(&mut ingest, |this, ingest| {
            this.ingest_http(table, span, ingest);
            this.ingest_waiting(table, ingest);
            ingest.nats = this.nats(table, &mut ingest.files);
            ingest.kafka = this.kafka(table, &mut ingest.files);
        });
        ingest.blobs_unset = self.for_who_needs_it(&mut ingest, |this, ingest| this.ingest_blobs(table, ingest));
        config.ingest = ingest;
    }

    /// Reads a part of `[ingest]` that most commands do without, and returns the findings about variables that are not set, for
    /// those that need it: who runs pipelines need not know the secrets of who takes events in.
    fn for_who_needs_it(
        &mut self,
        ingest: &mut IngestConfig,
        read: impl Fn(&mut Self, &mut IngestConfig),
    ) -> Vec<Diagnostic> {
        let before = self.reader.take_findings();
        let mut found = ingest.clone();
        read(self, &mut found);
        let (unset, others): (Vec<Diagnostic>, Vec<Diagnostic>) =
            self.reader.take_findings().into_iter().partition(|finding| finding.code == Code::VARIABLE_NOT_SET);
        before.into_iter().for_each(|finding| self.reader.note(finding));
        if unset.is_empty() {
            others.into_iter().for_each(|finding| self.reader.note(finding));
            *ingest = found;
        } else {
            // What else was said may come from a value that is missing. The form can be looked at without it.
            let mode = std::mem::replace(&mut self.reader.mode, Mode::Check);
            read(self, &mut ingest.clone());
            self.reader.mode = mode;
        }
        unset
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
        ingest.tls = self.tls(table, &mut ingest.files);
        ingest.source_from_certificate = self.source_from_certificate(table, ingest.tls.as_ref());
        ingest.rate_limit = self.rate_limit(table);
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
        self.deny_empty("tokens", token, "who sends no token would be let in");
        self.reader.secrets.wrap(&token.value)
    }

    /// Notes a text that is empty, such as a variable of the environment that is set to nothing.
    fn deny_empty(&mut self, key: &str, found: &Resolved, help: &str) {
        if found.value.trim().is_empty() {
            self.reader.report(Code::BAD_SETTING, found.span, format!("`{key}` must not be empty"), help);
        }
    }

    fn tls(&mut self, table: &Table, files: &mut Vec<NamedFile>) -> Option<TlsFiles> {
        let identity = self.identity(table, files);
        let client_ca = self.named_file(table, "client_ca", files);
        match (identity, client_ca) {
            (Some((certificate, key)), client_ca) => Some(TlsFiles { certificate, key, client_ca }),
            (None, Some(_)) if self.reader.mode == Mode::Resolve && !has_any(table, &["certificate", "key"]) => {
                let span = table.get("client_ca")?.span;
                let message = "`client_ca` needs a `certificate` and its `key`: only TLS asks for certificates";
                self.reader.report(Code::BAD_SETTING, span, message, "name the files of both, in PEM");
                None
            }
            _ => None,
        }
    }

    /// Reads `certificate` and `key`, of which none has a meaning alone.
    fn identity(&mut self, table: &Table, files: &mut Vec<NamedFile>) -> Option<(PathBuf, PathBuf)> {
        let certificate = self.named_file(table, "certificate", files);
        let key = self.named_file(table, "key", files);
        self.both_or_none(table, "certificate", "key", "name the files of both, in PEM");
        certificate.zip(key)
    }

    /// Notes the one of two keys that stands without the other.
    fn both_or_none(&mut self, table: &Table, first: &str, second: &str, help: &str) {
        let alone = match (table.get(first), table.get(second)) {
            (Some(alone), None) | (None, Some(alone)) => alone,
            _ => return,
        };
        // An overlay may leave the other to its base.
        if self.reader.mode == Mode::Resolve {
            let message = format!("`{first}` and `{second}` go together");
            self.reader.report(Code::BAD_SETTING, alone.span, message, help);
        }
    }

    fn named_file(&mut self, table: &Table, key: &'static str, files: &mut Vec<NamedFile>) -> Option<PathBuf> {
        let text = self.reader.text(table, key)?;
        self.deny_empty(key, &text, "name a file");
        let path = self.root.join(&text.value);
        files.push(NamedFile { key, path: path.clone(), span: text.span });
        Some(path)
    }

    fn source_from_certificate(&mut self, table: &Table, tls: Option<&TlsFiles>) -> bool {
        const KEY: &str = "source_from_certificate";
        let is_asked = self.reader.boolean(table, KEY).unwrap_or(false);
        let shows_certificates = tls.is_some_and(|tls| tls.client_ca.is_some());
        if let Some(node) =
            table.get(KEY).filter(|_| is_asked && !shows_certificates && self.reader.mode == Mode::Resolve)
        {
            let message = format!("`{KEY}` needs `client_ca`: otherwise clients show no certificate");
            let help = "name the authority of the clients' certificates as `client_ca`";
            self.reader.report(Code::BAD_SETTING, node.span, message, help);
        }
        is_asked
    }

    fn rate_limit(&mut self, table: &Table) -> Option<RateLimit> {
        let per_second = self.reader.positive(table, "rate_limit");
        let burst = self.reader.positive(table, "rate_burst");
        if let (None, Some(node), Mode::Resolve) = (table.get("rate_limit"), table.get("rate_burst"), self.reader.mode)
        {
            let message = "`rate_burst` has no meaning without `rate_limit`";
            self.reader.report(
                Code::BAD_SETTING,
                node.span,
                message,
                "add `rate_limit`, requests of a client a second",
            );
        }
        per_second.map(|per_second| RateLimit { per_second, burst: burst.unwrap_or(per_second) })
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
}

fn has_any(table: &Table, keys: &[&str]) -> bool {
    keys.iter().any(|key| table.contains_key(*key))
}
