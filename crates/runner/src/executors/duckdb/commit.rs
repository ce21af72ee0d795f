//! The transaction of a staged write: guards before it, then check, write, test, stamp, COMMIT and look-up.

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::plan::Content;
use pintail_core::schema::Schema;
use pintail_core::sql::Statement;
use pintail_core::sql::stamp::{StampEntry, commit_message, from_extra_info, to_extra_info};
use pintail_core::sql::strategy::{CREATE_FILLED, GuardCounts, GuardKind, GuardRules, REWRITE, fence, guards, judge};
use pintail_core::write::{Check, CheckFacts, SeenCommit, check};
use pintail_engine::fault::FaultPoint;
use pintail_engine::lake::{self, Commit, Concern, SliceConcern, TableFacts};
use pintail_engine::transaction::CommitWords;
use pintail_engine::{Session, WriteTransaction};

use super::attempt::{Attempt, Ended, Landed};
use super::data_tests::{self, TestRows};
use super::history::{self, Surroundings};
use super::restore;
use super::shape::{Shape, ShapeFacts, shape};
use super::staging::{self, Staged};
use super::stream;
use super::unchanged;
use crate::executors::StepFailure;
use crate::executors::failure::Sample;

/// What the statements of a write did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Rows deleted.
    pub deleted: u64,
    /// Rows inserted.
    pub inserted: u64,
    /// Whether the table or its columns changed.
    pub ddl: bool,
}

/// A stage that has passed its guards and tests, and how it will be written.
pub struct Prepared {
    /// The head that the write is prepared against.
    pub base: SnapshotId,
    /// The target as it is; `None` when it does not exist.
    pub facts: Option<TableFacts>,
    /// The write.
    pub shape: Shape,
    /// The strategy, a full refresh taken into account.
    pub strategy: WriteStrategy,
    /// How the attempt ends when there is nothing to write.
    pub ended: Option<Ended>,
}

/// What became of a write inside the transaction.
pub enum Applied {
    /// It is written and tested, not committed yet: what the commit shall say, and the columns afterwards.
    Written(Box<StampEntry>, Schema),
    /// There is nothing to write any more.
    Ended(Ended),
}

/// Writes the stage in a transaction of its own.
pub fn write(attempt: &mut Attempt<'_>, staged: &mut Staged) -> Result<Ended, StepFailure> {
    let session = staged.session.clone();
    let _watch = attempt.ctx.cancel.watch(attempt.slot, &session);
    let prepared = prepare(attempt, staged)?;
    if let Some(ended) = prepared.ended {
        return Ok(ended);
    }
    attempt.phase("commit", |attempt| {
        let lane = attempt.lake.lane();
        let _pass = attempt.enter(&lane)?;
        let transaction = WriteTransaction::begin(&session, &attempt.alias)?;
        match apply(attempt, &session, &transaction, &prepared)? {
            Applied::Written(entry, schema) => {
                let ended = finish(attempt, transaction, *entry, Some(schema))?;
                stream::report(attempt);
                Ok(ended)
            }
            Applied::Ended(ended) => {
                transaction.roll_back();
                Ok(ended)
            }
        }
    })
}

/// Shapes the write, and runs the guards and the tests that look at the stage.
pub fn prepare(attempt: &mut Attempt<'_>, staged: &mut Staged) -> Result<Prepared, StepFailure> {
    let base = match staged.base {
        Some(base) => base,
        None => lake::head(&staged.session, &attempt.alias)?,
    };
    staged.base = Some(base);
    if attempt.job.step.content != Content::Script {
        return restore::prepare(attempt, staged, base);
    }
    let facts = attempt.target_table(&staged.session, base)?;
    refuse_foreign_target(attempt, facts.as_ref())?;
    let strategy = attempt.strategy();
    let beside = history::surroundings(attempt.ctx, attempt.asset, &strategy, Some((&staged.session, &attempt.alias)))?;
    let shape = shape(&ShapeFacts {
        beside: Surroundings { staged_rows: Some(staged.rows), ..beside },
        script: attempt.script,
        step: &attempt.job.step,
        staged: &staged.schema,
        stage: &attempt.stage,
        table: facts.as_ref(),
        write: attempt.target(),
        strategy: &strategy,
    })?;
    for note in &shape.notes {
        if !attempt.notes.contains(note) {
            attempt.notes.push(note.clone());
        }
    }
    attempt.phase("guard", |attempt| guard(attempt, staged, &shape, &strategy, facts.as_ref()))?;
    attempt.phase("test", |attempt| data_tests::on_stage(attempt, &staged.session, &shape, &strategy))?;
    let ended = unchanged::look(attempt, staged, base, facts.as_ref(), &shape, &strategy)?;
    Ok(Prepared { base, facts, shape, strategy, ended })
}

