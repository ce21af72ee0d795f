//! A write that may find nothing to do: the comparison before the transaction, and what is remembered when nothing
//! differs.
//!
//! Nothing is committed then, so there is no stamp: only the store says that the slice was computed at the new inputs,
//! and when that is lost the next run compares again. The comparison comes first and the check of the commits after it:
//! when nobody has touched the target until then, what was compared is the version that counts.

use std::time::Instant;

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::sql::Statement;
use pintail_core::sql::stamp::StampEntry;
use pintail_core::sql::strategy::{
    BOOKKEEPING, Compared, ComparedColumn, IfChangedFacts, Projected, compare_merge, compare_replace, compares_first,
    merge_differing, replace_differing,
};
use pintail_core::write::ErrorClass;
use pintail_engine::fault::FaultPoint;
use pintail_engine::lake::TableFacts;
use pintail_engine::{Session, WriteTransaction};
use pintail_store::{LakeVersion, SuccessKind, SuccessRecord};

use super::attempt::{Attempt, Ended};
use super::commit::check_commits;
use super::data_tests::{self, TestRows};
use super::shape::{Shape, ShapeFacts};
use super::staging::Staged;
use crate::executors::{StepFailure, StepOutcome};

/// A version that an attempt found to be what it would have written.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The version's snapshot.
    pub snapshot: SnapshotId,
    /// What a commit would have said.
    pub entry: StampEntry,
}

/// Returns the statements of a write of what differs, and puts the comparison into `shape`; `None` when the write does not
/// compare first.
pub fn compared_write(facts: &ShapeFacts<'_>, shape: &mut Shape) -> Option<Vec<Statement>> {
    let table = facts.table.filter(|_| !shape.is_new_generation)?;
    let materialize = facts.script.header.materialize.as_ref()?;
    let compares = compares_first(&IfChangedFacts {
        is_declared: materialize.value.if_changed,
        strategy: facts.strategy,
        is_whole: shape.slice.is_none(),
        has_key: matches!(materialize.value.strategy, WriteStrategy::Merge { .. }),
        has_consumers: facts.beside.has_consumers,
        rows: facts.beside.rows,
    });
    if !compares {
        return None;
    }
    let columns = compared_columns(Some(table), shape);
    let compared = Compared { target: &shape.target, columns: &columns, slice: shape.slice.as_ref() };
    let (mut comparison, statements) = match facts.strategy {
        WriteStrategy::Merge { key, .. } => (compare_merge(&compared, key), merge_differing(&compared, key)),
        _ => (compare_replace(&compared), replace_differing(&compared)),
    };
    comparison.ends_when_same = !shape.schema_changes;
    shape.rows_after = facts.beside.staged_rows.filter(|_| matches!(facts.strategy, WriteStrategy::Replace));
    shape.comparison = Some(comparison);
    Some(statements)
}

/// Returns the table's columns after the write as both sides know them, without those that a history keeps itself.
pub fn compared_columns(table: Option<&TableFacts>, shape: &Shape) -> Vec<ComparedColumn> {
    let live = || table.iter().flat_map(|table| &table.schema.columns);
    let is_live = |name: &str| live().any(|column| column.name.eq_ignore_ascii_case(name));
    let is_staged = |name: &str| {
        shape.target.projection.0.iter().any(|projected| {
            let (Projected::Column(column) | Projected::Cast { column, .. } | Projected::Text { column, .. }) =
                projected;
            column.0.eq_ignore_ascii_case(name)
        })
    };
    let is_kept_by_history = |name: &str| {
        let is_bookkeeping = BOOKKEEPING.iter().any(|kept| kept.eq_ignore_ascii_case(name));
        is_bookkeeping && !is_staged(name)
    };
    let added = shape.schema.columns.iter().filter(|column| !is_live(&column.name));
    live()
        .chain(added)
        .filter(|column| !is_kept_by_history(&column.name))
        .map(|column| ComparedColumn {
            name: column.name.clone(),
            data_type: column.data_type.clone(),
            is_staged: is_staged(&column.name),
            is_live: is_live(&column.name),
        })
        .collect()
}

