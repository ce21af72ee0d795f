//! Whether a step that waited for others still has a reason when they have ended.

use super::{Reason, Step};

/// Returns whether a step need not run: it was planned only because of the steps before it, and none of them has changed
/// anything. What it reads is as it was when it last ran, so it is up to date.
pub fn is_spared(step: &Step, is_unchanged: impl Fn(usize) -> bool) -> bool {
    matches!(step.reason, Reason::Upstream(_)) && step.depends_on.iter().all(|before| is_unchanged(*before))
}
