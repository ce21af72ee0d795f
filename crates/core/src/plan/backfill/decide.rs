//! The decisions of a backfill job: facts in, a state out.

use std::fmt;

/// Where one partition of a job stands. A partition without a stored state is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionState {
    /// To be done.
    Queued,
    /// The job's process is at it, or died at it.
    Running,
    /// Written, or found up to date.
    Done,
    /// Its attempt failed.
    Failed,
    /// It was stopped in the middle; a resumed job does it.
    Cancelled,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Its owner is at it; when the owner is dead it was interrupted.
    Running,
    /// Every partition is done.
    Done,
    /// It ended, and partitions have failed.
    Failed,
    /// It was stopped.
    Cancelled,
}

/// Which partitions a process that takes a job up does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Those that have not ended.
    Resume,
    /// Those that failed, and no others.
    Retry,
}

/// What lake and store say of a partition whose process died at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// A stamp of the job's run is in the lake.
    Committed,
    /// The attempt's failure was recorded.
    Failed,
    /// Neither.
    Nothing,
}

/// How a step of a job's run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionEnd {
    /// It committed, or a newer commit of the same slice was there.
    Good,
    /// It failed, or something before it did.
    Bad,
    /// The user stopped it while it ran.
    Stopped,
    /// The user stopped before it began.
    NotBegun,
}

/// How many partitions of a window ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Done.
    pub done: u64,
    /// Failed.
    pub failed: u64,
    /// Cancelled, or back in the queue.
    pub stopped: u64,
}

/// What follows a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// The next window.
    GoOn,
    /// The user stopped; what is left stays queued.
    Cancelled,
    /// Nothing went well: what is left would fail in the same way, and stays queued.
    Hopeless,
}

/// Whether a process may take a job up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It may: nobody is at it.
    Take,
    /// It may not.
    Refuse(Refusal),
}

/// Why a job cannot be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its owner lives and is at it.
    UnderWay,
    /// Nothing of it is left to resume.
    NothingLeft,
    /// Nothing of it has failed.
    NothingFailed,
}

impl PartitionState {
    /// Returns whether nothing happens to it any more, short of a retry.
    pub fn is_ended(self) -> bool {
        matches!(self, PartitionState::Done | PartitionState::Failed)
    }
}

/// Returns whether a process in `mode` does a partition in `state`. A running one is settled first.
pub fn is_due(mode: Mode, state: PartitionState) -> bool {
    match mode {
        Mode::Resume => matches!(state, PartitionState::Queued | PartitionState::Cancelled),
        Mode::Retry => state == PartitionState::Failed,
    }
}

/// Returns what a partition becomes whose process died at it.
pub fn settle(evidence: Evidence) -> PartitionState {
    match evidence {
        Evidence::Committed => PartitionState::Done,
        Evidence::Failed => PartitionState::Failed,
        Evidence::Nothing => PartitionState::Queued,
    }
}

/// Returns what a partition becomes whose step ended in `mode`. What a retry did not come to stays failed.
pub fn state_after(mode: Mode, end: PartitionEnd) -> PartitionState {
    match (end, mode) {
        (PartitionEnd::Good, _) => PartitionState::Done,
        (PartitionEnd::Bad, _) => PartitionState::Failed,
        (PartitionEnd::Stopped | PartitionEnd::NotBegun, Mode::Retry) => PartitionState::Failed,
        (PartitionEnd::Stopped, Mode::Resume) => PartitionState::Cancelled,
        (PartitionEnd::NotBegun, Mode::Resume) => PartitionState::Queued,
    }
}

/// Returns what follows a window that ended as `tally` says.
pub fn after_window(tally: Tally, is_cancelled: bool) -> JobEnd {
    if is_cancelled {
        return JobEnd::Cancelled;
    }
    match tally {
        Tally { done: 0, failed: 1.., .. } => JobEnd::Hopeless,
        _ => JobEnd::GoOn,
    }
}

