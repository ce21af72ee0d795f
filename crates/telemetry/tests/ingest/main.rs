//! Ingest on real lakes: SQLite and Postgres catalogs, local files and S3, crashes between any two steps.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blobs;
mod harness;
mod imports;
mod layout;
mod letters;
mod sink;
mod sink_on_s3;
mod sources;
