//! Scripts with `stream`: the step's query selects from `changes`, and its cursor moves in the commit of its rows.
//!
//! Invariant: what was taken is what the cursor says. When somebody else has moved it, nothing is written, and the step
//! looks and stages again. A full refresh reads the whole table and sets the cursor to the version that it read.

use pintail_core::annotation::{OnDelete, StreamStart, WriteStrategy};
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_core::stream::Kinds;
use pintail_core::write::ErrorClass;
use pintail_engine::lake::{self, TableFacts};
use pintail_engine::{EngineError, LakeLocation, Session, WriteTransaction};
use pintail_streams::consumer::{PassError, Place, ScriptFeed, Source, Spec, Start, script_feed};

use super::attempt::{Attempt, Ended};
use super::unchanged::{Confirmed, known_version};
use crate::executors::{Slot, StepFailure};
use crate::project::CompiledScript;

/// The temp view of the changes; in the script it is called `changes`.
pub const CHANGES: &str = "_pt_changes";

/// Keys whose last change is a delete, in a temp table.
fn deleted_of(attempt: &Attempt<'_>) -> Relation {
    Relation::temp(&format!("_pt_deleted_{}", attempt.job.index))
}

/// What a step has taken.
#[derive(Clone, Debug)]
pub struct OpenStream {
    feed: ScriptFeed,
    /// How many keys go because their last change is a delete.
    deletes: u64,
}

/// Returns the consumer that a script is.
pub fn spec_of(script: &CompiledScript) -> Option<Spec> {
    let stream = &script.header.stream.as_ref()?.value;
    let Asset::Lake { schema, table, .. } = &stream.asset else { return None };
    let name = format!("script.{}", script.name().as_str().replace('/', "."));
    let mut spec = Spec::new(name, Source { schema: schema.clone(), table: table.clone() });
    spec.start = match stream.start {
        StreamStart::Head => Start::Head,
        StreamStart::Earliest => Start::Earliest,
        StreamStart::Snapshot(snapshot) => Start::After(SnapshotId(snapshot)),
    };
    // One commit takes all that is taken, so only a limit that was asked for bounds it.
    spec.span.snapshots = usize::MAX;
    spec.span.rows = stream.batch_rows.unwrap_or(u64::MAX);
    spec.span.bytes = stream.batch_bytes.unwrap_or(u64::MAX);
    spec.gap = stream.gap;
    Some(spec)
}

/// Returns which changes a script with `stream` asks for.
pub fn kinds_of(script: &CompiledScript) -> Kinds {
    let asks = script.header.stream.as_ref().is_some_and(|stream| stream.value.all_changes);
    match script.strategy() {
        WriteStrategy::Merge { .. } if asks || on_delete(script) == OnDelete::Delete => Kinds::All,
        _ => Kinds::Inserts,
    }
}

fn on_delete(script: &CompiledScript) -> OnDelete {
    let declared = script.header.materialize.as_ref().and_then(|line| line.value.on_delete);
    declared.unwrap_or(OnDelete::Ignore)
}

/// Finds what the step takes; returns how it ended when nothing came.
pub fn begin(attempt: &mut Attempt<'_>, slot: &mut Slot) -> Result<Option<Ended>, StepFailure> {
    let Some(spec) = spec_of(attempt.script) else { return Ok(None) };
    slot.attach_for_writing(attempt.lake)?;
    let session = slot.session()?;
    let pin = match attempt.pins.get(&attempt.lake.name) {
        Some(pin) => *pin,
        None => lake::head(&session, &attempt.alias)?,
    };
    let name = spec.full_name();
    let known = attempt.ctx.runtime.block_on(attempt.guard.consumers()).map_err(EngineError::from)?;
    let vouched = known.into_iter().find(|row| row.consumer == name).map_or(SnapshotId(0), |row| row.snapshot);
    let alias = attempt.alias.clone();
    let place = Place { session: &session, alias: &alias, lake: &attempt.lake.name, pin };
    let is_anew = attempt.job.step.full_refresh;
    let feed = attempt
        .phase("pin", |attempt| script_feed(&place, &spec, kinds_of(attempt.script), is_anew, vouched))
        .map_err(|error| failure(attempt, error))?;
    if feed.has_more {
        // What waits is seen as a change after this, so that the next run goes on.
        attempt.pins.insert(attempt.lake.name.clone(), feed.upto);
    }
    for note in gap_notes(&feed) {
        if !attempt.notes.contains(&note) {
            attempt.warn(note);
        }
    }
    let is_empty = feed.is_empty;
    attempt.stream = Some(OpenStream { feed, deletes: 0 });
    if !is_empty {
        return Ok(None);
    }
    let Some((snapshot, rows)) = known_version(attempt)? else { return Ok(None) };
    let entry = pintail_core::sql::stamp::StampEntry { rows, ..attempt.entry() };
    Ok(Some(Ended::Unchanged(Box::new(Confirmed { snapshot, entry }))))
}

