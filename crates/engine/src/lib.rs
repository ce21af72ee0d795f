//! The only crate that links DuckDB: it opens instances, attaches lakes, parses bodies, and commits.
//!
//! Invariant: the engine knows lakes, statements, windows and stamps, never a plan. A lake's SQLite catalog is opened by
//! DuckDB only; the guard beside it by sqlx only; a Postgres catalog's tables are written by DuckDB only. Every error's class is decided in [`classify`], the one place that
//! matches on the engine's texts.

mod bare;
pub mod batches;
pub mod classify;
pub mod error;
pub mod fault;
pub mod guard;
pub mod instance;
pub mod lake;
pub mod lane;
pub mod native;
pub mod object_store;
pub mod parse;
pub mod postgres;
pub mod redact;
pub mod result;
pub mod session;
pub mod transaction;

pub use batches::Stage;
pub use classify::ErrorClass;
pub use error::EngineError;
pub use instance::{Instance, InstanceOptions};
pub use lake::{Catalog, LakeLocation};
pub use object_store::ObjectStore;
pub use postgres::PostgresLocation;
pub use redact::Redactor;
pub use session::Session;
pub use transaction::WriteTransaction;
