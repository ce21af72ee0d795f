//! A step that writes what its target held at an older snapshot: the same lease, check, stamp and proof as any write, with
//! another stage.
//!
//! Neither guards nor tests stand in the way of going back: the rows were there before. The stamp says what is live as
//! the version that it replaces did (the script's text, the inputs), so that going back makes nothing due that was not.

use std::rc::Rc;

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::partition::Increment;
use pintail_core::schema::Schema;
use pintail_core::sql::restore::{Fit, fit, restore, stage_old};
use pintail_core::sql::stamp::StampEntry;
use pintail_core::sql::strategy::{Layout, Slice, Target, projection};
use pintail_engine::Session;
use pintail_engine::lake::{self, TableFacts};

use super::attempt::Attempt;
use super::commit::{Prepared, refuse_foreign_target, seen};
use super::shape::{Shape, partitions_of, slice_of, spec_of};
use super::staging::{HeldPins, Staged};
use crate::executors::{Slot, StepFailure};

/// Opens the session, and holds the older snapshot as long as the stage lives.
pub fn open(attempt: &mut Attempt<'_>, slot: &mut Slot, snapshot: SnapshotId) -> Result<Staged, StepFailure> {
    slot.attach_for_writing(attempt.lake)?;
    let session = Rc::new(slot.session()?);
    let watch = Rc::new(attempt.ctx.cancel.watch(slot.number, &session));
    let base = lake::head(&session, &attempt.alias)?;
    attempt.pins.entry(attempt.lake.name.clone()).or_insert(base);
    let pins = HeldPins::of(attempt, snapshot)?;
    if !lake::stays(attempt.lake, &session, &attempt.alias, snapshot)? {
        let message = format!("snapshot {snapshot} of lake `{}` is gone", attempt.lake.name);
        return Err(StepFailure::user(Code::SNAPSHOT_GONE, "read the older version", message)
            .with_help(format!("`pintail history {}` lists the versions", attempt.asset.short_name())));
    }
    Ok(Staged::new(session, base, pins, watch))
}

/// Stages the older version.
pub fn fill(attempt: &Attempt<'_>, staged: &mut Staged, snapshot: SnapshotId) -> Result<(), StepFailure> {
    let (schema, table) = attempt.table;
    let session = &staged.session;
    let old = lake::table_at(session, &attempt.alias, schema, table, snapshot)?.ok_or_else(|| {
        let message = format!("{} did not exist at snapshot {snapshot}", attempt.asset);
        StepFailure::user(Code::ROLLBACK_REFUSED, "read the older version", message)
    })?;
    let slice = slice(attempt, &old.schema)?;
    let relation = lake::at_version(&attempt.alias, schema, table, snapshot);
    lake::read_old_versions(session)?;
    let rows = session.run(&stage_old(&attempt.stage, &relation, slice.as_ref()));
    // The setting is the instance's, which other steps use afterwards.
    lake::fold_again(session)?;
    staged.rows = rows?;
    staged.schema = old.schema;
    Ok(())
}

fn slice(attempt: &Attempt<'_>, schema: &Schema) -> Result<Option<Slice>, StepFailure> {
    attempt.partition().map(|key| slice_of(attempt.script, schema, key)).transpose()
}

/// Shapes the write.
pub fn prepare(attempt: &mut Attempt<'_>, staged: &mut Staged, base: SnapshotId) -> Result<Prepared, StepFailure> {
    let facts = attempt.target_table(&staged.session, base)?;
    refuse_foreign_target(attempt, facts.as_ref())?;
    let fit = fit(&staged.schema, facts.as_ref().map(|facts| &facts.schema), attempt.partition().is_none());
    if let Fit::Refuse { reasons } = &fit {
        let message = format!("the table can no longer hold the older rows of the partition:\n{}", reasons.join("\n"));
        return Err(StepFailure::user(Code::ROLLBACK_REFUSED, "compare the columns", message).with_help(
            "roll the whole table back (without `--partition`), or read the rows with `pintail query --at`",
        ));
    }
    if matches!(fit, Fit::Rebuild { .. }) && attempt.script.current_view().is_some() {
        let message =
            "the columns of the history have changed since, and its view of current rows reads the newer ones";
        return Err(StepFailure::user(Code::ROLLBACK_REFUSED, "compare the columns", message).with_help(
            "roll back to a version with the same columns (`pintail diff` shows them), or read the older one with `pintail \
             query --at`",
        ));
    }
    for note in notes(&fit) {
        if !attempt.notes.contains(&note) {
            attempt.notes.push(note);
        }
    }
    let shape = shape_of(attempt, staged, facts.as_ref(), &fit)?;
    Ok(Prepared { base, facts, shape, strategy: WriteStrategy::Replace, ended: None })
}

