//! Decoders: raw events into the rows of `signals` and `events`.
//!
//! Invariant: a decoder is pure but for fetching blobs, keeps every part that is good, and says of every other part why
//! it is not, with its bytes. The decoders are listed in [`registry`]; each is a module of its own.
//!
//! Redeliveries are not looked for here: the identity of the rows decides about them, without a limit of time.

pub mod blobs;
pub mod cloudevents_default;
pub mod event;
pub mod event_names;
pub mod fault;
pub mod gate;
pub mod json;
pub mod location;
pub mod near;
pub mod registry;
pub mod rows;
pub mod signal;
pub mod tables;
pub mod time;
pub mod vss;

pub use blobs::{Blobs, Fetched, NoBlobs};
pub use cloudevents_default::CloudEventsDefault;
pub use gate::VehicleGate;
pub use registry::{DecoderOptions, UnknownDecoder, decoder};
