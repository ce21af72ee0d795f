//! HTTP ingest as clients meet it: over a socket, with and without TLS, into a real log.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod harness;
mod requests;
mod tls;
