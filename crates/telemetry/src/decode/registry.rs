//! The decoders by name, as `[consumer.<name>] decoder = "…"` gives it.

use std::fmt;
use std::sync::Arc;

use pintail_core::diagnostic::nearest;
use pintail_streams::Decoder;

use super::blobs::{Blobs, NoBlobs};
use super::cloudevents_default::{CloudEventsDefault, NAME};
use super::gate::VehicleGate;

/// The names of all decoders.
pub const NAMES: [&str; 1] = [NAME];

/// What decoders can be told.
#[derive(Clone)]
pub struct DecoderOptions {
    /// The types of events whose payload has `signals`.
    pub signal_types: Vec<String>,
    /// The types of events whose payload has `events`.
    pub event_types: Vec<String>,
    /// Which subjects have signals; all, when absent.
    pub vehicles: Option<VehicleGate>,
    /// Where large payloads lie.
    pub blobs: Arc<dyn Blobs>,
}

impl Default for DecoderOptions {
    fn default() -> Self {
        Self {
            signal_types: vec!["dimo.status".to_owned()],
            event_types: vec!["dimo.events".to_owned()],
            vehicles: None,
            blobs: Arc::new(NoBlobs),
        }
    }
}

impl fmt::Debug for DecoderOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecoderOptions")
            .field("signal_types", &self.signal_types)
            .field("event_types", &self.event_types)
            .field("vehicles", &self.vehicles)
            .finish_non_exhaustive()
    }
}

/// A name that no decoder has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown decoder `{name}`{}; there is: {}", did_you_mean(.near), NAMES.join(", "))]
pub struct UnknownDecoder {
    /// The name.
    pub name: String,
    /// The one that was perhaps meant.
    pub near: Option<&'static str>,
}

fn did_you_mean(near: &Option<&'static str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// Returns the decoder named `name`.
pub fn decoder(name: &str, options: DecoderOptions) -> Result<Box<dyn Decoder>, UnknownDecoder> {
    match name {
        NAME => Ok(Box::new(CloudEventsDefault::new(options))),
        _ => Err(UnknownDecoder { name: name.to_owned(), near: nearest(name, NAMES) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_its_decoder_and_a_slip_to_the_near_one() {
        for name in NAMES {
            assert_eq!(
                decoder(name, DecoderOptions::default()).ok().map(|found| found.name().to_owned()),
                Some(name.to_owned())
            );
        }
        let error = decoder("cloudevent-default", DecoderOptions::default()).err().unwrap();
        assert_eq!(
            error.to_string(),
            "unknown decoder `cloudevent-default`; did you mean `cloudevents-default`?; there is: cloudevents-default"
        );
    }
}
