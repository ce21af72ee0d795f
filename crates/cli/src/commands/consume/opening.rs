//! The consumers that a command means, their decoders, and the way to their lakes.

use std::sync::Arc;

use pintail_core::diagnostic::nearest;
use pintail_core::id::LakeName;
use pintail_engine::fault::Faults;
use pintail_engine::{EngineError, ErrorClass, InstanceOptions, LakeLocation};
use pintail_runner::project::Maker;
use pintail_runner::workspace::ConsumerConfig;
use pintail_runner::{Pintail, with_sources};
use pintail_streams::consumer::{PassError, Spec};
use pintail_streams::{Decoder, Writer};
use pintail_telemetry::blob::FetchedBlobs;
use pintail_telemetry::decode::{DecoderOptions, VehicleGate, decoder};
use tokio::runtime::Handle;

use super::scripts::stream_scripts;
use crate::commands::ingest::parts::blob_store;
use crate::exit::Exit;
use crate::failure::Failure;

/// One consumer, or one of its shards, ready to be opened.
pub struct Opening {
    /// How it is configured.
    pub config: ConsumerConfig,
    /// It, or its shard.
    pub spec: Spec,
    /// Its decoder.
    pub decoder: Box<dyn Decoder>,
    /// The way to its lake.
    pub way: Way,
    /// Who of this project makes its source.
    maker: Option<Maker>,
}

impl Opening {
    /// Returns what to say while its source is not there; `near` is a table that was perhaps meant.
    pub fn absence(&self, near: Option<&str>) -> String {
        let help = match (&self.maker, near) {
            (Some(Maker::Ingest), _) => "`pintail ingest` makes it".to_owned(),
            (Some(Maker::Script(name)), _) => format!("`pintail run --select {name}` makes it"),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => "nothing in this project makes it, so another program must".to_owned(),
        };
        format!("its source {} does not exist yet; {help}", self.spec.source.asset(&self.way.lake.name))
    }
}

/// The way to a lake.
pub struct Way {
    /// The lake.
    pub lake: LakeLocation,
    options: InstanceOptions,
    faults: Faults,
}

impl Way {
    /// Opens the lake, making it when it does not exist.
    pub fn writer(&self) -> Result<Writer, EngineError> {
        Writer::open(&self.lake, self.options.clone(), self.faults.clone())
    }

    /// Returns the way to the lake `name` for one of `sharing` that are open at once.
    pub fn to(pintail: &Pintail, name: &LakeName, sharing: u64) -> Result<Self, Failure> {
        let lake = pintail.lakes().get(name).cloned();
        let lake = lake.ok_or_else(|| Failure::internal(format!("lake `{name}` is not configured")))?;
        Ok(Self { lake, options: pintail.instance_options(sharing), faults: pintail.faults().clone() })
    }
}

/// Returns the consumers named `names`, all when there is none, shard by shard.
pub fn openings(pintail: &Pintail, names: &[String]) -> Result<Vec<Opening>, Failure> {
    let configured = &pintail.project().project.config.consumers;
    let scripts: Vec<String> = stream_scripts(pintail).iter().map(|script| script.name().to_string()).collect();
    for name in names {
        if !configured.contains_key(name) && !scripts.contains(name) {
            let near = nearest(name, configured.keys().chain(&scripts).map(String::as_str));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add a section `[consumer.{name}]` to pintail.toml, or a script with `-- stream`"),
            };
            return Err(Failure::usage(format!("there is no consumer `{name}`")).with_hint(hint));
        }
    }
    let is_meant = |name: &String| names.is_empty() || names.contains(name);
    let meant: Vec<&ConsumerConfig> =
        configured.iter().filter(|(name, _)| is_meant(name)).map(|(_, consumer)| consumer).collect();
    let shards: u64 = meant.iter().map(|consumer| u64::from(consumer.shards)).sum();
    let mut openings = Vec::new();
    for consumer in meant {
        let maker = pintail.project().maker_of(&consumer.asset());
        for spec in consumer.specs() {
            openings.push(Opening {
                config: consumer.clone(),
                spec,
                decoder: decoder_of(pintail, consumer)?,
                way: Way::to(pintail, &consumer.lake, shards)?,
                maker: maker.clone(),
            });
        }
    }
    Ok(openings)
}

fn decoder_of(pintail: &Pintail, consumer: &ConsumerConfig) -> Result<Box<dyn Decoder>, Failure> {
    let runtime = pintail.block_on(async { Handle::current() });
    let blobs = Arc::new(FetchedBlobs::new(blob_store(pintail)?, runtime));
    let mut options = DecoderOptions { blobs, ..DecoderOptions::default() };
    if let Some(types) = &consumer.signal_types {
        options.signal_types.clone_from(types);
    }
    if let Some(types) = &consumer.event_types {
        options.event_types.clone_from(types);
    }
    let gate = |(chain_id, contract): &(u64, String)| VehicleGate { chain_id: *chain_id, contract: contract.clone() };
    options.vehicles = consumer.vehicles.as_ref().map(gate);
    decoder(&consumer.decoder, options).map_err(|error| Failure::usage(error.to_string()))
}

/// Returns the failure of a pass, with what it says to do as a hint of its own.
pub fn failure(error: &PassError) -> Failure {
    let text = with_sources(error);
    let exit = match error.class() {
        ErrorClass::Bug => Exit::Internal,
        _ => Exit::Failed,
    };
    match text.split_once("; ") {
        Some((message, hint)) => Failure::Message { exit, message: message.to_owned(), hint: Some(hint.to_owned()) },
        None => Failure::Message { exit, message: text, hint: None },
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_decoders_that_a_configuration_may_name_are_those_that_there_are() {
        assert_eq!(pintail_core::stream::DECODERS, pintail_telemetry::decode::registry::NAMES);
    }
}
