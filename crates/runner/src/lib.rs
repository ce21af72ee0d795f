//! Makes plans real: loads and compiles projects, observes lakes and store, dispatches steps, and answers questions.
//!
//! Only this crate writes for a user's command. It reads neither the environment nor the terminal: faces hand those in.
//! [`Pintail`] is the whole of what a face calls.

pub mod executors;
pub mod pintail;
pub mod project;
pub mod run;
pub mod workspace;

pub use pintail::{Pintail, RunnerError, Settings};

use std::time::Duration;

use chrono::DateTime;

/// Returns a new id that sorts by the time it was made.
pub fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Returns microseconds since 1970 as UTC text, to the second.
pub fn time_text(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .map_or_else(|| micros.to_string(), |at| at.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Returns a duration as a person says it: `340 ms`, `2.1 s`, `3 min 20 s`.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        ..1.0 => format!("{} ms", duration.as_millis()),
        1.0..60.0 => format!("{seconds:.1} s"),
        _ => format!("{} min {} s", duration.as_secs() / 60, duration.as_secs() % 60),
    }
}

/// Returns an error with what is behind it, each said once.
pub fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let reason = error.to_string();
        // A transparent error repeats its source.
        if !text.ends_with(&reason) {
            text = format!("{text}: {reason}");
        }
        source = error.source();
    }
    text
}
