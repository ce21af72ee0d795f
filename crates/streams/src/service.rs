//! A consumer at work: pass after pass, once or for as long as nobody stops it.
//!
//! Invariant: whatever goes wrong, the next pass begins at the cursor in the lake, on a connection of its own; nothing is
//! passed over. What a person has to decide ends the consumer and is told; what passes is waited for.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pintail_engine::{EngineError, ErrorClass};

use crate::consumer::{Consumer, Holder, Landed, Pass, PassError, Spec, system_now};
use crate::decoder::Decoder;
use crate::writer::Writer;

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Lets somebody stop work, and lets the work wait until then.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Asks for the end; what is not committed is read again the next time.
    pub fn stop(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Returns whether the end was asked for.
    pub fn is_stopped(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `time`, or until the end is asked for; returns whether it was.
    pub fn wait(&self, time: Duration) -> bool {
        let stopped = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(stopped, time, |stopped| !*stopped);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// How often rows whose time is over are looked for.
const RETIRE_EVERY: Duration = Duration::from_secs(3_600);

/// The pause after a pass that another process got in the way of.
const AGAIN: Duration = Duration::from_millis(100);

/// How long it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Until nothing is left.
    Once,
    /// Until it is stopped.
    Follow {
        /// How often it looks when nothing came.
        poll: Duration,
        /// After so long a time of failures it gives up.
        patience: Duration,
    },
}

/// What happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// Another process has the consumer.
    Held(&'a Holder),
    /// The source is not there.
    NoSource {
        /// The table that was perhaps meant.
        near: Option<&'a str>,
    },
    /// Rows were consumed.
    Landed(&'a Landed),
    /// Decoded rows whose time was over have gone.
    Retired(u64),
    /// Nothing is left for now.
    Idle,
    /// Something went wrong that may pass.
    Failed {
        /// What.
        error: &'a PassError,
        /// When it is tried again.
        pause: Duration,
    },
}

/// How it ended, when it did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left.
    Done,
    /// It was stopped.
    Stopped,
    /// Another process has the consumer.
    Held(Holder),
}

/// Works on one consumer. `open` opens its lake, again after a failure.
pub fn work(
    open: &dyn Fn() -> Result<Writer, EngineError>,
    spec: &Spec,
    decoder: &dyn Decoder,
    mode: Mode,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Ended, PassError> {
    let mut failing = Failing::default();
    loop {
        let outcome = session(open, spec, decoder, mode, stop, &mut failing, tell);
        let error = match outcome {
            Ok(ended) => return Ok(ended),
            Err(_) if stop.is_stopped() => return Ok(Ended::Stopped),
            Err(error) => error,
        };
        let Some(pause) = failing.pause(&error, mode) else { return Err(error) };
        tell(Event::Failed { error: &error, pause });
        if stop.wait(pause) {
            return Ok(Ended::Stopped);
        }
    }
}

/// Works until something goes wrong.
fn session(
    open: &dyn Fn() -> Result<Writer, EngineError>,
    spec: &Spec,
    decoder: &dyn Decoder,
    mode: Mode,
    stop: &Stop,
    failing: &mut Failing,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Ended, PassError> {
    let writer = open()?;
    let mut consumer = loop {
        match Consumer::open(&writer, spec.clone(), decoder)? {
            Ok(consumer) => break consumer.stopped_by(stop.clone()),
            Err(holder) => {
                tell(Event::Held(&holder));
                let Mode::Follow { poll, .. } = mode else { return Ok(Ended::Held(holder)) };
                if stop.wait(poll) {
                    return Ok(Ended::Stopped);
                }
            }
        }
    };
    let mut retired: Option<Instant> = None;
    loop {
        if stop.is_stopped() {
            return Ok(Ended::Stopped);
        }
        let is_due = retired.is_none_or(|at| RETIRE_EVERY <= at.elapsed());
        if is_due && mode != Mode::Once {
            retire(&mut consumer, spec, tell)?;
            retired = Some(Instant::now());
        }
        let pass = consumer.pass()?;
        *failing = Failing::default();
        match &pass {
            Pass::Landed(landed) => tell(Event::Landed(landed)),
            Pass::Idle => tell(Event::Idle),
            Pass::NoSource { near } => tell(Event::NoSource { near: near.as_deref() }),
            // Somebody else has written; at once it would only be in the way.
            Pass::Again if stop.wait(AGAIN) => return Ok(Ended::Stopped),
            Pass::Again => {}
        }
        if matches!(pass, Pass::Idle | Pass::NoSource { .. }) {
            let Mode::Follow { poll, .. } = mode else {
                retire(&mut consumer, spec, tell)?;
                return Ok(Ended::Done);
            };
            if stop.wait(poll) {
                return Ok(Ended::Stopped);
            }
        }
    }
}

/// Deletes the decoded rows whose time is over, where the consumer has a retention.
fn retire(consumer: &mut Consumer<'_>, spec: &Spec, tell: &mut dyn FnMut(Event<'_>)) -> Result<(), PassError> {
    let Some(retention) = spec.retention else { return Ok(()) };
    let kept = i64::try_from(retention.as_micros()).unwrap_or(i64::MAX);
    let rows = consumer.retire(system_now().saturating_sub(kept))?;
    if 0 < rows {
        tell(Event::Retired(rows));
    }
    Ok(())
}

/// Failures in a row.
#[derive(Debug, Default)]
struct Failing {
    count: u32,
    since: Option<Instant>,
}

impl Failing {
    /// Returns how long to wait before the next try; `None` when there shall be none.
    fn pause(&mut self, error: &PassError, mode: Mode) -> Option<Duration> {
        let patience = match mode {
            Mode::Once => Duration::from_secs(60),
            Mode::Follow { patience, .. } => patience,
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        let may_pass = match error.class() {
            ErrorClass::Transient | ErrorClass::Conflict => true,
            // An instance that has broken down is opened anew; what was interrupted was not interrupted by us.
            ErrorClass::Bug | ErrorClass::Cancelled => self.count < 3,
            ErrorClass::User => false,
        };
        if !may_pass || patience <= since.elapsed() {
            return None;
        }
        self.count += 1;
        let pause = Duration::from_millis(100).saturating_mul(1 << self.count.min(12));
        Some(pause.min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use pintail_core::id::SnapshotId;

    use super::*;

    #[test]
    fn what_a_person_must_decide_is_not_tried_again_and_what_passes_is_with_growing_pauses() {
        let mode = Mode::Follow { poll: Duration::ZERO, patience: Duration::from_secs(3_600) };
        let mut failing = Failing::default();
        let gone = PassError::Ahead { consumer: "a".into(), cursor: SnapshotId(2), head: SnapshotId(1) };
        assert_eq!(failing.pause(&gone, mode), None);
        let lost = PassError::LeaseLost { consumer: "a".into() };
        let pauses: Vec<Duration> = (0..12).filter_map(|_| failing.pause(&lost, mode)).collect();
        assert_eq!(
            (pauses[0], pauses[1], pauses[11]),
            (Duration::from_millis(200), Duration::from_millis(400), LONGEST_PAUSE)
        );
        let impatient = Mode::Follow { poll: Duration::ZERO, patience: Duration::ZERO };
        assert_eq!(Failing::default().pause(&lost, impatient), None);
    }

    #[test]
    fn who_waits_is_woken_by_the_stop() {
        let stop = Stop::default();
        assert!(!stop.wait(Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| stop.wait(Duration::from_secs(3_600)));
            stop.stop();
            assert!(waiting.join().unwrap());
        });
        assert!(stop.is_stopped());
    }
}