/// Returns whether a process may take up a job in `state`, of which `open` partitions have not ended and `failed` have
/// failed. The caller swaps the owner only if it is still the one whose life it looked at.
pub fn claim(state: JobState, is_owner_alive: bool, mode: Mode, open: u64, failed: u64) -> Claim {
    if state == JobState::Running && is_owner_alive {
        return Claim::Refuse(Refusal::UnderWay);
    }
    match mode {
        // One that died between its last partition and its end is taken up to be ended.
        Mode::Resume if open == 0 && state != JobState::Running => Claim::Refuse(Refusal::NothingLeft),
        Mode::Retry if failed == 0 => Claim::Refuse(Refusal::NothingFailed),
        _ => Claim::Take,
    }
}

impl JobState {
    /// Returns how a job ends of which `open` partitions have not ended and `failed` have failed.
    pub fn at_end(end: JobEnd, open: u64, failed: u64) -> Self {
        match end {
            JobEnd::Cancelled if 0 < open => JobState::Cancelled,
            JobEnd::Hopeless => JobState::Failed,
            _ if 0 < failed => JobState::Failed,
            _ if 0 < open => JobState::Cancelled,
            _ => JobState::Done,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::UnderWay => "its process is at work",
            Refusal::NothingLeft => "nothing of it is left to do",
            Refusal::NothingFailed => "nothing of it has failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_job_does_what_has_not_ended_and_a_retry_what_failed() {
        use PartitionState::{Cancelled, Done, Failed, Queued, Running};
        let due = |mode| [Queued, Running, Done, Failed, Cancelled].map(|state| is_due(mode, state));
        assert_eq!(due(Mode::Resume), [true, false, false, false, true]);
        assert_eq!(due(Mode::Retry), [false, false, false, true, false]);
    }

    #[test]
    fn a_living_owner_keeps_its_job() {
        let under_way = Claim::Refuse(Refusal::UnderWay);
        assert_eq!(claim(JobState::Running, true, Mode::Resume, 3, 0), under_way);
        assert_eq!(claim(JobState::Running, true, Mode::Retry, 3, 1), under_way);
        assert_eq!(claim(JobState::Running, false, Mode::Resume, 3, 0), Claim::Take);
        // A job that has ended belongs to nobody, though its process may still be there.
        assert_eq!(claim(JobState::Cancelled, true, Mode::Resume, 3, 0), Claim::Take);
        assert_eq!(claim(JobState::Running, false, Mode::Resume, 0, 0), Claim::Take);
        assert_eq!(claim(JobState::Done, false, Mode::Resume, 0, 0), Claim::Refuse(Refusal::NothingLeft));
        assert_eq!(claim(JobState::Failed, false, Mode::Resume, 0, 2), Claim::Refuse(Refusal::NothingLeft));
        assert_eq!(claim(JobState::Cancelled, false, Mode::Retry, 4, 0), Claim::Refuse(Refusal::NothingFailed));
    }

    #[test]
    fn a_window_in_which_nothing_went_well_stops_the_job() {
        assert_eq!(after_window(Tally { done: 0, failed: 5, stopped: 0 }, false), JobEnd::Hopeless);
        assert_eq!(after_window(Tally { done: 1, failed: 5, stopped: 0 }, false), JobEnd::GoOn);
        assert_eq!(after_window(Tally::default(), false), JobEnd::GoOn);
        assert_eq!(after_window(Tally { done: 0, failed: 5, stopped: 1 }, true), JobEnd::Cancelled);
    }

    #[test]
    fn a_job_ends_by_what_is_left() {
        assert_eq!(JobState::at_end(JobEnd::GoOn, 0, 0), JobState::Done);
        assert_eq!(JobState::at_end(JobEnd::GoOn, 0, 1), JobState::Failed);
        assert_eq!(JobState::at_end(JobEnd::Cancelled, 2, 1), JobState::Cancelled);
        // Stopped when nothing was left: it has ended all the same.
        assert_eq!(JobState::at_end(JobEnd::Cancelled, 0, 0), JobState::Done);
        // A retry leaves what was queued.
        assert_eq!(JobState::at_end(JobEnd::GoOn, 2, 0), JobState::Cancelled);
        assert_eq!(JobState::at_end(JobEnd::Hopeless, 2, 9), JobState::Failed);
    }
}