/// Checks, writes and tests inside an open transaction; an error leaves it to the caller to roll back.
pub fn apply(
    attempt: &mut Attempt<'_>,
    session: &Session,
    transaction: &WriteTransaction<'_>,
    prepared: &Prepared,
) -> Result<Applied, StepFailure> {
    let Prepared { base, facts, shape, strategy, ended } = prepared;
    if let Some(ended) = ended {
        return Ok(Applied::Ended(ended.clone()));
    }
    if let Some(ended) = check_commits(attempt, transaction, *base, facts.as_ref())? {
        return Ok(Applied::Ended(ended));
    }
    attempt.reach(FaultPoint::Checked);
    if facts.is_none() {
        staging::create_schema_if_missing(session, attempt, transaction)?;
    }
    let gone = stream::advance(attempt, transaction, facts.as_ref())?;
    let mut counts = send(attempt, transaction, shape)?;
    counts.deleted += gone;
    history::check_written(session, shape)?;
    attempt.reach(FaultPoint::Written);
    let entry = stamp(attempt, shape, strategy, facts.as_ref(), counts);
    if let Content::Restore { snapshot } = attempt.job.step.content {
        let entry = restore::stamped(attempt, session, entry, snapshot)?;
        return Ok(Applied::Written(Box::new(entry), shape.schema.clone()));
    }
    let rows = TestRows::Written { slice: shape.slice.as_ref() };
    data_tests::in_transaction(attempt, session, shape, strategy, rows)?;
    Ok(Applied::Written(Box::new(entry), shape.schema.clone()))
}

/// Refuses a table that nobody of ours made: overwriting it would destroy somebody's work.
pub fn refuse_foreign_target(attempt: &Attempt<'_>, facts: Option<&TableFacts>) -> Result<(), StepFailure> {
    if facts.is_none() || attempt.ctx.memory_of(attempt.asset).is_ours {
        return Ok(());
    }
    let asset = attempt.asset;
    Err(StepFailure::user(
        Code::TARGET_NOT_OURS,
        "check the target",
        format!("{asset} exists, but Pintail has not made it"),
    )
    .with_help(format!("to let Pintail write it from now on: `pintail adopt {asset}`")))
}

fn guard(
    attempt: &mut Attempt<'_>,
    staged: &Staged,
    shape: &Shape,
    strategy: &WriteStrategy,
    facts: Option<&TableFacts>,
) -> Result<(), StepFailure> {
    if let Some(history) = &shape.history {
        return history::guard(attempt, staged, shape, history, facts);
    }
    // A full refresh writes like a replace, but what it writes has the same keys.
    let declared = attempt.script.strategy();
    let key: &[String] = match &declared {
        WriteStrategy::Merge { key, .. } => key,
        _ => &[],
    };
    let allows_empty = attempt.script.header.materialize.as_ref().is_some_and(|line| line.value.allow_empty);
    let is_replace = matches!(strategy, WriteStrategy::Replace);
    let refuses_empty = is_replace
        && !allows_empty
        && staged.rows == 0
        && facts.is_some_and(|facts| !facts.is_view)
        && has_rows(&staged.session, shape)?;
    let rules = GuardRules { key, window: shape.window.as_ref(), refuses_empty };
    if key.is_empty() && rules.window.is_none() && !refuses_empty {
        return Ok(());
    }
    let queries = guards(&shape.target, &rules);
    let counts = match key.is_empty() && rules.window.is_none() {
        true => GuardCounts { row_count: staged.rows, ..GuardCounts::default() },
        false => counts(&staged.session, &queries.summary)?,
    };
    let Some(failure) = judge(&counts, &rules).into_iter().next() else { return Ok(()) };
    let sample = match queries.samples.iter().find(|(kind, _)| *kind == failure.kind) {
        Some((_, sql)) => sample(&staged.session, sql)?,
        None => Sample::default(),
    };
    let code = match failure.kind {
        GuardKind::NullKeys => Code::NULL_KEYS,
        GuardKind::DuplicateKeys => Code::DUPLICATE_KEYS,
        GuardKind::OutsideWindow | GuardKind::NullBy => Code::ROWS_OUTSIDE_WINDOW,
        GuardKind::EmptyReplace => Code::EMPTY_REPLACE,
    };
    let span = attempt.script.header.materialize.as_ref().map(|line| line.span);
    Err(StepFailure::user(code, "guard the stage", failure.message)
        .with_help(failure.help)
        .with_sample(sample)
        .at(span))
}

