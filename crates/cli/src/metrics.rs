//! Metrics at an address, for commands that go on and on. What is counted is said where it happens.

use std::net::SocketAddr;

use metrics_exporter_prometheus::PrometheusBuilder;
use pintail_runner::with_sources;

use crate::failure::Failure;

/// Shows what is counted from now on at `address`, when one is given, in Prometheus form.
pub fn show_at(address: Option<SocketAddr>) -> Result<(), Failure> {
    let Some(address) = address else { return Ok(()) };
    let listening = PrometheusBuilder::new().with_http_listener(address).install();
    listening.map_err(|error| Failure::usage(format!("`--metrics {address}`: {}", with_sources(&error))))
}
