//! When what waits is written: by rows, by bytes, by age, and at the end.

use crate::log::Pending;

/// When a flush is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushPolicy {
    /// At so many rows.
    pub rows: u64,
    /// At so many bytes.
    pub bytes: u64,
    /// When the oldest has waited so long, in microseconds.
    pub age_micros: i64,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Write.
    Flush,
    /// Look again after so many microseconds, or as soon as something comes.
    Wait {
        /// Microseconds.
        micros: i64,
    },
    /// Nothing is there: look again as soon as something comes.
    Idle,
}

/// Returns what is due at `now_micros`; `is_stopping` says that nothing more will come.
pub fn due(policy: &FlushPolicy, pending: &Pending, now_micros: i64, is_stopping: bool) -> Due {
    if pending.records == 0 {
        return Due::Idle;
    }
    let age = now_micros.saturating_sub(pending.oldest_micros);
    let is_full = policy.rows <= pending.records || policy.bytes <= pending.bytes;
    // A clock that was set back must not make anything wait for longer than it was asked to.
    if is_stopping || is_full || policy.age_micros <= age || age < 0 {
        return Due::Flush;
    }
    Due::Wait { micros: policy.age_micros - age }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_due_by_rows_bytes_age_and_at_the_end() {
        let policy = FlushPolicy { rows: 10, bytes: 100, age_micros: 50 };
        let due = |records, bytes, now, stopping| {
            due(&policy, &Pending { records, bytes, oldest_micros: 1_000 }, now, stopping)
        };
        assert_eq!(due(0, 0, 9_999, true), Due::Idle);
        assert_eq!(due(9, 99, 1_010, false), Due::Wait { micros: 40 });
        assert_eq!(due(10, 1, 1_010, false), Due::Flush);
        assert_eq!(due(1, 100, 1_010, false), Due::Flush);
        assert_eq!(due(1, 1, 1_050, false), Due::Flush);
        assert_eq!(due(1, 1, 1_010, true), Due::Flush);
        assert_eq!(due(1, 1, 999, false), Due::Flush);
    }
}
