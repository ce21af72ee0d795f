//! `[ingest.nats]` and `[ingest.kafka]`: which broker is read, who we are there, and whom we trust.

use std::path::PathBuf;
use std::time::Duration;

use pintail_core::diagnostic::{Code, nearest};
use pintail_core::source::Span;
use secrecy::SecretString;

use super::super::{Decoder, Table, quoted_list};
use super::has_any;
use crate::workspace::ingest::{BrokerTls, KafkaConfig, NamedFile, NatsConfig, SASL_MECHANISMS, SaslUser};
use crate::workspace::reader::{Mode, Resolved};

const NATS_KEYS: [&str; 14] = [
    "url",
    "stream",
    "consumer",
    "subject",
    "token",
    "user",
    "password",
    "credentials",
    "tls",
    "ca",
    "certificate",
    "key",
    "max_tries",
    "ack_wait",
];

const KAFKA_KEYS: [&str; 10] =
    ["brokers", "topics", "from", "tls", "ca", "certificate", "key", "sasl", "user", "password"];

/// What says to a NATS server who we are; one of them is enough.
const NATS_LOGINS: [&str; 3] = ["token", "user", "credentials"];

impl Decoder<'_> {
    pub(super) fn nats(&mut self, table: &Table, files: &mut Vec<NamedFile>) -> Option<NatsConfig> {
        let node = table.get("nats")?.key;
        let table = self.reader.table(table, "nats")?;
        self.reader.deny_unknown(table, "[ingest.nats]", &NATS_KEYS);
        let url = self.nats_url(table);
        self.required(table, "ingest", "nats", node, "stream");
        let stream = self.nats_name(table, "stream");
        let consumer = self.nats_name(table, "consumer").unwrap_or_else(|| "pintail".to_owned());
        let subject = self.filled(table, "subject").map(|text| text.value);
        let token = self.filled_secret(table, "token");
        let user = self.user(table);
        let credentials = self.named_file(table, "credentials", files);
        self.one_login(table);
        let tls = self.broker_tls(table, files);
        let max_tries = self.reader.positive(table, "max_tries").map_or(10, |tries| tries.get());
        let ack_wait = self.some_time(table, "ack_wait", "the server delivers again what has not landed");
        let ack_wait = ack_wait.unwrap_or(Duration::from_secs(60));
        Some(NatsConfig { url, stream: stream?, consumer, subject, token, user, credentials, tls, max_tries, ack_wait })
    }

    fn nats_url(&mut self, table: &Table) -> SecretString {
        let Some(url) = self.filled(table, "url") else { return SecretString::from("nats://127.0.0.1:4222") };
        if !url.from_environment && url.value.contains('@') {
            self.reader.literal_secret("url", url.span);
            return SecretString::from(url.value);
        }
        for server in url.value.split(',') {
            let (scheme, rest) = server.trim().split_once("://").unwrap_or(("nats", server.trim()));
            if !matches!(scheme, "nats" | "tls") || rest.is_empty() {
                let help = "such as `nats://127.0.0.1:4222` or `tls://nats.example.com:4222`";
                self.reader.bad_value("url", &url, "servers of NATS, separated by commas", help);
                break;
            }
        }
        match url.from_environment {
            true => self.reader.secrets.wrap(&url.value),
            false => SecretString::from(url.value),
        }
    }

    /// Reads the name of a stream or consumer.
    fn nats_name(&mut self, table: &Table, key: &str) -> Option<String> {
        let text = self.filled(table, key)?;
        if text.value.contains(|c: char| c.is_whitespace() || matches!(c, '.' | '*' | '>' | '/' | '\\')) {
            self.reader.bad_value(key, &text, "a name without spaces and `. * > / \\`", "");
        }
        Some(text.value)
    }

    fn one_login(&mut self, table: &Table) {
        let given: Vec<&str> = NATS_LOGINS.into_iter().filter(|key| table.contains_key(*key)).collect();
        if let [first, second, ..] = given.as_slice()
            && let Some(node) = table.get(*second)
        {
            let message = format!("`{first}` and `{second}` both say who Pintail is");
            self.reader.report(Code::BAD_SETTING, node.span, message, "keep the one that the server asks for");
        }
    }

    pub(super) fn kafka(&mut self, table: &Table, files: &mut Vec<NamedFile>) -> Option<KafkaConfig> {
        let node = table.get("kafka")?.key;
        let table = self.reader.table(table, "kafka")?;
        self.reader.deny_unknown(table, "[ingest.kafka]", &KAFKA_KEYS);
        let brokers = self.list(table, node, "brokers", "such as `brokers = [\"127.0.0.1:9092\"]`");
        for broker in brokers.iter().flatten() {
            let port = broker.value.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains("://"));
            if port.is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
                self.reader.bad_value(
                    "brokers",
                    broker,
                    "`host:port`, without a scheme",
                    "such as `kafka.example.com:9092`",
                );
            }
        }
        let topics = self.list(table, node, "topics", "such as `topics = [\"events\"]`");
        for topic in topics.iter().flatten() {
            self.deny_empty("topics", topic, "name a topic");
        }
        let from_start = self.begins_at_start(table);
        let tls = self.broker_tls(table, files);
        let sasl = self.sasl(table, tls.is_some());
        let values = |texts: Option<Vec<Resolved>>| {
            texts.map(|texts| texts.into_iter().map(|text| text.value).collect::<Vec<_>>())
        };
        Some(KafkaConfig { brokers: values(brokers)?, topics: values(topics)?, from_start, tls, sasl })
    }

    /// Reads a list that must not be empty.
    fn list(&mut self, table: &Table, node: Span, key: &str, help: &str) -> Option<Vec<Resolved>> {
        let texts = self.reader.texts(table, key);
        if self.reader.mode == Mode::Resolve && texts.as_ref().is_none_or(Vec::is_empty) {
            self.reader.report(Code::BAD_SETTING, node, format!("`[ingest.kafka]` needs `{key}`"), help);
        }
        texts
    }

    fn begins_at_start(&mut self, table: &Table) -> bool {
        let Some(text) = self.reader.text(table, "from") else { return true };
        if !matches!(text.value.as_str(), "start" | "end") {
            self.reader.bad_value("from", &text, "`start` or `end`", "");
        }
        text.value != "end"
    }

    fn sasl(&mut self, table: &Table, is_private: bool) -> Option<SaslUser> {
        let mechanism = self.reader.text(table, "sasl");
        let user = self.user(table);
        let Some(mechanism) = mechanism else {
            if let Some(node) = table.get("user").filter(|_| self.reader.mode == Mode::Resolve) {
                let message = "`user` needs `sasl`, which says how the password is shown";
                self.reader.report(Code::BAD_SETTING, node.span, message, format!("one of {}", words()));
            }
            return None;
        };
        let Some(known) = SASL_MECHANISMS.into_iter().find(|known| *known == mechanism.value) else {
            let near = nearest(&mechanism.value, SASL_MECHANISMS);
            let help = near.map_or_else(String::new, |near| format!("did you mean `{near}`?"));
            self.reader.bad_value("sasl", &mechanism, &format!("one of {}", words()), &help);
            return None;
        };
        if known == "plain" && !is_private && self.reader.mode == Mode::Resolve {
            let message = "`sasl = \"plain\"` without TLS shows the password to everybody on the way";
            self.reader.report(Code::BAD_SETTING, mechanism.span, message, "add `tls = true`, or use `scram-sha-512`");
        }
        if !has_any(table, &["user", "password"]) && self.reader.mode == Mode::Resolve {
            let message = "`sasl` needs a `user` and the `password`";
            self.reader.report(Code::BAD_SETTING, mechanism.span, message, "`password = \"${NAME}\"`");
        }
        let (user, password) = user?;
        Some(SaslUser { mechanism: known, user, password })
    }

    /// Reads `user` and `password`, of which none has a meaning alone.
    fn user(&mut self, table: &Table) -> Option<(String, SecretString)> {
        let user = self.filled(table, "user").map(|text| text.value);
        let password = self.filled_secret(table, "password");
        self.both_or_none(table, "user", "password", "`password = \"${NAME}\"` takes it from the environment");
        user.zip(password)
    }

    fn broker_tls(&mut self, table: &Table, files: &mut Vec<NamedFile>) -> Option<BrokerTls> {
        const FILES: [&str; 3] = ["ca", "certificate", "key"];
        let is_on = self.reader.boolean(table, "tls");
        let ca: Option<PathBuf> = self.named_file(table, "ca", files);
        let identity = self.identity(table, files);
        if is_on == Some(false)
            && let Some(node) = FILES.into_iter().find_map(|key| table.get(key))
        {
            let message = "files of TLS are named, and `tls` says that there is none";
            self.reader.report(Code::BAD_SETTING, node.span, message, "remove one of the two");
        }
        let is_named = has_any(table, &FILES);
        (is_on.unwrap_or(is_named)).then_some(BrokerTls { ca, identity })
    }

    fn filled(&mut self, table: &Table, key: &str) -> Option<Resolved> {
        let text = self.reader.text(table, key)?;
        self.deny_empty(key, &text, "remove it, or say which");
        Some(text)
    }

    fn filled_secret(&mut self, table: &Table, key: &str) -> Option<SecretString> {
        let secret = self.reader.secret(table, key)?;
        if let Some(text) = self.reader.text(table, key) {
            self.deny_empty(key, &text, "set the environment variable, or remove the line");
        }
        Some(secret)
    }
}

fn words() -> String {
    quoted_list(&SASL_MECHANISMS)
}
