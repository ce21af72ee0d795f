//! From the log into the lake: waits until a flush is due, lands it, and forgets it in the log.
//!
//! Invariant: the log forgets nothing that the lake does not have. The lake's position says what it has, so that a crash
//! between the two costs a second look and nothing else.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pintail_engine::fault::FaultPoint;
use pintail_streams::dead_letter::{DeadLetter, EventName};
use pintail_streams::{PositionTable, Writer};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::{Batch, Due, FlushPolicy, LandError, Landed, Sink, SourceName, due};
use crate::cloudevents::check_type;
use crate::letters::payload_elsewhere;
use crate::log::{Log, LogError, LogPosition, Record, decode};
use crate::raw::{LayoutError, RawTable};

/// How long the sink waits when the lake cannot take anything.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// A log that cannot be brought into the lake.
#[derive(Debug, thiserror::Error)]
pub enum LogSinkError {
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The lake's table cannot take events.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The batch did not land.
    #[error(transparent)]
    Land(#[from] LandError),
    /// The lake has what the log never gave, or lacks what the log gave away.
    #[error(
        "log and lake do not belong together: the lake has {lake} entries of this log, which holds {log}; one of them was \
         put back to an older state; move the log's file away to begin a new one (what it holds stays in the moved file)"
    )]
    Mismatch {
        /// The lake's position.
        lake: u64,
        /// What the log holds, for people.
        log: String,
    },
}

/// How the lake has taken the last batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LakeState {
    /// It takes what is sent.
    #[default]
    Well,
    /// It is busy or away: what waits lands when it is back.
    Away,
    /// It refuses, and will do so until somebody has mended something.
    Refuses,
}

/// What others may know of a sink.
#[derive(Clone, Debug)]
pub struct SinkStatus {
    /// The state, and since when it is that one.
    state: watch::Sender<(LakeState, Instant)>,
}

impl Default for SinkStatus {
    fn default() -> Self {
        Self { state: watch::Sender::new((LakeState::default(), Instant::now())) }
    }
}

impl SinkStatus {
    /// Returns how the lake has taken the last batch.
    pub fn lake(&self) -> LakeState {
        self.state.borrow().0
    }

    /// Returns how long that has been so.
    pub fn since(&self) -> Duration {
        self.state.borrow().1.elapsed()
    }

    /// Says how the lake has taken a batch.
    pub fn set(&self, state: LakeState) {
        self.state.send_if_modified(|known| {
            let is_new = known.0 != state;
            if is_new {
                *known = (state, Instant::now());
            }
            is_new
        });
    }
}

/// The sink of one log. It stays on one thread, which is not one of tokio's.
pub struct LogSink {
    sink: Sink,
    log: Log,
    runtime: Handle,
    policy: FlushPolicy,
    status: SinkStatus,
    at: LogPosition,
}

impl LogSink {
    /// Opens the lake's side of `log`, checks that the two belong together, and lets the log forget what the lake has.
    pub fn open(
        writer: Writer,
        table: RawTable,
        log: Log,
        policy: FlushPolicy,
        runtime: Handle,
    ) -> Result<Self, LogSinkError> {
        let name = SourceName {
            position: PositionTable::source(&format!("log.{}", log.id())),
            source: log.id().to_owned(),
            origin: "http".to_owned(),
        };
        let (sink, at) = Sink::open(writer, table, name, "0")?;
        let at = LogPosition(at.parse().unwrap_or(u64::MAX));
        let (first, last) = (log.first(), log.last_given());
        if last < at || first.is_some_and(|first| at.0 + 1 < first.0) || (first.is_none() && at < last) {
            let log = first.map_or_else(|| format!("none of {}", last.0), |first| format!("{} to {}", first.0, last.0));
            return Err(LogSinkError::Mismatch { lake: at.0, log });
        }
        runtime.block_on(log.forget(at));
        Ok(Self { sink, log, runtime, policy, status: SinkStatus::default(), at })
    }

    /// Returns what others may know.
    pub fn status(&self) -> SinkStatus {
        self.status.clone()
    }

