//! The stage of a target outside lakes: the query evaluated once by the engine at its pins, and the guards on its rows.

use std::sync::Arc;

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::schema::Schema;
use pintail_core::sql::Relation;
use pintail_core::sql::strategy::{
    GuardCounts, GuardFailure, GuardKind, GuardRules, STAGE, guards, judge, stage as stage_sql,
};
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::{Guard, PinId};
use pintail_engine::{EngineError, Session, lake};
use tokio::runtime::Handle;

use super::Attempt;
use crate::executors::context::CancelWatch;
use crate::executors::duckdb::{
    ReadAs, Shape, deduplicate, mark_untyped, prepare_session, refuse_repeated_columns, rewrite, sample,
};
use crate::executors::failure::Sample;
use crate::executors::{Slot, StepFailure};

/// A stage, and what it was made from.
pub struct Staged {
    /// The session that holds the temp table.
    pub session: Session,
    /// The stage's columns.
    pub schema: Schema,
    /// Rows in it.
    pub rows: u64,
    /// The newest version of the target's place when the query was run; `None` when it must be read anew.
    pub base: Option<SnapshotId>,
    _pins: HeldPins,
    _watch: CancelWatch,
}

/// What a stage pins, each in its lake's guard; let go when dropped, also when the step panics.
struct HeldPins {
    runtime: Handle,
    pins: Vec<(Arc<Guard>, PinId)>,
}

impl Drop for HeldPins {
    fn drop(&mut self) {
        for (guard, pin) in &self.pins {
            if let Err(error) = self.runtime.block_on(guard.unpin(*pin)) {
                tracing::warn!(%error, "a pin could not be removed");
            }
        }
    }
}

/// Evaluates the script's query into a temp table of the slot's engine.
pub fn stage(attempt: &mut Attempt<'_>, slot: &mut Slot, base: Option<SnapshotId>) -> Result<Staged, StepFailure> {
    let session = slot.session()?;
    let watch = attempt.ctx.cancel.watch(slot.number, &session);
    let pins = attempt.phase("pin", |attempt| pin_lakes(attempt, slot))?;
    let mut staged = Staged { session, schema: Schema::default(), rows: 0, base, _pins: pins, _watch: watch };
    attempt.go_on("stage the query")?;
    if let Err(failure) = attempt.phase("stage", |attempt| fill(attempt, &mut staged)) {
        attempt.sent.extend(staged.session.take_sent());
        return Err(failure);
    }
    attempt.reach(FaultPoint::Staged);
    Ok(staged)
}

fn pin_lakes(attempt: &Attempt<'_>, slot: &mut Slot) -> Result<HeldPins, StepFailure> {
    let ctx = attempt.ctx;
    let mut held = HeldPins { runtime: ctx.runtime.clone(), pins: Vec::new() };
    for name in attempt.script.lakes_needed(&ctx.project) {
        let Some(location) = ctx.lakes.get(&name) else { continue };
        let Some(pin) = attempt.pins.get(&name).copied() else {
            return Err(location.missing().into());
        };
        if let Some(guard) = ctx.guards.get(&name) {
            let reason = format!("run {} reads it", ctx.run);
            let pinned = ctx.runtime.block_on(guard.pin(pin, &reason, (ctx.now)().timestamp_micros()));
            held.pins.push((guard.clone(), pinned.map_err(EngineError::from)?));
        }
        slot.attach_pinned(location, pin)?;
    }
    Ok(held)
}

fn fill(attempt: &Attempt<'_>, staged: &mut Staged) -> Result<(), StepFailure> {
    let script = attempt.script;
    let upstream = attempt.pins.get(&attempt.ctx.project.default_lake).copied();
    prepare_session(&staged.session, attempt.ctx, attempt.job, script, upstream)?;
    let query_span = script.query_span();
    let query = rewrite(&script.text, query_span, &ReadAs::PINNED, attempt.partition());
    let strategy = script.strategy();
    let statement = stage_sql(&Relation::temp(STAGE), &query.sql, deduplicate(&strategy)?.as_ref());
    staged.rows = staged.session.run(&statement.statement).map_err(|error| {
        StepFailure::in_text(error, |position| query.original_offset_in(position, statement.select_at), query_span)
    })?;
    staged.schema = lake::schema_of(staged.session.describe(&Relation::temp(STAGE).to_string())?);
    mark_untyped(&staged.session, &query.sql, &mut staged.schema);
    refuse_repeated_columns(&staged.session, &query.sql, &staged.schema).map_err(|failure| failure.at(query_span))
}

/// Refuses staged rows that would spoil the target: NULL or repeated keys, rows outside the partition.
pub fn guard_stage(attempt: &Attempt<'_>, staged: &Staged, shape: &Shape) -> Result<(), StepFailure> {
    let declared = attempt.script.strategy();
    let key: &[String] = match &declared {
        WriteStrategy::Merge { key, .. } => key,
        _ => &[],
    };
    let rules = GuardRules { key, window: shape.window.as_ref(), refuses_empty: false };
    if key.is_empty() && rules.window.is_none() {
        return Ok(());
    }
    let queries = guards(&shape.target, &rules);
    let counts = staged.session.one("guard the stage", &queries.summary, |row| {
        let count = |index: usize| row.get::<_, i64>(index).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(GuardCounts {
            row_count: count(0)?,
            null_keys: count(1)?,
            duplicate_keys: count(2)?,
            duplicate_rows: count(3)?,
            outside_window: count(4)?,
            null_by: count(5)?,
        })
    })?;
    let Some(failure) = judge(&counts, &rules).into_iter().next() else { return Ok(()) };
    let rows = match queries.samples.iter().find(|(kind, _)| *kind == failure.kind) {
        Some((_, sql)) => sample(&staged.session, sql)?,
        None => Sample::default(),
    };
    Err(attempt.guarded(failure, rows))
}

impl Attempt<'_> {
    /// Returns the failure of a guard.
    pub fn guarded(&self, failure: GuardFailure, sample: Sample) -> StepFailure {
        let code = match failure.kind {
            GuardKind::NullKeys => Code::NULL_KEYS,
            GuardKind::DuplicateKeys => Code::DUPLICATE_KEYS,
            GuardKind::OutsideWindow | GuardKind::NullBy => Code::ROWS_OUTSIDE_WINDOW,
            GuardKind::EmptyReplace => Code::EMPTY_REPLACE,
        };
        StepFailure::user(code, "guard the stage", failure.message).with_help(failure.help).with_sample(sample).at(self
            .script
            .header
            .materialize
            .as_ref()
            .map(|line| line.span))
    }

    /// Refuses to empty what has rows, unless the script allows it.
    pub fn guard_empty(&self, staged_rows: u64, has_rows: bool) -> Result<(), StepFailure> {
        let allows_empty = self.script.header.materialize.as_ref().is_some_and(|line| line.value.allow_empty);
        let is_replace = matches!(self.strategy(), WriteStrategy::Replace);
        let rules = GuardRules { key: &[], window: None, refuses_empty: is_replace && !allows_empty && has_rows };
        let counts = GuardCounts { row_count: staged_rows, ..GuardCounts::default() };
        match judge(&counts, &rules).into_iter().next() {
            Some(failure) => Err(self.guarded(failure, Sample::default())),
            None => Ok(()),
        }
    }
}
