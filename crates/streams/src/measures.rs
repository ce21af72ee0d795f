//! What this crate measures, in words, for whoever shows it. Names are counted where it happens.

use metrics::{describe_counter, describe_gauge};

/// Says what each of the metrics is, to the recorder that is installed.
pub fn describe() {
    describe_gauge!("pintail_consumer_lag_seconds", "Age of the oldest snapshot that was not consumed");
    describe_gauge!("pintail_consumer_cursor_snapshot", "Where the consumer is");
    describe_gauge!("pintail_consumer_head_snapshot", "Where the lake is");
    describe_counter!("pintail_consumer_read_rows_total", "Rows that were read from the source");
    describe_counter!("pintail_consumer_rows_total", "Rows that were written, by table");
    describe_counter!("pintail_consumer_duplicates_total", "Decoded rows that were there already");
    describe_counter!("pintail_consumer_dead_letters_total", "Dead letters");
    describe_counter!("pintail_consumer_windows_total", "Commits");
    describe_counter!("pintail_consumer_passes_total", "Passes, by outcome");
    describe_counter!("pintail_consumer_gaps_total", "Gaps that were met, by policy");
    describe_counter!("pintail_consumer_decoder_panics_total", "Rows on which the decoder panicked");
    describe_counter!("pintail_consumer_report_errors_total", "Times that progress could not be told to the guard");
}
