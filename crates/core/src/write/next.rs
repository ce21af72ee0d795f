//! What follows a failure inside a step: write again, stage again, or stop.

use super::{Check, ErrorClass};

/// How often a step's transaction is tried before its conflict or transient failure is told to the user.
pub const MAX_ATTEMPTS: u32 = 8;

/// What is known when an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The class of the failure.
    pub class: ErrorClass,
    /// Whether the script reads its own target.
    pub reads_target: bool,
    /// Whether the stage is still there.
    pub staged: bool,
    /// How many tries were made, this one included.
    pub tries: u32,
    /// Whether the step has waited for others for as long as it may.
    pub is_out_of_patience: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Begin a transaction again with the stage as it is, on a new base.
    Rewrite,
    /// Move the pin to the head and stage again.
    Restage,
    /// Tell the user.
    Stop,
}

/// Decides what follows a failure.
pub fn next_after_failure(facts: Facts) -> Next {
    let again = if facts.staged { Next::Rewrite } else { Next::Restage };
    match facts.class {
        ErrorClass::User | ErrorClass::Cancelled | ErrorClass::Bug => Next::Stop,
        _ if MAX_ATTEMPTS <= facts.tries || facts.is_out_of_patience => Next::Stop,
        ErrorClass::Transient => again,
        ErrorClass::Conflict if facts.reads_target => Next::Restage,
        ErrorClass::Conflict => again,
    }
}

impl Check {
    /// Returns the class that a check which is not clear has as a failure.
    pub fn class(&self) -> Option<ErrorClass> {
        matches!(self, Check::Conflict { .. }).then_some(ErrorClass::Conflict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(class: ErrorClass, reads_target: bool, staged: bool, tries: u32) -> Next {
        next_after_failure(Facts { class, reads_target, staged, tries, is_out_of_patience: false })
    }

    #[test]
    fn a_conflict_is_written_again_and_a_self_reader_stages_again() {
        assert_eq!(next(ErrorClass::Conflict, false, true, 1), Next::Rewrite);
        assert_eq!(next(ErrorClass::Conflict, true, true, 1), Next::Restage);
        assert_eq!(next(ErrorClass::Transient, true, true, 1), Next::Rewrite);
        assert_eq!(next(ErrorClass::Transient, false, false, 1), Next::Restage);
    }

    #[test]
    fn user_errors_and_interrupts_stop_at_once() {
        for class in [ErrorClass::User, ErrorClass::Cancelled, ErrorClass::Bug] {
            assert_eq!(next(class, true, true, 1), Next::Stop);
        }
    }

    #[test]
    fn nothing_is_tried_for_ever() {
        assert_eq!(next(ErrorClass::Conflict, false, true, MAX_ATTEMPTS), Next::Stop);
        assert_eq!(next(ErrorClass::Transient, false, true, MAX_ATTEMPTS), Next::Stop);
        let waited = Facts {
            class: ErrorClass::Transient,
            reads_target: false,
            staged: true,
            tries: 1,
            is_out_of_patience: true,
        };
        assert_eq!(next_after_failure(waited), Next::Stop);
    }
}
