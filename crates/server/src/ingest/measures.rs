//! What HTTP ingest measures, in words, for whoever shows it. Names are counted where it happens.

use metrics::{describe_counter, describe_histogram};

/// Says what each of the metrics is, to the recorder that is installed.
pub fn describe() {
    describe_counter!("pintail_ingest_events_total", "Events that were accepted");
    describe_counter!("pintail_ingest_bad_elements_total", "Elements of batches that went to the dead letters");
    describe_counter!("pintail_ingest_bytes_total", "Bytes of accepted bodies, unpacked");
    describe_histogram!("pintail_ingest_request_seconds", "From an accepted request to its answer");
    describe_counter!("pintail_ingest_refused_total", "Requests that were not accepted, by reason");
}
