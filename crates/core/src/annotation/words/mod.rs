//! One file per annotation word: its definition and its parser.

pub(super) mod append;
pub(super) mod column;
pub(super) mod contract;
pub(super) mod debounce;
pub(super) mod description;
pub(super) mod dimension;
pub(super) mod freshness;
pub(super) mod hooks;
pub(super) mod macros;
pub(super) mod materialize;
pub(super) mod measure;
pub(super) mod mute;
pub(super) mod on;
pub(super) mod on_schema_change;
pub(super) mod owner;
pub(super) mod partitioned;
pub(super) mod pipeline;
pub(super) mod retention;
pub(super) mod retry;
pub(super) mod stream;
pub(super) mod tag;
pub(super) mod test;
pub(super) mod timeout;
pub(super) mod trigger;
pub(super) mod unique_key;
pub(super) mod uses;
