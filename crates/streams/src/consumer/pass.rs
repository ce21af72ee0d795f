//! A pass: observe, decide, read once, decode, commit, report.
//!
//! Invariant: an idle pass commits nothing. Whatever ends a pass early, the next one begins at the cursor in the lake.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pintail_core::id::SnapshotId;
use pintail_core::stream::{Decision, Kinds, Part, Passage, Permit, Span, decide, decide_first};
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::ConsumerProgress;
use pintail_engine::lake::feed;
use pintail_engine::{EngineError, ErrorClass, Session};

use super::decoding;
use super::lease::{Holder, Ownership};
use super::observe::{cursor_of, observe};
use super::outcome::{Landed, Pass, PassError};
use super::read::{IsLast, Window, windows};
use super::replace;
use super::source::{Source, Spec};
use super::tables::PreparedTarget;
use super::write::{self, Existing, StagedWindow, Written};
use crate::commit::{Commit, Outcome, commit, patience};
use crate::dead_letter;
use crate::decoder::Decoder;
use crate::position::{self, Move, Position};
use crate::service::Stop;
use crate::writer::Writer;

/// A consumer that this process owns.
pub struct Consumer<'a> {
    pub(super) writer: &'a Writer,
    pub(super) spec: Spec,
    pub(super) decoder: &'a dyn Decoder,
    /// `None` for one that works beside the owner and never moves the cursor.
    pub(super) ownership: Option<Ownership>,
    pub(super) reader: Session,
    pub(super) targets: Option<Vec<PreparedTarget>>,
    pub(super) now: fn() -> i64,
    /// What ends a pass between two windows.
    stop: Stop,
    /// Up to here the source was found unchanged, beyond the cursor.
    pub(super) seen: SnapshotId,
    /// Whether the source is known to have what is read of it.
    is_source_checked: bool,
    /// Whether the last pass lost what it was reading; twice in a row is no gap but a fault.
    has_lost: bool,
    /// What the guard knows of this consumer.
    pub(super) reported: Option<ConsumerProgress>,
}

/// What is read, and to where the cursor moves with the last window.
enum Work<'w> {
    Span(&'w Span),
    Rescan(&'w Passage),
}

impl Work<'_> {
    fn permit(&self, part: Part, token: i64) -> Permit {
        match self {
            Work::Span(span) => span.permit(part, token),
            Work::Rescan(passage) => passage.permit(part, token),
        }
    }
}

/// Returns whether a snapshot or a file that was to be read is not there any more. Nobody interrupts the reader: where several
/// threads read and one of them fails, the engine stops the others, and tells of them.
fn is_gone(error: &EngineError) -> bool {
    error.class() == ErrorClass::Cancelled
        || error.failure().is_some_and(|failure| failure.message.is_no_snapshot() || failure.message.is_missing_file())
}

/// Returns the time, in microseconds since 1970 UTC.
pub fn system_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

impl<'a> Consumer<'a> {
    /// Takes the consumer over; the one who has it is told when a living process does.
    pub fn open(writer: &'a Writer, spec: Spec, decoder: &'a dyn Decoder) -> Result<Result<Self, Holder>, PassError> {
        let ownership = match Ownership::ask(writer.guard(), &spec.full_name(), system_now())? {
            Ok(ownership) => ownership,
            Err(holder) => return Ok(Err(holder)),
        };
        // A guard that was lost counts from 0 again, and the cursor knows a greater token: an owner must have the greatest.
        let known = position::read(writer, &spec.cursor())?.map_or(0, |position| position.token);
        if ownership.token() <= known {
            drop(ownership);
            writer.guard().ask(move |guard| async move { guard.raise_tokens(known).await })?;
            return Self::open(writer, spec, decoder);
        }
        writer.faults().reach(FaultPoint::Leased);
        Self::with(writer, spec, decoder, Some(ownership)).map(Ok)
    }

    /// Opens the consumer beside whoever owns it, for work that leaves the cursor where it is.
    pub fn beside(writer: &'a Writer, spec: Spec, decoder: &'a dyn Decoder) -> Result<Self, PassError> {
        Self::with(writer, spec, decoder, None)
    }

