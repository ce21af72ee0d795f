//! Datatables: tables of Postgres databases, written in one Postgres transaction and read by the engine.
//!
//! stage -> guards -> transaction (copy, lock, check, shape, delete, insert, tests, stamp, COMMIT) -> look-up. The stamp is
//! a row of `pintail.stamp` in the same transaction: it proves the write, tells concurrent writers, and rebuilds the store.
//! Rows travel as binary COPY, which is exact for every type and as fast as the server can take it. There are no versions
//! to read back: who needs them writes a lake table.

mod connection;
mod encode;
mod failure;
mod home;
mod native;
mod reads;
mod shape;
mod staged;
mod tests;
mod write;

pub use connection::Postgres;
pub use home::{Head, Stamp};
pub use native::try_native;
pub use reads::{attach, attach_reads, read_alias};
pub use shape::{Described, describe};
pub use staged::try_staged;
