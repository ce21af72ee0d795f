//! Whether requests should be sent here: facts in, reasons out.
//!
//! Brokers that are away are told and do not count: requests do not go through them.

use std::time::Duration;

use pintail_telemetry::sink::LakeState;
use pintail_telemetry::sources::Reach;
use serde::Serialize;

/// What is known when somebody asks.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Whether the server is about to go.
    pub(super) is_draining: bool,
    /// How the lake has taken the last batch, and for how long it has been so.
    pub(super) lake: (LakeState, Duration),
    /// How long the lake may be away.
    pub(super) lake_patience: Duration,
    /// Bytes that wait for the lake.
    pub(super) held: u64,
    /// So many may.
    pub(super) limit: u64,
    /// How the brokers are doing that are read beside HTTP.
    pub(super) sources: Vec<(&'static str, Reach)>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Readiness {
    pub(super) ready: bool,
    reasons: Vec<String>,
    lake: &'static str,
    log_bytes: u64,
    log_limit: u64,
    sources: Vec<SourceState>,
}

#[derive(Clone, Debug, Serialize)]
struct SourceState {
    source: &'static str,
    state: &'static str,
}

/// Says whether requests should come, and every reason why not.
pub(super) fn decide(facts: &Facts) -> Readiness {
    let mut reasons = Vec::new();
    if facts.is_draining {
        reasons.push("the server is stopping".to_owned());
    }
    let (lake, since) = facts.lake;
    match lake {
        LakeState::Refuses => reasons.push(
            "the lake refuses what is in the log, the reason is in the server's output; nothing lands until it is mended"
                .to_owned(),
        ),
        LakeState::Away if facts.lake_patience <= since && 0 < facts.held => {
            reasons.push(format!("the lake has been away for {} seconds, and events wait for it", since.as_secs()));
        }
        // A lake that is away for a while is what the log is for.
        LakeState::Away | LakeState::Well => {}
    }
    if facts.limit <= facts.held {
        reasons.push("the log is full: the lake is behind".to_owned());
    } else if is_nearly_full(facts) {
        let parts = facts.held.saturating_mul(100) / facts.limit.max(1);
        reasons.push(format!("the log is {parts} % full: the lake is behind"));
    }
    Readiness {
        ready: reasons.is_empty(),
        reasons,
        lake: match lake {
            LakeState::Well => "ok",
            LakeState::Away => "behind",
            LakeState::Refuses => "refuses",
        },
        log_bytes: facts.held,
        log_limit: facts.limit,
        sources: facts.sources.iter().map(|(source, reach)| SourceState { source, state: word(*reach) }).collect(),
    }
}

/// Requests that have begun need room, and who balances the load takes a while to look.
fn is_nearly_full(facts: &Facts) -> bool {
    facts.limit / 10 * 9 <= facts.held
}

fn word(reach: Reach) -> &'static str {
    match reach {
        Reach::Connecting => "connecting",
        Reach::Up => "ok",
        Reach::Away => "away",
        Reach::Waiting => "behind",
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn well() -> Facts {
        let (is_draining, lake, lake_patience) = (false, (LakeState::Well, MINUTE * 60), MINUTE * 5);
        Facts { is_draining, lake, lake_patience, held: 10, limit: 1_000, sources: Vec::new() }
    }

    fn check(facts: &Facts, expected: Expect) {
        let found = decide(facts);
        assert_eq!(found.ready, found.reasons.is_empty());
        expected.assert_eq(&if found.ready { "yes".to_owned() } else { found.reasons.join("; ") });
    }

    #[test]
    fn requests_should_come_unless_the_lake_or_the_log_cannot_take_them() {
        let away = |since| Facts { lake: (LakeState::Away, since), ..well() };
        check(&well(), expect!["yes"]);
        check(&Facts { is_draining: true, ..well() }, expect!["the server is stopping"]);
        check(&away(MINUTE * 4), expect!["yes"]);
        check(&away(MINUTE * 5), expect!["the lake has been away for 300 seconds, and events wait for it"]);
        check(&Facts { held: 0, ..away(MINUTE * 5) }, expect!["yes"]);
        check(
            &Facts { lake: (LakeState::Refuses, Duration::ZERO), held: 0, ..well() },
            expect![
                "the lake refuses what is in the log, the reason is in the server's output; nothing lands until it is mended"
            ],
        );
        check(&Facts { held: 899, ..well() }, expect!["yes"]);
        check(&Facts { held: 900, ..well() }, expect!["the log is 90 % full: the lake is behind"]);
        check(&Facts { held: 1_000, ..well() }, expect!["the log is full: the lake is behind"]);
        check(
            &Facts { held: 950, ..away(MINUTE * 9) },
            expect![
                "the lake has been away for 540 seconds, and events wait for it; the log is 95 % full: the lake is behind"
            ],
        );
    }

    #[test]
    fn brokers_are_told_and_do_not_count() {
        let sources = vec![("nats", Reach::Away), ("kafka", Reach::Up)];
        let told = serde_json::to_string(&decide(&Facts { sources, ..well() })).unwrap();
        expect![[r#"{"ready":true,"reasons":[],"lake":"ok","log_bytes":10,"log_limit":1000,"sources":[{"source":"nats","state":"away"},{"source":"kafka","state":"ok"}]}"#]].assert_eq(&told);
    }
}
