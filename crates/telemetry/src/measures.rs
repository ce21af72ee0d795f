//! What this crate measures, in words, for whoever shows it. Names are counted where it happens.

use metrics::{describe_counter, describe_gauge, describe_histogram};

/// Says what each of the metrics is, to the recorder that is installed.
pub fn describe() {
    describe_counter!("pintail_ingest_blobs_total", "Payloads that went to the blob store");
    describe_gauge!("pintail_ingest_log_bytes", "Bytes that wait for the lake");
    describe_counter!("pintail_ingest_log_commits_total", "Groups of requests that shared an fsync");
    describe_histogram!("pintail_ingest_log_commit_seconds", "How long a group of requests took to be on disk");
    describe_counter!("pintail_ingest_log_errors_total", "Groups of requests that could not be written");
    describe_counter!("pintail_sink_commits_total", "Commits into the lake");
    describe_counter!("pintail_sink_rows_total", "Events that have landed in the lake");
    describe_histogram!("pintail_sink_flush_seconds", "How long a batch took to land");
    describe_counter!("pintail_sink_commit_failures_total", "Batches that did not land; they are tried again");
    describe_counter!("pintail_dead_letters_total", "Dead letters that were written, by origin");
    describe_gauge!("pintail_ingest_source_up", "1 while the broker of the source answers");
    describe_counter!("pintail_source_messages_total", "Messages of brokers");
    describe_counter!("pintail_source_errors_total", "Failures of brokers, or of what they brought");
    describe_counter!("pintail_source_redelivered_total", "Messages that had landed and were delivered again");
}