fn has_rows(session: &Session, shape: &Shape) -> Result<bool, StepFailure> {
    let condition = shape.slice.as_ref().map_or_else(String::new, |slice| format!(" WHERE {}", slice.predicate(None)));
    let sql = format!("SELECT EXISTS (SELECT 1 FROM {}{condition})", shape.target.write);
    Ok(session.one("see whether anything would be emptied", &sql, |row| row.get(0))?)
}

fn counts(session: &Session, summary: &str) -> Result<GuardCounts, StepFailure> {
    Ok(session.one("guard the stage", summary, |row| {
        let count = |index: usize| row.get::<_, i64>(index).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(GuardCounts {
            row_count: count(0)?,
            null_keys: count(1)?,
            duplicate_keys: count(2)?,
            duplicate_rows: count(3)?,
            outside_window: count(4)?,
            null_by: count(5)?,
        })
    })?)
}

/// Reads the rows that show a failure.
pub fn sample(session: &Session, sql: &str) -> Result<Sample, StepFailure> {
    let result = session.query("read a sample", sql)?;
    Ok(Sample { columns: result.column_names(), rows: result.text_rows()? })
}

/// Sends the write and counts. A write without any effect touches the fence, so that it has a snapshot to be stamped.
/// Where transactions overlap every write touches it: DuckLake sees no conflict between two writes that delete nothing, nor
/// between a change of shape and an insert before it, and a table that is made anew swallows every write before it.
fn send(attempt: &Attempt<'_>, transaction: &WriteTransaction<'_>, shape: &Shape) -> Result<Counts, StepFailure> {
    let mut counts = Counts::default();
    for statement in &shape.statements {
        let changed = transaction.run(statement).map_err(|error| write_failure(attempt, error))?;
        match effect(statement) {
            Effect::Delete => counts.deleted += changed,
            Effect::Insert => counts.inserted += changed,
            Effect::Ddl => counts.ddl = true,
            Effect::CreateFilled => {
                counts.ddl = true;
                counts.inserted += changed;
            }
            Effect::None => {}
        }
    }
    let is_nothing = counts.deleted == 0 && counts.inserted == 0 && !counts.ddl;
    if is_nothing || !attempt.lake.conflicts_on_empty_delete() {
        transaction.run(&fence(&attempt.alias, attempt.asset))?;
    }
    Ok(counts)
}

enum Effect {
    Delete,
    Insert,
    Ddl,
    CreateFilled,
    None,
}

fn effect(statement: &Statement) -> Effect {
    match statement.sql.split_whitespace().next() {
        Some("DELETE") => Effect::Delete,
        // Rows that are only carried into the new table are no rows of this write.
        Some("INSERT") if ["insert the kept rows", REWRITE].contains(&statement.purpose) => Effect::None,
        Some("INSERT") => Effect::Insert,
        Some("CREATE") if statement.purpose == CREATE_FILLED => Effect::CreateFilled,
        Some("CREATE") if statement.sql.contains("TEMP TABLE") => Effect::None,
        Some("CREATE" | "ALTER" | "COMMENT") => Effect::Ddl,
        _ => Effect::None,
    }
}

/// A cast that fails while writing is about the user's values.
fn write_failure(attempt: &Attempt<'_>, error: pintail_engine::EngineError) -> StepFailure {
    let is_conversion = error.failure().is_some_and(|failure| failure.message.kind == "Conversion");
    let failure = StepFailure::from(error);
    match is_conversion {
        true => StepFailure {
            code: Code::LOSSY_CAST,
            help: Some(
                "cast the column in the query to a type that holds every value, or declare it: `column <name> DECIMAL(38,0)`"
                    .to_owned(),
            ),
            ..failure
        }
        .at(attempt.script.query_span()),
        false => failure,
    }
}