    fn with(
        writer: &'a Writer,
        spec: Spec,
        decoder: &'a dyn Decoder,
        ownership: Option<Ownership>,
    ) -> Result<Self, PassError> {
        let now = system_now;
        let reader = writer.reader()?;
        let name = spec.full_name();
        let known = writer.guard().ask(|guard| async move { guard.consumers().await })?;
        let reported = known.into_iter().find(|progress| progress.consumer == name);
        Ok(Self {
            writer,
            spec,
            decoder,
            ownership,
            reader,
            targets: None,
            now,
            stop: Stop::default(),
            seen: SnapshotId(0),
            is_source_checked: false,
            has_lost: false,
            reported,
        })
    }

    /// Lets `stop` end a pass between two windows.
    pub fn stopped_by(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Waits for something to pass; fails when somebody asks for the end.
    pub(super) fn pause(&self, time: Duration) -> Result<(), PassError> {
        self.stop.wait(time);
        self.go_on()
    }

    /// Fails when somebody asked for the end.
    pub(super) fn go_on(&self) -> Result<(), PassError> {
        match self.stop.is_stopped() {
            true => Err(PassError::Stopped { consumer: self.spec.name.clone() }),
            false => Ok(()),
        }
    }

    /// Returns what was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Returns the fencing token of this owner; 0 beside the owner.
    pub fn token(&self) -> i64 {
        self.ownership.as_ref().map_or(0, Ownership::token)
    }

    /// Returns up to which snapshot the guard vouches that nothing is left to read. What it says beyond the newest snapshot
    /// is of another copy of the lake, and is taken back.
    fn vouched(&mut self, position: &Position, head: SnapshotId) -> Result<SnapshotId, PassError> {
        let vouched = self.reported.as_ref().map_or(SnapshotId(0), |progress| progress.snapshot);
        if vouched <= head {
            return Ok(vouched);
        }
        let cursor = cursor_of(position)?;
        self.set_progress(cursor)?;
        Ok(cursor)
    }

    /// Tells the guard where this consumer is, also when that is less than it has heard.
    pub(super) fn set_progress(&mut self, at: SnapshotId) -> Result<(), EngineError> {
        let progress = self.progress(at);
        let row = progress.clone();
        self.writer.guard().ask(|guard| async move { guard.set_progress(&row).await })?;
        self.reported = Some(progress);
        Ok(())
    }

    /// Makes one pass.
    pub fn pass(&mut self) -> Result<Pass, PassError> {
        let outcome = self.try_pass();
        let label = match &outcome {
            Ok(Pass::NoSource { .. }) => "no_source",
            Ok(Pass::Idle) => "idle",
            Ok(Pass::Landed(_)) => "landed",
            Ok(Pass::Again) => "again",
            Err(_) => "failed",
        };
        metrics::counter!("pintail_consumer_passes_total", "consumer" => self.spec.full_name(), "outcome" => label)
            .increment(1);
        outcome
    }

    fn try_pass(&mut self) -> Result<Pass, PassError> {
        let Some(position) = self.position()? else { return Ok(Pass::NoSource { near: self.near_source()? }) };
        let source = self.source_of(&position)?;
        let mut seen = observe(self.writer.place(), &self.spec, Kinds::Inserts, &position, self.seen)?;
        if seen.head < self.seen {
            // The lake is another copy than the one that was looked through.
            self.seen = SnapshotId(0);
            seen = observe(self.writer.place(), &self.spec, Kinds::Inserts, &position, self.seen)?;
        }
        self.show_lag(&seen);
        self.is_source_checked &= !seen.is_altered;
        let vouched = self.vouched(&position, seen.head)?;
        let facts = seen.facts(&self.spec, source, vouched);
        let decision = match position.has_moved {
            true => decide(&facts),
            false => decide_first(&facts),
        };
        match decision {
            Decision::Idle => {
                self.seen = seen.head;
                self.report(seen.head, true)?;
                Ok(Pass::Idle)
            }
            Decision::Consume(span) => {
                let has_deletes = span.snapshots().iter().any(|snapshot| seen.deleting.contains(snapshot));
                let Source { schema, table } = &self.spec.source;
                let relation = feed::inserted_rows(self.writer.alias(), schema, table, span.snapshots(), has_deletes);
                let landed = Landed { has_more: span.has_more || span.upto() < seen.head, ..Landed::default() };
                self.consume(&position, &Work::Span(&span), &relation, landed)
            }
            Decision::Rescan(passage) => {
                let Source { schema, table } = &self.spec.source;
                let (after, at) = (passage.after(), passage.upto());
                let relation = feed::rows_after(self.writer.alias(), schema, table, after, at);
                let landed = Landed { gap: Some(passage.gap.to_string()), has_more: true, ..Landed::default() };
                self.count_gap("rescan");
                self.consume(&position, &Work::Rescan(&passage), &relation, landed)
            }
            Decision::Skip(passage) => self.skip(&position, &passage),
            refused => Err(self.refusal(refused, &seen, source)),
        }
    }

    /// Reads `relation` into windows and commits them; the cursor moves with the last.
    fn consume(
        &mut self,
        position: &Position,
        work: &Work<'_>,
        relation: &str,
        mut landed: Landed,
    ) -> Result<Pass, PassError> {
        if !self.is_source_checked {
            self.check_source(None)?;
            self.is_source_checked = true;
        }
        self.prepare()?;
        let relation = self.of_shard(relation);
        let reads = self.decoder.reads();
        let cursor = cursor_of(position)?;
        let mut ended = None;
        let began = Instant::now();
        let this = &*self;
        let streamed = windows(&this.reader, &relation, &reads, &this.spec.window, |window, IsLast(is_last)| {
            let part = if is_last { Part::Last } else { Part::Between };
            let permit = work.permit(part, this.token());
            match this.window(&window, &permit, &position.source, cursor, &mut landed)? {
                true => Ok(()),
                false => {
                    ended = Some(Pass::Again);
                    Err(PassError::LeaseLost { consumer: this.spec.name.clone() })
                }
            }
        });
        let in_windows = landed.phases.decode + landed.phases.stage + landed.phases.commit;
        landed.phases.read = began.elapsed().saturating_sub(in_windows);
        match (ended, streamed) {
            (Some(pass), _) => return self.look_again(pass),
            (None, Err(error)) if is_gone(&error) && !self.has_lost => {
                // What was decided on went away while it was read: the next look sees it as a gap, if it is one.
                tracing::warn!(%error, "what was being read has gone; the lake is looked at again");
                self.has_lost = true;
                return Ok(Pass::Again);
            }
            (None, streamed) => streamed??,
        }
        self.has_lost = false;
        let last = work.permit(Part::Last, self.token());
        landed.range = (last.from().0, last.to().0);
        self.landed(last.to(), &landed)?;
        Ok(Pass::Landed(landed))
    }

    /// Decodes and commits one window; `false` when the cursor was moved by somebody else or the outcome is unknown.
    fn window(
        &self,
        window: &Window,
        permit: &Permit,
        source: &str,
        cursor: SnapshotId,
        landed: &mut Landed,
    ) -> Result<bool, PassError> {
        let staged = self.decode_and_stage(window, cursor, Existing::Keep, landed)?;
        let began = Instant::now();
        let (from, to) = (permit.from().to_string(), permit.to().to_string());
        let change = Move { from: &from, to: &to, source, token: permit.token() };
        let Some((snapshot, written)) = self.commit_window(&change, &staged)? else { return Ok(false) };
        landed.phases.commit += began.elapsed();
        self.count(&written, window.count.rows, landed);
        landed.snapshot = snapshot.0;
        Ok(true)
    }

    /// Decodes a window into temp tables.
    pub(super) fn decode_and_stage(
        &self,
        window: &Window,
        cursor: SnapshotId,
        existing: Existing,
        landed: &mut Landed,
    ) -> Result<StagedWindow, PassError> {
        self.go_on()?;
        let targets = self.targets.as_deref().expect("they are prepared before a span is read");
        let began = Instant::now();
        let decoded = decoding::decode(self.decoder, &window.batches, (self.now)(), self.threads())
            .map_err(|error| PassError::Resolve(error, cursor))?;
        landed.phases.decode += began.elapsed();
        let began = Instant::now();
        let letters = dead_letter::stage(self.writer.session(), &self.letters_of(window, &decoded))?;
        let replaced = match existing {
            Existing::Keep => None,
            Existing::ReplaceOlder => {
                Some(replace::stage_parents(self.writer.session(), self.decoder, targets, window, &decoded)?)
            }
        };
        let staged = write::stage(self.writer.session(), targets, &decoded, letters, replaced)?;
        self.writer.faults().reach(FaultPoint::Staged);
        landed.phases.stage += began.elapsed();
        Ok(staged)
    }

    /// Commits a staged window, again and again while something passes; `None` when the position is not what it was.
    pub(super) fn commit_window(
        &self,
        change: &Move<'_>,
        staged: &StagedWindow,
    ) -> Result<Option<(SnapshotId, Written)>, PassError> {
        let targets = self.targets.as_deref().expect("they are prepared before a window is staged");
        let changes = staged.changes(targets);
        let mut has_healed = false;
        let mut pauses = backon::BackoffBuilder::build(patience());
        loop {
            let mut is_folding = false;
            let asked = Commit { by: &self.by(), position: &self.spec.cursor(), change: *change, changes: &changes };
            let outcome = commit(
                self.writer,
                &asked,
                |transaction| {
                    write::write(transaction, self.writer.alias(), targets, staged, |begins| is_folding = begins)
                },
                |written| self.tell(written, change),
            );
            match outcome {
                Outcome::Committed { snapshot, value } => return Ok(Some((snapshot, value))),
                Outcome::Moved { .. } | Outcome::Unknown(_) => return Ok(None),
                // The connections of an instance to a server that was away stay broken: the caller opens another one.
                Outcome::Retry(error) if error.class() == ErrorClass::Transient && self.is_on_server() => {
                    return Err(error.into());
                }
                Outcome::Retry(error) => match pauses.next() {
                    Some(pause) => self.pause(pause)?,
                    None => return Err(error.into()),
                },
                Outcome::Refused(error) if is_folding && !has_healed => {
                    tracing::warn!(%error, "a rollup did not agree with its base; it is made anew");
                    self.rebuild_rollups()?;
                    has_healed = true;
                }
                Outcome::Refused(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether the catalog is a server's, which may go away while this process lives.
    fn is_on_server(&self) -> bool {
        self.writer.lake().catalog_file().is_none()
    }

    fn tell(&self, written: &Written, change: &Move<'_>) -> String {
        let targets = self.targets.as_deref().unwrap_or_default();
        let rows =
            targets.iter().zip(&written.inserted).map(|(target, rows)| format!("{rows} in {}", target.target.table));
        let rows: Vec<String> = rows.collect();
        let moves =
            if change.from == change.to { format!("still at {}", change.to) } else { format!("up to {}", change.to) };
        format!("{}: {} rows; {} dead letters; {moves}", self.by(), rows.join(", "), written.letters)
    }

    /// After somebody else was seen at the cursor: goes on only as its owner.
    pub(super) fn look_again(&mut self, pass: Pass) -> Result<Pass, PassError> {
        match self.holds()? {
            true => Ok(pass),
            false => Err(PassError::LeaseLost { consumer: self.spec.name.clone() }),
        }
    }

    /// Returns whether the lease is still this process's.
    pub(super) fn holds(&self) -> Result<bool, PassError> {
        Ok(self.ownership.as_ref().map_or(Ok(true), Ownership::holds)?)
    }

    pub(super) fn landed(&mut self, upto: SnapshotId, landed: &Landed) -> Result<(), PassError> {
        metrics::gauge!("pintail_consumer_cursor_snapshot", "consumer" => self.spec.full_name()).set(upto.0 as f64);
        self.seen = self.seen.max(upto);
        Ok(self.report(upto, !landed.has_more)?)
    }
}
