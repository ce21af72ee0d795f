//! The consumer protocol: from what a lake says to what a pass does, without any IO.
//!
//! Invariant: a cursor at `n` means that every row which a snapshot up to and including `n` brought into the source is
//! where it belongs, or recorded as skipped or dead. It moves only by a [`Permit`], which only a decision gives, and only
//! with the last window of what was decided. What cannot be read any more is a gap and never passed over in silence.
//! Deliberately not here: how a window is decoded, and how a commit is proved.

mod decide;
mod gap;
mod permit;
mod touch;
mod window;

#[cfg(test)]
mod simulation;

pub use decide::{Decision, Facts, SeenSnapshot, Span, SpanLimits, decide};
pub use gap::{Gap, GapPolicy, Passage};
pub use permit::{Part, Permit};
pub use touch::{Kinds, Touch, touch};
pub use window::{WindowCount, WindowLimits};
