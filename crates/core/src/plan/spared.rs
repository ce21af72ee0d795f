//! Whether a step that waited for others still has a reason when they have ended.

use super::{Reason, Step};

/// Returns whether a step need not run: it was planned only because of the steps before it, and none of them has changed
/// anything. What it reads is as it was when it last ran, so it is up to date.
pub fn is_spared(step: &Step, is_unchanged: impl Fn(usize) -> bool) -> bool {
    matches!(step.reason, Reason::Upstream(_)) && step.depends_on.iter().all(|before| is_unchanged(*before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{ScriptHash, ScriptName};
    use crate::plan::Content;

    fn step(reason: Reason, depends_on: &[usize]) -> Step {
        Step {
            script: 0,
            name: ScriptName("d".to_owned()),
            asset: None,
            strategy: "replace",
            partition: None,
            window: None,
            reason,
            full_refresh: false,
            script_hash: ScriptHash(String::new()),
            depends_on: depends_on.to_vec(),
            content: Content::Script,
        }
    }

    #[test]
    fn a_step_is_spared_only_when_all_before_it_changed_nothing_and_it_has_no_reason_of_its_own() {
        let upstream = || Reason::Upstream(ScriptName("t".to_owned()));
        let first_only = |before: usize| before == 0;
        assert!(is_spared(&step(upstream(), &[0]), first_only));
        assert!(!is_spared(&step(upstream(), &[0, 1]), first_only));
        for reason in [Reason::Missing, Reason::Failed, Reason::Forced, Reason::ScriptChanged, Reason::FullRefresh] {
            assert!(!is_spared(&step(reason.clone(), &[0]), first_only), "{reason}");
        }
    }
}
