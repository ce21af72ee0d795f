//! What ingest is made of, as `pintail.toml` asks for it: the lake's writer, the blob store, the policy of the sink.

use std::sync::Arc;

use pintail_engine::LakeLocation;
use pintail_runner::executors::object::client_of;
use pintail_runner::workspace::{BrokerTls, DataPath, IngestConfig, KafkaConfig, NatsConfig, SaslUser};
use pintail_runner::{Pintail, RunnerError};
use pintail_streams::Writer;
use pintail_telemetry::blob::{Blobs, KeyRing};
use pintail_telemetry::raw::RawTable;
use pintail_telemetry::sink::FlushPolicy;
use pintail_telemetry::sources::{
    ClientTls, KafkaOptions, NatsOptions, OpenLake, Sasl, SaslMechanism, SourceContext, SourceOptions,
};
use tokio::runtime::Handle;

use crate::app::App;
use crate::environment::now;
use crate::exit::Exit;
use crate::failure::Failure;

/// The settings, with the project that they stand in.
pub struct Parts<'a> {
    /// The command's own.
    pub app: &'a App,
    /// The project.
    pub pintail: &'a Pintail,
}

impl<'a> Parts<'a> {
    /// Returns `[ingest]`.
    pub fn config(&self) -> &'a IngestConfig {
        &self.pintail.project().project.config.ingest
    }

    /// Returns the lake that events go to.
    pub fn lake(&self) -> Result<&'a LakeLocation, Failure> {
        let name = &self.config().lake;
        self.pintail.lakes().get(name).ok_or_else(|| Failure::internal(format!("there is no lake `{name}`")))
    }

    /// Opens the lake for one sink of `sinks`.
    pub fn writer(&self, sinks: u64) -> Result<Writer, Failure> {
        Ok(self.open_lake(sinks)?()?)
    }

    /// Returns what opens the lake for one sink of `sinks`.
    fn open_lake(&self, sinks: u64) -> Result<OpenLake, Failure> {
        let faults = self.app.environment.faults().map_err(Failure::usage)?;
        let (lake, options) = (self.lake()?.clone(), self.pintail.instance_options(sinks));
        Ok(Arc::new(move || Writer::open(&lake, options.clone(), faults.clone())))
    }

    /// Returns the table of raw events.
    pub fn table(&self) -> RawTable {
        RawTable { schema: self.config().schema.clone(), name: self.config().table.clone() }
    }

    /// Returns when flushes are due.
    pub fn policy(&self) -> FlushPolicy {
        let config = self.config();
        let age_micros = i64::try_from(config.flush_age.as_micros()).unwrap_or(i64::MAX);
        // A log that is half full is reason enough: when it is full, nothing more is taken in.
        let bytes = config.flush_bytes.0.min(config.log_limit.0 / 2);
        FlushPolicy { rows: config.flush_rows, bytes, age_micros }
    }

    /// Returns how many sinks write the lake at once, which share the memory.
    pub fn sinks(&self) -> u64 {
        1 + self.sources().len() as u64
    }

    /// Returns what a source needs beside its broker.
    pub fn source_context(&self, runtime: Handle) -> Result<SourceContext, Failure> {
        let (lake, table, policy) = (self.open_lake(self.sinks())?, self.table(), self.policy());
        let blobs = Some(self.blobs()?);
        Ok(SourceContext { lake, table, policy, blobs, runtime, now: || now().timestamp_micros() })
    }

    /// Returns the brokers that `[ingest]` names.
    pub fn sources(&self) -> Vec<SourceOptions> {
        let config = self.config();
        let nats = config.nats.as_ref().map(|nats| SourceOptions::Nats(nats_options(nats)));
        let kafka = config.kafka.as_ref().map(|kafka| SourceOptions::Kafka(kafka_options(kafka)));
        nats.into_iter().chain(kafka).collect()
    }

    /// Returns the store of large payloads.
    pub fn blobs(&self) -> Result<Blobs, Failure> {
        blob_store(self.pintail)
    }
}

fn nats_options(nats: &NatsConfig) -> NatsOptions {
    NatsOptions {
        url: nats.url.clone(),
        token: nats.token.clone(),
        user: nats.user.clone(),
        credentials: nats.credentials.clone(),
        tls: nats.tls.as_ref().map(client_tls),
        stream: nats.stream.clone(),
        consumer: nats.consumer.clone(),
        subject: nats.subject.clone(),
        max_tries: nats.max_tries,
        ack_wait: nats.ack_wait,
    }
}

fn kafka_options(kafka: &KafkaConfig) -> KafkaOptions {
    KafkaOptions {
        brokers: kafka.brokers.clone(),
        topics: kafka.topics.clone(),
        from_start: kafka.from_start,
        tls: kafka.tls.as_ref().map(client_tls),
        sasl: kafka.sasl.as_ref().map(sasl),
    }
}

fn client_tls(tls: &BrokerTls) -> ClientTls {
    ClientTls { authority: tls.ca.clone(), identity: tls.identity.clone() }
}

fn sasl(user: &SaslUser) -> Sasl {
    let mechanism = SaslMechanism::ALL.into_iter().find(|(word, _)| *word == user.mechanism);
    let (_, mechanism) = mechanism.expect("the configuration knows the same words");
    Sasl { mechanism, user: user.user.clone(), password: user.password.clone() }
}

/// Returns the store of large payloads, as `[ingest]` names it: whoever decodes reads what ingest has written.
pub fn blob_store(pintail: &Pintail) -> Result<Blobs, Failure> {
    let project = &pintail.project().project.config;
    let config = &project.ingest;
    let bad = |error: &dyn std::error::Error| Failure::Message {
        exit: Exit::CheckErrors,
        message: format!("`[ingest.blob_keys]`: {error}"),
        hint: Some("make one by `openssl rand -base64 32`".to_owned()),
    };
    let keys = KeyRing::new(&config.blob_keys, config.blob_key.as_deref()).map_err(|error| bad(&error))?;
    let threshold = usize::try_from(config.blob_threshold.0).unwrap_or(usize::MAX);
    match &config.blobs {
        DataPath::Local(folder) => Ok(Blobs::in_folder(folder.clone(), threshold, keys)),
        DataPath::Url(url) => {
            let (store, prefix) = client_of(project, url).map_err(|failure| RunnerError::Step(Box::new(failure)))?;
            Ok(Blobs::in_store(store, &prefix, threshold, keys))
        }
    }
}