fn shape_of(
    attempt: &Attempt<'_>,
    staged: &Staged,
    facts: Option<&TableFacts>,
    fit: &Fit,
) -> Result<Shape, StepFailure> {
    let none = std::collections::BTreeMap::new();
    let casts = if let Fit::Keep { casts, .. } = fit { casts } else { &none };
    let target = Target {
        write: attempt.target(),
        stage: attempt.stage.clone(),
        projection: projection(&staged.schema, casts, &[], None),
    };
    let layout =
        Layout { partition_by: partitions_of(attempt.script, &staged.schema)?, ..attempt.script.layout_words() };
    let slice = slice(attempt, facts.map_or(&staged.schema, |facts| &facts.schema))?;
    let statements = restore(fit, &target, &layout, slice.as_ref());
    let is_kept = matches!(fit, Fit::Keep { .. });
    let (schema, partition) = match (is_kept, facts) {
        (true, Some(facts)) => (facts.schema.clone(), facts.partition.clone()),
        _ => (staged.schema.clone(), spec_of(&layout.partition_by)),
    };
    Ok(Shape {
        target,
        slice,
        window: None,
        comparison: None,
        rows_after: None,
        history: None,
        statements,
        schema,
        partition,
        schema_changes: !is_kept,
        is_new_generation: !is_kept,
        notes: Vec::new(),
    })
}

fn notes(fit: &Fit) -> Vec<String> {
    match fit {
        Fit::Create => vec!["the table was gone: it is made again".to_owned()],
        Fit::Rebuild { changes } => {
            let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
            let note = format!(
                "the table takes its old columns back:\n{}\na script whose query has the newer ones needs \
                 `on_schema_change` to write it again",
                lines.join("\n")
            );
            vec![note]
        }
        Fit::Keep { missing, .. } if !missing.is_empty() => {
            vec![format!("NULL, because they came after that version: {}", missing.join(", "))]
        }
        Fit::Keep { .. } | Fit::Refuse { .. } => Vec::new(),
    }
}

/// Returns the stamp of a restored version: what it is computed from is what the version that it replaces was.
pub fn stamped(
    attempt: &Attempt<'_>,
    session: &Session,
    entry: StampEntry,
    snapshot: SnapshotId,
) -> Result<StampEntry, StepFailure> {
    let slices = std::slice::from_ref(attempt.asset);
    let states = attempt.ctx.runtime.block_on(attempt.ctx.store.current_slices(Some(slices)));
    let states = states.map_err(|error| StepFailure::unread("look the live version up", &error))?;
    let live = states.into_iter().find(|state| state.partition.as_ref() == attempt.partition());
    let mut entry = StampEntry { strategy: StampEntry::ROLLBACK.to_owned(), restored: Some(snapshot), ..entry };
    if let Some(live) = live.and_then(|state| state.current).filter(|live| live.strategy != "adopt") {
        entry.script_hash = live.script_hash;
        entry.inputs = live.inputs;
        entry.files = live.files;
    }
    if attempt.script.increment_column().is_some() {
        entry.increment = increment_as_of(attempt, session, snapshot)?;
    }
    Ok(entry)
}

/// Returns what the version at `snapshot` had consumed: what came later is taken in again.
fn increment_as_of(
    attempt: &Attempt<'_>,
    session: &Session,
    snapshot: SnapshotId,
) -> Result<Option<Increment>, StepFailure> {
    let commits = lake::maintain::commits_and_kept(session, &attempt.alias, SnapshotId(-1), snapshot)?;
    let asset = attempt.asset.to_string();
    let entries = commits.iter().rev().flat_map(|commit| seen(commit).stamps);
    Ok(entries.filter(|entry| entry.asset == asset).find_map(|entry| entry.increment))
}