/// Returns what is said about gaps that are passed.
fn gap_notes(feed: &ScriptFeed) -> Vec<String> {
    let skipped = feed
        .skipped
        .iter()
        .map(|gap| format!("{gap} were expired before they were taken and were left out; a dead letter records it"));
    let rescanned = feed.rescanned.iter().map(|gap| {
        format!(
            "{gap} were expired before they were taken, so the table's rows of them were read instead; what was deleted in \
             them was not seen, and what was changed in them counts as a row that came"
        )
    });
    skipped.chain(rescanned).collect()
}

fn failure(attempt: &Attempt<'_>, error: PassError) -> StepFailure {
    let class = error.class();
    let message = crate::with_sources(&error);
    let refresh = format!("`pintail run --select {} --full-refresh` reads the whole table anew", attempt.script.name());
    let (code, help) = match &error {
        PassError::Engine(_) => (Code::ENGINE_ERROR, None),
        PassError::Gap { .. } => (
            Code::SNAPSHOT_GONE,
            Some(format!(
                "`gap=rescan` on the `stream` line reads again what the table holds of them, `gap=skip` leaves them out on \
                 record; {refresh}"
            )),
        ),
        _ => (Code::SNAPSHOT_GONE, Some(refresh)),
    };
    // What a consumer would be told to do is not what a script can do.
    let message = message.split("; ").next().unwrap_or_default().to_owned();
    let span = attempt.script.header.stream.as_ref().map(|stream| stream.span);
    let failure = StepFailure { class, ..StepFailure::user(code, "find what has come", message) }.at(span);
    match help {
        Some(help) => failure.with_help(help),
        None => failure,
    }
}

/// Makes the view of what a script would take next, in a session that only asks. A gap is for the run to tell.
pub fn preview(
    session: &Session,
    script: &CompiledScript,
    location: &LakeLocation,
    pin: SnapshotId,
) -> Result<(), StepFailure> {
    let Some(spec) = spec_of(script) else { return Ok(()) };
    let alias = location.write_alias();
    let place = Place { session, alias: &alias, lake: &location.name, pin };
    let feed = script_feed(&place, &spec, kinds_of(script), false, SnapshotId(i64::MAX - 1));
    let feed = feed.map_err(|error| {
        let message = crate::with_sources(&error);
        StepFailure::user(Code::SNAPSHOT_GONE, "find what has come", message)
    })?;
    show(session, &feed)
}

fn show(session: &Session, feed: &ScriptFeed) -> Result<(), StepFailure> {
    let sql = format!("CREATE OR REPLACE TEMP VIEW {} AS\n{}", Ident::new(CHANGES), feed.query);
    session.run(&Statement::new("show the changes", sql))?;
    Ok(())
}

/// Makes the view of the changes in the session that stages.
pub fn make_view(attempt: &Attempt<'_>, session: &Session) -> Result<(), StepFailure> {
    attempt.stream.as_ref().map_or(Ok(()), |stream| show(session, &stream.feed))
}

/// Returns the ORDER BY list by which the last change of a key comes first, as far as the query selects what it needs: a
/// delete comes before an insert of the same snapshot.
pub fn last_first(session: &Session, query: &str) -> Result<Option<String>, StepFailure> {
    let columns = session.describe(query)?;
    let has = |wanted: &str| columns.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    Ok(match (has("snapshot_id"), has("change_type")) {
        (true, true) => Some("snapshot_id DESC, change_type IN ('delete', 'update_preimage')".to_owned()),
        (true, false) => Some("snapshot_id DESC".to_owned()),
        _ => None,
    })
}

