//! The write of one file: lease, stage, guards, tests, the file beside, publication and look-up.

use std::path::{Path, PathBuf};

use pintail_core::diagnostic::Code;
use pintail_core::schema::{Schema, SchemaDecision, decide, diff};
use pintail_core::sql::stamp::{StampEntry, to_extra_info};
use pintail_core::sql::strategy::{Projected, STAGE};
use pintail_core::sql::{Literal, Relation, Statement};
use pintail_core::write::ErrorClass;
use pintail_engine::fault::FaultPoint;
use pintail_engine::object_store;
use pintail_store::AssetKey;
use sha2::{Digest, Sha256};

use super::destination::{Destination, Found, file_failure};
use crate::executors::duckdb::{Shape, ShapeFacts, Surroundings, shape as lake_shape};
use crate::executors::outside::{Attempt, Ended, FileLease, Landed, Staged, guard_stage, stage, test_new_rows};
use crate::executors::{Slot, StepFailure};
use crate::project::object_address;

/// A file on its way, removed when dropped: after publication there is nothing left to remove.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Writes the attempt's file.
pub fn write(attempt: &mut Attempt<'_>, slot: &mut Slot) -> Result<Ended, StepFailure> {
    let project = &attempt.ctx.project.project;
    let (runtime, redactor) = (&attempt.ctx.runtime, &attempt.ctx.instance.redactor);
    let destination = Destination::of(project, attempt.asset, attempt.partition(), runtime, redactor)?;
    attempt.lease = Some(attempt.phase("lease", |attempt| FileLease::take(attempt))?);
    attempt.reach(FaultPoint::Leased);
    attempt.tries(slot, |attempt, slot, staged| try_once(attempt, slot, staged, &destination))
}

fn try_once(
    attempt: &mut Attempt<'_>,
    slot: &mut Slot,
    staged: &mut Option<Staged>,
    destination: &Destination,
) -> Result<Ended, StepFailure> {
    let there = destination.found()?;
    if let Some(ended) = check(attempt, there.as_ref())? {
        return Ok(ended);
    }
    attempt.reach(FaultPoint::Checked);
    if staged.is_none() {
        *staged = Some(stage(attempt, slot, None)?);
    }
    let staged = staged.as_mut().expect("it was staged just now");
    let _watch = attempt.ctx.cancel.watch(attempt.slot, &staged.session);
    let shape = shape_of(attempt, &staged.schema)?;
    for note in &shape.notes {
        if !attempt.notes.contains(note) {
            attempt.notes.push(note.clone());
        }
    }
    attempt.phase("guard", |attempt| guard_stage(attempt, staged, &shape))?;
    let rows_before = there.as_ref().and_then(|found| found.stamp.as_ref()).and_then(|stamp| stamp.rows);
    attempt.guard_empty(staged.rows, 0 < rows_before.unwrap_or(0))?;
    let schema_version = schema_version(attempt, &shape.schema)?;
    attempt.tests.clear();
    attempt.phase("test", |attempt| test_new_rows(attempt, &staged.session, &shape))?;
    let entry = StampEntry {
        deleted: rows_before.unwrap_or(0),
        inserted: staged.rows,
        rows: Some(staged.rows),
        schema_version,
        ..attempt.entry()
    };
    attempt.phase("commit", |attempt| publish(attempt, staged, &shape, destination, entry))
}

/// Ends the attempt when the file that is there makes it needless, and refuses one that is not ours.
///
/// Run ids sort by time, so a file of a later run is newer than anything that this run could write.
fn check(attempt: &Attempt<'_>, there: Option<&Found>) -> Result<Option<Ended>, StepFailure> {
    let Some(found) = there else { return Ok(None) };
    let Some(stamp) = &found.stamp else {
        let message = format!("{} exists, but Pintail has not written it", named(attempt));
        return Err(StepFailure::user(Code::TARGET_NOT_OURS, "check the target", message)
            .with_help("move the file away, or materialize under another name"));
    };
    if stamp.step == attempt.job.id {
        let landed = Landed { version: found.version(), entry: stamp.clone(), schema: None };
        return Ok(Some(Ended::Landed(Box::new(landed))));
    }
    if attempt.ctx.run < stamp.run {
        return Ok(Some(Ended::Superseded { version: found.version(), run: stamp.run.clone() }));
    }
    Ok(None)
}

fn named(attempt: &Attempt<'_>) -> String {
    match attempt.partition() {
        Some(partition) => format!("{} {partition}", attempt.asset),
        None => attempt.asset.to_string(),
    }
}

/// Returns window and projection by the rules of lakes. The partition is in the file's name, not in a column.
fn shape_of(attempt: &Attempt<'_>, staged: &Schema) -> Result<Shape, StepFailure> {
    let mut shape = lake_shape(&ShapeFacts {
        script: attempt.script,
        stage: &Relation::temp(STAGE),
        beside: Surroundings::default(),
        step: &attempt.job.step,
        staged,
        table: None,
        write: Relation::temp("file"),
        strategy: &attempt.strategy(),
    })?;
    let is_identity = |projected: &Projected| matches!(projected, Projected::Text { .. });
    if shape.target.projection.0.last().is_some_and(is_identity) {
        shape.target.projection.0.pop();
        shape.schema.columns.pop();
    }
    Ok(shape)
}

