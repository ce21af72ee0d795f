//! Waiting for a condition, with an end.

use std::thread;
use std::time::{Duration, Instant};

/// No condition of a test takes longer, however busy the machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns once `condition` holds; fails with `what` when it does not come about.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < LIMIT, "waited in vain until {what}");
        thread::park_timeout(Duration::from_millis(2));
    }
}