/// Takes what is no row of the table out of the stage: the keys whose last change is a delete, and the two columns that
/// only say how the changes follow each other.
pub fn settle_stage(attempt: &mut Attempt<'_>, session: &Session) -> Result<u64, StepFailure> {
    if attempt.stream.is_none() {
        return Ok(0);
    }
    let WriteStrategy::Merge { key, .. } = attempt.script.strategy() else { return Ok(0) };
    let stage = attempt.stage.clone();
    let columns = session.describe(&stage.to_string())?;
    let has = |wanted: &str| columns.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
    let mut removed = 0;
    if has("change_type") {
        let is_gone = "change_type IN ('delete', 'update_preimage')";
        let key: Vec<String> = key.iter().map(|column| Ident::new(column).to_string()).collect();
        let keep = format!(
            "CREATE OR REPLACE TEMP TABLE {} AS SELECT {} FROM {stage} WHERE {is_gone}",
            deleted_of(attempt),
            key.join(", ")
        );
        session.run(&Statement::new("note the keys that go", keep))?;
        removed = session
            .run(&Statement::new("take them out of the stage", format!("DELETE FROM {stage} WHERE {is_gone}")))?;
        if 0 < removed && on_delete(attempt.script) == OnDelete::Ignore {
            attempt.warn(format!(
                "{removed} keys whose last change is a delete were left as they are; `on_delete=delete` removes them"
            ));
        }
    }
    for column in ["change_type", "snapshot_id"].into_iter().filter(|column| has(column)) {
        session.run(&Statement::new(
            "drop what orders the changes",
            format!("ALTER TABLE {stage} DROP COLUMN {column}"),
        ))?;
    }
    if let (Some(stream), OnDelete::Delete) = (&mut attempt.stream, on_delete(attempt.script)) {
        stream.deletes = removed;
    }
    Ok(removed)
}

/// Moves the cursor in the open transaction, and deletes the rows whose keys go; returns how many.
pub fn advance(
    attempt: &Attempt<'_>,
    transaction: &WriteTransaction<'_>,
    facts: Option<&TableFacts>,
) -> Result<u64, StepFailure> {
    let Some(stream) = &attempt.stream else { return Ok(0) };
    let token = attempt.lease.as_ref().map_or(i64::MAX, |lease| lease.token());
    for record in stream.feed.records(&attempt.alias) {
        transaction.run(&record)?;
    }
    let moved = transaction.run(&stream.feed.statement(&attempt.alias, token))?;
    if moved != 1 && !stream.feed.makes_cursor() {
        let message = "another process has moved the cursor of this script";
        let conflict = StepFailure::user(Code::CONFLICT, "move the cursor", message);
        return Err(StepFailure { class: ErrorClass::Conflict, ..conflict });
    }
    let WriteStrategy::Merge { key, .. } = attempt.script.strategy() else { return Ok(0) };
    if stream.deletes == 0 || facts.is_none() {
        return Ok(0);
    }
    let same: Vec<String> = key
        .iter()
        .map(Ident::new)
        .map(|column| format!("_pt_gone.{column} IS NOT DISTINCT FROM _pt_old.{column}"))
        .collect();
    let sql = format!(
        "DELETE FROM {} AS _pt_old\nWHERE EXISTS (\n  SELECT 1\n  FROM {} AS _pt_gone\n  WHERE {}\n)",
        attempt.target(),
        deleted_of(attempt),
        same.join("\n    AND ")
    );
    Ok(transaction.run(&Statement::new("delete the rows whose last change is a delete", sql))?)
}

/// Tells the guard how far the script has come. A failure keeps expiry waiting and nothing else.
pub fn report(attempt: &mut Attempt<'_>) {
    let Some(stream) = &attempt.stream else { return };
    let progress = stream.feed.progress((attempt.ctx.now)().timestamp_micros());
    let told = attempt.ctx.runtime.block_on(attempt.guard.report_progress(&progress));
    if let Err(error) = told {
        attempt.notes.push(format!("how far the stream has come was not told ({error}); expiry waits for it"));
    }
}