/// Compares the columns with those of the last write; a file is written whole, so every allowed change is one of shape.
fn schema_version(attempt: &mut Attempt<'_>, schema: &Schema) -> Result<u32, StepFailure> {
    let known = attempt.ctx.runtime.block_on(attempt.ctx.store.schema_versions(&AssetKey::from(attempt.asset)));
    let known = known
        .map_err(|error| StepFailure::user(Code::ENGINE_ERROR, "compare the columns", crate::with_sources(&error)))?;
    let Some(last) = known.last() else { return Ok(1) };
    match decide(diff(&last.schema, schema), attempt.script.header.on_schema_change) {
        SchemaDecision::Write => Ok(last.version),
        SchemaDecision::Refuse { diff } => {
            let message = format!("the query's columns are not those of {}:\n{diff}", attempt.asset);
            Err(StepFailure::user(Code::SCHEMA_CHANGED, "compare the columns", message).with_help(
                "change the query, or allow it: `on_schema_change append_new_columns` or `on_schema_change sync_all_columns`",
            ))
        }
        _ => {
            attempt.notes.push("the file has other columns than the last one".to_owned());
            Ok(last.version + 1)
        }
    }
}

/// Writes the complete file beside, publishes it, and looks it up.
fn publish(
    attempt: &Attempt<'_>,
    staged: &Staged,
    shape: &Shape,
    destination: &Destination,
    entry: StampEntry,
) -> Result<Ended, StepFailure> {
    let temporary = beside(attempt, destination)?;
    let stamp = to_extra_info(std::slice::from_ref(&entry));
    let sql = format!(
        "COPY (\nSELECT\n{}\nFROM {}\n) TO {} (FORMAT parquet, COMPRESSION zstd, KV_METADATA {{pintail: {}}})",
        shape.target.projection,
        shape.target.stage,
        Literal::new(temporary.0.display().to_string()),
        Literal::new(stamp)
    );
    staged.session.run(&Statement::new("write the file beside", sql))?;
    attempt.reach(FaultPoint::Written);
    attempt.go_on("publish the file")?;
    attempt.reach(FaultPoint::Stamped);
    // From here to the look-up a wish to stop could only make the outcome unknown.
    attempt.ctx.cancel.shield(attempt.slot);
    destination.publish(&temporary.0)?;
    let found = destination.found()?;
    let Some(found) = found.filter(|found| found.stamp.as_ref().is_some_and(|stamp| stamp.attempt == attempt.id))
    else {
        let message = "somebody else has written the file in the same moment";
        let failure = StepFailure::user(Code::CONFLICT, "look the file up", message);
        return Err(StepFailure { class: ErrorClass::Conflict, ..failure });
    };
    attempt.reach(FaultPoint::Committed);
    renew_prints(attempt, staged);
    let landed = Landed { version: found.version(), entry, schema: Some(shape.schema.clone()) };
    Ok(Ended::Landed(Box::new(landed)))
}

/// Takes new fingerprints of the object for the readers that come later in the run, so that they are not stale at once.
fn renew_prints(attempt: &Attempt<'_>, staged: &Staged) {
    for asset in attempt.ctx.printed_over(attempt.asset) {
        let Some(address) = object_address(&attempt.ctx.project.project.config, &asset) else { continue };
        match object_store::fingerprint(&staged.session, &address) {
            Ok(print) => attempt.ctx.set_print(&asset, print),
            // With the old one a reader runs once too often.
            Err(error) => tracing::warn!(%error, "an object that was written could not be looked at"),
        }
    }
}

/// Returns a new name for the file on its way, and removes what a killed process left under such names.
///
/// On a volume it lies in the folder of the target, since a rename must not cross file systems; the ending keeps it out of
/// every glob. For a store it lies in the folder for temporary files.
fn beside(attempt: &Attempt<'_>, destination: &Destination) -> Result<Temporary, StepFailure> {
    let (folder, prefix) = match destination {
        Destination::Local { path } => {
            let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
            (folder, format!(".{}.pintail-", destination.file_name()))
        }
        Destination::Store { key, .. } => {
            let digest = Sha256::digest(format!("{}/{key}", attempt.place).as_bytes());
            let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            (attempt.ctx.project.project.config.run.temp_directory.join("objects"), format!("{name}.pintail-"))
        }
    };
    std::fs::create_dir_all(&folder).map_err(|error| file_failure("make", &folder, &error))?;
    let entries = std::fs::read_dir(&folder).map_err(|error| file_failure("list", &folder, &error))?;
    for left in entries.filter_map(Result::ok).filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
    {
        std::fs::remove_file(left.path()).map_err(|error| file_failure("remove", &left.path(), &error))?;
    }
    Ok(Temporary(folder.join(format!("{prefix}{}.tmp", attempt.id))))
}