/// Reads what was committed since the write was prepared, and ends the attempt when there is no point in going on.
pub fn check_commits(
    attempt: &Attempt<'_>,
    transaction: &WriteTransaction<'_>,
    base: SnapshotId,
    facts: Option<&TableFacts>,
) -> Result<Option<Ended>, StepFailure> {
    let (schema, table) = attempt.table;
    // A lake that the plan did not know may have been made and written since.
    let planned = attempt.job.pins.get(&attempt.lake.name).copied().unwrap_or(SnapshotId(0));
    if attempt.stages_inside || transaction.snapshot() <= planned.min(base) {
        return Ok(None);
    }
    // Between the plan and the base only a newer version of this very slice matters: so a long run reads little here.
    let slice = SliceConcern { partition: attempt.partition().cloned(), upto: base };
    let concern = Concern { slice: Some(slice), ..attempt.concern(facts) };
    let since = transaction.commits_since(planned.min(base), &concern)?;
    let commits: Vec<SeenCommit> = since.iter().map(seen).collect();
    let facts = CheckFacts {
        attempt: &attempt.id,
        step: &attempt.job.id,
        asset: &attempt.asset.to_string(),
        partition: attempt.partition(),
        table_id: facts.map(|facts| facts.id),
        schema,
        table,
        reads_target: attempt.reads_target(),
        base,
    };
    match check(&facts, &commits) {
        Check::Clear => Ok(None),
        Check::Done { snapshot } => {
            let found = commits.iter().find(|commit| commit.snapshot == snapshot);
            let entry = found.and_then(|commit| commit.stamps.iter().find(|entry| entry.step == attempt.job.id));
            let entry = entry.cloned().unwrap_or_else(|| attempt.entry());
            Ok(Some(Ended::Landed(Box::new(Landed { snapshot, entry, schema: None }))))
        }
        Check::Superseded { snapshot, run } => Ok(Some(Ended::Superseded { snapshot, run })),
        Check::Conflict { snapshot, by, is_foreign } => {
            let whom = match is_foreign {
                true => format!("{by}, not Pintail,"),
                false if by == format!("run {}", attempt.ctx.run) => "another step of this run".to_owned(),
                false => by,
            };
            Err(StepFailure {
                class: pintail_core::write::ErrorClass::Conflict,
                ..StepFailure::user(
                    Code::CONFLICT,
                    "check the target",
                    format!("{whom} changed {} meanwhile (snapshot {snapshot})", attempt.asset),
                )
            })
        }
    }
}

/// Returns a commit as the decision needs it; a broken stamp counts as a foreign writer's.
pub fn seen(commit: &Commit) -> SeenCommit {
    let stamps = commit.extra_info.as_deref().and_then(|text| from_extra_info(text).ok().flatten());
    SeenCommit {
        snapshot: commit.snapshot,
        changes: commit.changes.clone(),
        stamps: stamps.unwrap_or_default(),
        author: commit.author.clone(),
    }
}

fn stamp(
    attempt: &Attempt<'_>,
    shape: &Shape,
    strategy: &WriteStrategy,
    facts: Option<&TableFacts>,
    counts: Counts,
) -> StampEntry {
    let memory = attempt.ctx.memory_of(attempt.asset);
    let slice = attempt.partition().map_or_else(String::new, |key| key.to_string());
    let before = match (facts, memory.rows.get(&slice)) {
        (None, _) => Some(0),
        (Some(_), Some(rows)) => *rows,
        // A slice of our own table that was never written is empty.
        (Some(_), None) => (!memory.has_uncounted_rows).then_some(0),
    };
    let rows = match strategy {
        WriteStrategy::Replace if shape.comparison.is_none() => Some(counts.inserted),
        // The rows that a history deletes come back with another end.
        WriteStrategy::History { .. } => before.map(|before| before + counts.inserted),
        _ => before.and_then(|before| (before + counts.inserted).checked_sub(counts.deleted)),
    };
    StampEntry {
        table_id: facts.filter(|_| !shape.is_new_generation).and_then(TableFacts::committed_id),
        generation: memory.generation + u32::from(shape.is_new_generation),
        schema_version: memory.schema_version + u32::from(shape.schema_changes),
        deleted: counts.deleted,
        inserted: counts.inserted,
        rows: shape.rows_after.or(rows),
        ..attempt.entry()
    }
}

/// Stamps, commits and proves.
pub fn finish(
    attempt: &Attempt<'_>,
    transaction: WriteTransaction<'_>,
    entry: StampEntry,
    schema: Option<Schema>,
) -> Result<Ended, StepFailure> {
    let message = commit_message(&entry);
    let extra_info = to_extra_info(std::slice::from_ref(&entry));
    let words = CommitWords { attempt: &attempt.id, message: &message, extra_info: &extra_info };
    attempt.go_on("commit")?;
    let snapshot = transaction.commit(&words, || {
        attempt.reach(FaultPoint::Stamped);
        attempt.ctx.cancel.shield(attempt.slot);
    })?;
    attempt.reach(FaultPoint::Committed);
    Ok(Ended::Landed(Box::new(Landed { snapshot, entry, schema })))
}
