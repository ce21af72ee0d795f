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

/// Reads an address to listen on.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| match text.trim_start_matches(':').parse::<u16>() {
        Ok(port) => format!("an address and a port are expected; did you mean `127.0.0.1:{port}`?"),
        Err(_) => "an address and a port are expected, such as `127.0.0.1:9464`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_told_a_right_one() {
        assert_eq!(address("[::1]:9464"), Ok("[::1]:9464".parse().unwrap()));
        for (text, expected) in
            [("9464", "`127.0.0.1:9464`?"), (":9464", "`127.0.0.1:9464`?"), ("localhost", "such as")]
        {
            let told = address(text).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