/// Asks what differs, if the write is to know it; ends the attempt when nothing does.
pub fn look(
    attempt: &mut Attempt<'_>,
    staged: &Staged,
    base: SnapshotId,
    facts: Option<&TableFacts>,
    shape: &Shape,
    strategy: &WriteStrategy,
) -> Result<Option<Ended>, StepFailure> {
    let Some(comparison) = &shape.comparison else {
        attempt.reach(FaultPoint::Compared);
        return Ok(None);
    };
    let session = &staged.session;
    let is_same = attempt.phase("compare", |_| -> Result<bool, StepFailure> {
        session.run_all(&comparison.before)?;
        let question = &comparison.question;
        let is_same: bool = session.one(question.purpose, &question.sql, |row| row.get(0))?;
        if !is_same {
            session.run_all(&comparison.after)?;
        }
        Ok(is_same)
    })?;
    attempt.reach(FaultPoint::Compared);
    if !is_same {
        return Ok(None);
    }
    // In an atomic run every step is part of the one commit.
    let may_end = comparison.ends_when_same && !attempt.stages_inside;
    let known = if may_end { known_version(attempt)? } else { None };
    let Some((snapshot, rows)) = known else {
        // The rows are the same, and something else is to be committed: columns, or the slice's first stamp.
        session.run_all(&comparison.after)?;
        return Ok(None);
    };
    attempt.go_on("compare with the table")?;
    if let Some(ended) = check_after(attempt, session, base, facts)? {
        return Ok(Some(ended));
    }
    // The tests may be new, or about other tables: they look at what is there.
    attempt.phase("test", |attempt| {
        let rows = TestRows::Written { slice: shape.slice.as_ref() };
        data_tests::in_transaction(attempt, session, shape, strategy, rows)
    })?;
    let rows = match strategy {
        WriteStrategy::Replace => Some(staged.rows),
        _ => rows,
    };
    let entry = StampEntry { table_id: facts.and_then(TableFacts::committed_id), rows, ..attempt.entry() };
    Ok(Some(Ended::Unchanged(Box::new(Confirmed { snapshot, entry }))))
}

/// Returns the snapshot and the rows of the slice's version; `None` when there is none to confirm.
pub(super) fn known_version(attempt: &Attempt<'_>) -> Result<Option<(SnapshotId, Option<u64>)>, StepFailure> {
    let asset: Asset = attempt.asset.clone();
    let states =
        attempt.ctx.runtime.block_on(attempt.ctx.store.current_slices(Some(std::slice::from_ref(&asset)))).map_err(
            |error| {
                let message = crate::with_sources(&error);
                let failure = StepFailure::user(Code::TRANSIENT_ERROR, "look up the version that is there", message);
                StepFailure { class: ErrorClass::Transient, ..failure }
            },
        )?;
    let state = states.into_iter().find(|state| state.partition.as_ref() == attempt.partition());
    let current = state.and_then(|state| state.current);
    let version = current.filter(|current| !StampEntry::NO_VERSION.contains(&current.strategy.as_str()));
    Ok(version.and_then(|version| Some((version.snapshot?, version.rows))))
}

/// Reads what was committed until now; the transaction writes nothing.
fn check_after(
    attempt: &Attempt<'_>,
    session: &Session,
    base: SnapshotId,
    facts: Option<&TableFacts>,
) -> Result<Option<Ended>, StepFailure> {
    let transaction = WriteTransaction::begin(session, &attempt.alias)?;
    let ended = check_commits(attempt, &transaction, base, facts)?;
    transaction.roll_back();
    Ok(ended)
}

/// Writes into the store that the version is that of the new inputs, and returns what became of the step.
pub fn remember(attempt: &mut Attempt<'_>, confirmed: Confirmed) -> StepOutcome {
    let Confirmed { snapshot, entry } = confirmed;
    let rows = entry.rows;
    let finished = (attempt.ctx.now)();
    let record = SuccessRecord {
        kind: SuccessKind::Unchanged,
        entry,
        version: Some(LakeVersion { lake: attempt.lake.name.clone(), snapshot }),
        schema: None,
        started: finished - attempt.started.elapsed(),
        finished,
        statements: attempt.recorded_statements(),
        tests: attempt.tests.clone(),
        timings: attempt.timings(),
    };
    let began = Instant::now();
    if let Err(error) = attempt.ctx.runtime.block_on(attempt.ctx.store.record_success(&record)) {
        attempt.notes.push(format!(
            "nothing differs from snapshot {snapshot}, but the store could not be written ({}); the next run compares \
             again",
            crate::with_sources(&error)
        ));
    }
    attempt.add_time("remember", began.elapsed());
    attempt.reach(FaultPoint::Remembered);
    StepOutcome::Unchanged { snapshot, rows }
}