    /// Lands what waits, as far as one flush may go; `None` when nothing waits.
    pub fn flush(&mut self) -> Result<Option<Landed>, LogSinkError> {
        let Some(upto) = self.log.cut(self.at, self.policy.rows, self.policy.bytes) else { return Ok(None) };
        let batch = self.batch(upto)?;
        let landed = self.sink.land(&self.at.0.to_string(), &upto.0.to_string(), batch)?;
        self.at = upto;
        self.sink.writer().faults().reach(FaultPoint::Remembered);
        self.runtime.block_on(self.log.forget(upto));
        Ok(Some(landed))
    }

    fn batch(&self, upto: LogPosition) -> Result<Batch, LogError> {
        let entries = self.runtime.block_on(self.log.read(self.at, upto))?;
        let mut batch = Batch::default();
        for entry in entries {
            let place = |index: usize| format!("log {} entry {} record {index}", self.log.id(), entry.position.0);
            match decode(&entry.body) {
                Ok(records) => {
                    for (index, record) in records.into_iter().enumerate() {
                        self.put(&mut batch, place(index), record);
                    }
                }
                Err(error) => batch.letters.push(self.letter(place(0), None, error.to_string(), entry.body)),
            }
        }
        Ok(batch)
    }

    fn put(&self, batch: &mut Batch, place: String, record: Record) {
        match record {
            Record::Event(arrival) => match check_type(&arrival.event.kind) {
                Ok(()) => {
                    batch.arrivals.push(arrival);
                    batch.positions.push(place);
                }
                // An earlier version has taken it in.
                Err(error) => {
                    let (part, raw) = (payload_elsewhere(&arrival.event), arrival.event.to_json().into_bytes());
                    batch.letters.push(self.letter(place, part, error.to_string(), raw));
                }
            },
            Record::Refused(refused) => {
                batch.letters.push(self.letter(place, refused.part, refused.reason, refused.raw));
            }
        }
    }

    fn letter(&self, position: String, part: Option<String>, reason: String, raw: Vec<u8>) -> DeadLetter {
        DeadLetter {
            origin: self.sink.name().origin.clone(),
            position,
            part,
            reason,
            raw,
            decoder: None,
            event: EventName::default(),
        }
    }

    /// Lands what comes until `stop` says so, and then the rest. It ends by itself only when going on would be wrong:
    /// when somebody else feeds the lake from the same log, or the log cannot be read.
    pub fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), LogSinkError> {
        let mut head = self.log.watch();
        let mut pause = Duration::from_millis(200);
        loop {
            let is_stopping = *stop.borrow_and_update();
            head.borrow_and_update();
            let wait = match due(&self.policy, &self.log.pending(self.at), now_micros(), is_stopping) {
                Due::Flush => match self.flush() {
                    Ok(_) => {
                        self.status.set(LakeState::Well);
                        pause = Duration::from_millis(200);
                        continue;
                    }
                    Err(LogSinkError::Land(error @ (LandError::Later(_) | LandError::Refused(_)))) => {
                        let is_refused = matches!(error, LandError::Refused(_));
                        self.status.set(if is_refused { LakeState::Refuses } else { LakeState::Away });
                        tracing::error!(error = &error as &dyn std::error::Error, "the lake takes no events");
                        if is_stopping {
                            // What waits is durable, and lands at the next start.
                            return Err(error.into());
                        }
                        pause = (pause * 2).min(LONGEST_PAUSE);
                        self.pause(pause, &mut stop);
                        continue;
                    }
                    Err(error) => return Err(error),
                },
                Due::Idle if is_stopping => return Ok(()),
                Due::Idle => None,
                Due::Wait { micros } => Some(Duration::from_micros(micros.unsigned_abs())),
            };
            self.runtime.block_on(async {
                let come = async {
                    tokio::select! {
                        _ = head.changed() => {}
                        _ = stop.changed() => {}
                    }
                };
                match wait {
                    // What comes while something waits may make the flush due earlier.
                    Some(wait) => drop(tokio::time::timeout(wait, come).await),
                    None => come.await,
                }
            });
        }
    }

    fn pause(&self, pause: Duration, stop: &mut watch::Receiver<bool>) {
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(pause, stop.changed()).await;
        });
    }
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
