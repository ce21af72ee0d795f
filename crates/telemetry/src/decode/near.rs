//! Names that are not known, with the known one that was perhaps meant.
//!
//! A device that misspells a name does so in each message, so what was found is kept for the batch.

use std::collections::HashMap;

use pintail_core::diagnostic::nearest;

use super::{event_names, json, vss};

/// Longer names are nobody's slip of the hand.
const LONGEST: usize = 100;

/// The most names that are remembered.
const REMEMBERED: usize = 1_000;

/// Reasons for unknown names.
#[derive(Default)]
pub struct NearNames(HashMap<String, String>);

impl NearNames {
    /// Returns the reason for a signal that is not known.
    pub fn unknown_signal(&mut self, name: &str) -> String {
        self.reason("signal", name, || nearest(name, sorted(vss::names())))
    }

    /// Returns the reason for an event that is not known.
    pub fn unknown_event(&mut self, name: &str) -> String {
        self.reason("event", name, || nearest(name, event_names::NAMES))
    }

    fn reason(&mut self, what: &str, name: &str, find: impl FnOnce() -> Option<&'static str>) -> String {
        if let Some(known) = self.0.get(name) {
            return known.clone();
        }
        let near = if name.len() <= LONGEST { find() } else { None };
        let shown = json::shortened(name);
        let reason = match near {
            Some(near) => format!("unknown {what} `{shown}`; did you mean `{near}`?"),
            None => format!("unknown {what} `{shown}`"),
        };
        if name.len() <= LONGEST && self.0.len() < REMEMBERED {
            self.0.insert(name.to_owned(), reason.clone());
        }
        reason
    }
}

/// Of several names that are equally near, the first by alphabet is proposed, on any machine.
fn sorted(names: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = names.collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_answered_with_the_name_that_was_meant() {
        let mut near = NearNames::default();
        assert_eq!(near.unknown_signal("sped"), "unknown signal `sped`; did you mean `speed`?");
        assert_eq!(near.unknown_signal("Speed"), "unknown signal `Speed`; did you mean `speed`?");
        assert_eq!(near.unknown_signal("colour"), "unknown signal `colour`");
        assert_eq!(
            near.unknown_event("behavior.harshBreaking"),
            "unknown event `behavior.harshBreaking`; did you mean `behavior.harshBraking`?"
        );
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut near = NearNames::default();
        for number in 0..2 * REMEMBERED {
            near.unknown_signal(&format!("nothing like a signal {number}"));
        }
        near.unknown_signal(&"x".repeat(1_000_000));
        assert_eq!(near.0.len(), REMEMBERED);
        assert!(near.0.keys().all(|name| name.len() <= LONGEST));
    }
}
