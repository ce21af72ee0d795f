//! Files as targets: one Parquet file for the asset or for each partition, in an object store or under a volume.
//!
//! stage -> guards and tests on the stage -> a complete file beside -> published last, in one step: a rename on a volume,
//! the end of an upload in a store, which shows an object whole or not at all. The stamp is in the file's own metadata, so
//! that rows and stamp cannot part: it proves the write and rebuilds the store. A crash leaves the old file or the new one.

mod destination;
mod footer;
mod write;

pub use destination::{Destination, Found, client_of};
pub use write::write;
