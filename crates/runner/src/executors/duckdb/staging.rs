//! Pins and the stage: attach what is read, set the step's variables, run the setup, and evaluate the query exactly once.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use pintail_core::annotation::{ColumnDecl, WriteStrategy};
use pintail_core::diagnostic::Code;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::plan::Content;
use pintail_core::schema::{Column, Schema};
use pintail_core::source::Span;
use pintail_core::sql::strategy::{Deduplicate, stage};
use pintail_core::sql::{Fragment, Ident, Statement};
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::{Guard, PinId};
use pintail_engine::lake::{self, TableFacts};
use pintail_engine::{EngineError, Session, WriteTransaction};
use tokio::runtime::Handle;

use super::attempt::Attempt;
use super::history;
use super::restore;
use super::shape::{ShapeFacts, shape};
use super::stream;
use super::text::{ReadAs, StepVariables, resets, rewrite, settings};
use crate::executors::context::CancelWatch;
use crate::executors::{RunContext, Slot, StepFailure, StepJob};
use crate::project::CompiledScript;

/// A stage, and what it was made from.
pub struct Staged {
    /// The session that holds the temp table; the stages of a group share one.
    pub session: Rc<Session>,
    /// The stage's columns.
    pub schema: Schema,
    /// Rows in it.
    pub rows: u64,
    /// The head that the write is prepared against; `None` when it must be read anew.
    pub base: Option<SnapshotId>,
    _pins: Rc<HeldPins>,
    _watch: Rc<CancelWatch>,
}

impl Staged {
    /// Returns an empty stage.
    pub(super) fn new(session: Rc<Session>, base: SnapshotId, pins: HeldPins, watch: Rc<CancelWatch>) -> Self {
        let pins = Rc::new(pins);
        Self { session, schema: Schema::default(), rows: 0, base: Some(base), _pins: pins, _watch: watch }
    }

    /// Returns about how many bytes the stage takes: its rows, with sixteen bytes a value.
    pub fn estimated_bytes(&self) -> u64 {
        self.rows * 16 * u64::try_from(self.schema.columns.len()).unwrap_or(1)
    }
}

/// What the stages of a group share: one session, with the lakes attached at one pin.
pub struct Bench {
    session: Rc<Session>,
    base: SnapshotId,
    pins: Rc<HeldPins>,
    watch: Rc<CancelWatch>,
    /// The targets that are known not to exist.
    absent: BTreeSet<(String, String)>,
}

impl Bench {
    /// Opens the session for `attempt` and for others with the same lake and pins, which read no other lakes than
    /// `needed`.
    pub fn open(attempt: &mut Attempt<'_>, slot: &mut Slot, needed: &BTreeSet<LakeName>) -> Result<Self, StepFailure> {
        slot.attach_for_writing(attempt.lake)?;
        let session = Rc::new(slot.session()?);
        let watch = Rc::new(attempt.ctx.cancel.watch(slot.number, &session));
        let base = lake::head(&session, &attempt.alias)?;
        let mut pins = HeldPins { runtime: attempt.ctx.runtime.clone(), pins: Vec::new() };
        // A lake that did not exist when the run was planned is read as it is now.
        attempt.pins.entry(attempt.lake.name.clone()).or_insert(base);
        for name in needed {
            pins.attach(attempt, slot, name)?;
        }
        Ok(Self { session, base, pins: Rc::new(pins), watch, absent: BTreeSet::new() })
    }

    /// Looks which of `targets`, schemas and tables, do not exist, so that nobody has to look for each.
    pub fn find_absent(&mut self, alias: &str, targets: &[(&str, &str)]) -> Result<(), StepFailure> {
        let absent = lake::absent_names(&self.session, alias, targets)?;
        self.absent = absent.into_iter().map(|(schema, table)| (schema.to_owned(), table.to_owned())).collect();
        Ok(())
    }

    /// Returns the session, shared.
    pub fn shared_session(&self) -> Rc<Session> {
        self.session.clone()
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Returns whether the target of `attempt` is known not to exist.
    pub fn lacks(&self, attempt: &Attempt<'_>) -> bool {
        let (schema, table) = attempt.table;
        !self.absent.is_empty() && self.absent.contains(&(schema.to_owned(), table.to_owned()))
    }

    /// Returns an empty stage on it for `attempt`.
    pub fn stage(&self, attempt: &mut Attempt<'_>) -> Staged {
        attempt.pins.entry(attempt.lake.name.clone()).or_insert(self.base);
        attempt.is_absent = self.lacks(attempt);
        Staged {
            session: self.session.clone(),
            schema: Schema::default(),
            rows: 0,
            base: Some(self.base),
            _pins: self.pins.clone(),
            _watch: self.watch.clone(),
        }
    }
}

/// What a stage pins, each in its lake's guard; let go when dropped, also when the step panics.
pub struct HeldPins {
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

/// Stages unless `staged` still holds a stage that may be written.
pub fn stage_if_needed(
    attempt: &mut Attempt<'_>,
    slot: &mut Slot,
    staged: &mut Option<Staged>,
) -> Result<(), StepFailure> {
    if staged.is_some() {
        return Ok(());
    }
    let content = attempt.job.step.content;
    let mut fresh = attempt.phase("pin", |attempt| match content {
        Content::Script => open(attempt, slot),
        Content::Restore { snapshot } => restore::open(attempt, slot, snapshot),
    })?;
    let outcome = attempt.phase("stage", |attempt| match content {
        Content::Script => fill(attempt, &mut fresh),
        Content::Restore { snapshot } => restore::fill(attempt, &mut fresh, snapshot),
    });
    if let Err(failure) = outcome {
        attempt.sent.extend(fresh.session.take_sent());
        return Err(failure);
    }
    *staged = Some(fresh);
    attempt.reach(FaultPoint::Staged);
    Ok(())
}

/// Opens the session with everything attached that the step reads, at its pins.
fn open(attempt: &mut Attempt<'_>, slot: &mut Slot) -> Result<Staged, StepFailure> {
    slot.attach_for_writing(attempt.lake)?;
    let session = Rc::new(slot.session()?);
    let watch = Rc::new(attempt.ctx.cancel.watch(slot.number, &session));
    let (schema, table) = attempt.table;
    let mut base = lake::head(&session, &attempt.alias)?;
    if attempt.script.reads_target() {
        let facts = lake::table_facts(&session, &attempt.alias, schema, table)?;
        match facts {
            None => {
                base = create_declared(attempt, &session)?;
                attempt.pins.insert(attempt.lake.name.clone(), base);
            }
            Some(facts) => move_pin_past_changes(attempt, &session, &facts, base)?,
        }
        // A self-reader's stage is good only for the version that it read.
        base = attempt.pins.get(&attempt.lake.name).copied().unwrap_or(base);
    }
    // A lake that did not exist when the run was planned is read as it is now.
    attempt.pins.entry(attempt.lake.name.clone()).or_insert(base);

    let pins = Rc::new(pin_inputs(attempt, slot)?);
    attempt.go_on("stage the query")?;
    Ok(Staged { session, schema: Schema::default(), rows: 0, base: Some(base), _pins: pins, _watch: watch })
}

/// Pins and attaches every lake that the step reads; the pins are durable before the snapshots are attached.
fn pin_inputs(attempt: &Attempt<'_>, slot: &mut Slot) -> Result<HeldPins, StepFailure> {
    let mut held = HeldPins { runtime: attempt.ctx.runtime.clone(), pins: Vec::new() };
    for name in attempt.script.lakes_needed(&attempt.ctx.project) {
        held.attach(attempt, slot, &name)?;
    }
    Ok(held)
}

impl HeldPins {
    /// Returns a hold on `snapshot` of the target's own lake.
    pub(super) fn of(attempt: &Attempt<'_>, snapshot: SnapshotId) -> Result<Self, StepFailure> {
        let reason = format!("run {} rolls back to it", attempt.ctx.run);
        let now = (attempt.ctx.now)().timestamp_micros();
        let id = attempt.ctx.runtime.block_on(attempt.guard.pin(snapshot, &reason, now)).map_err(EngineError::from)?;
        let guard = attempt.ctx.guards.get(&attempt.lake.name).cloned();
        Ok(Self { runtime: attempt.ctx.runtime.clone(), pins: guard.into_iter().map(|guard| (guard, id)).collect() })
    }

    fn attach(&mut self, attempt: &Attempt<'_>, slot: &mut Slot, name: &LakeName) -> Result<(), StepFailure> {
        let Some(location) = attempt.ctx.lakes.get(name) else { return Ok(()) };
        let Some(pin) = attempt.pins.get(name).copied() else {
            return Err(location.missing().into());
        };
        if let Some(guard) = attempt.ctx.guards.get(name) {
            let reason = format!("run {} reads it", attempt.ctx.run);
            let now = (attempt.ctx.now)().timestamp_micros();
            let id = attempt.ctx.runtime.block_on(guard.pin(pin, &reason, now)).map_err(EngineError::from)?;
            self.pins.push((guard.clone(), id));
        }
        Ok(slot.attach_pinned(location, pin)?)
    }
}

/// Moves the pin to the head when the target has changed since: staging on the old version would be in vain.
fn move_pin_past_changes(
    attempt: &mut Attempt<'_>,
    session: &Session,
    facts: &TableFacts,
    head: SnapshotId,
) -> Result<(), StepFailure> {
    let name = attempt.lake.name.clone();
    let pin = attempt.pins.get(&name).copied().unwrap_or(head);
    let commits = lake::commits_between(session, &attempt.alias, pin, Some(head))?;
    let has_changed = commits.iter().any(|commit| {
        commit.changes.touches_table(facts.id) || commit.changes.creates(attempt.table.0, attempt.table.1)
    });
    if has_changed {
        attempt.notes.push(format!("its own table has changed since the plan: reads snapshot {head} instead of {pin}"));
        attempt.pins.insert(name, head);
    }
    Ok(())
}

/// Returns the statements that make the empty table which a self-reading script reads in its first run.
pub fn declared_table(attempt: &Attempt<'_>, session: &Session) -> Result<Vec<Statement>, StepFailure> {
    let declared: Vec<&ColumnDecl> = attempt.script.header.columns.iter().map(|column| &column.value).collect();
    let untyped: Vec<&str> =
        declared.iter().filter(|column| column.data_type.is_none()).map(|column| column.name.as_str()).collect();
    if declared.is_empty() || !untyped.is_empty() {
        let message = format!("the script reads {}, which does not exist yet", attempt.asset);
        let help = match untyped.as_slice() {
            [] => "declare its columns, so that the first run can read an empty table: `-- column n BIGINT`, one line \
                   per column"
                .to_owned(),
            names => format!(
                "give each `column` line a type, so that the first run can read an empty table: {}",
                names.join(", ")
            ),
        };
        return Err(StepFailure::user(Code::FIRST_RUN_NEEDS_COLUMNS, "make the table", message)
            .with_help(help)
            .at(attempt.script.self_read_span()));
    }
    empty_write(attempt, session, &declared)
}

/// Makes the empty table that a self-reading script reads in its first run, in a stamped commit of its own.
fn create_declared(attempt: &mut Attempt<'_>, session: &Session) -> Result<SnapshotId, StepFailure> {
    let statements = declared_table(attempt, session)?;
    let lane = attempt.lake.lane();
    let pass = attempt.enter(&lane)?;
    let transaction = WriteTransaction::begin(session, &attempt.alias)?;
    create_schema_if_missing(session, attempt, &transaction)?;
    for statement in &statements {
        transaction.run(statement)?;
    }
    let mut entry = attempt.entry();
    "create".clone_into(&mut entry.strategy);
    entry.schema_version += 1;
    // The attempt's own commit comes later and must be found by its id alone.
    entry.attempt = pintail_core::id::AttemptId(crate::new_id());
    let (id, text) = (entry.attempt.clone(), pintail_core::sql::stamp::to_extra_info(std::slice::from_ref(&entry)));
    let message = format!("create {}", attempt.asset);
    let words = pintail_engine::transaction::CommitWords { attempt: &id, message: &message, extra_info: &text };
    let committed = transaction.commit(&words, || {});
    drop(pass);
    let snapshot = committed?;
    let slice = attempt.partition().map_or_else(String::new, ToString::to_string);
    attempt.ctx.remember(attempt.asset, |memory| {
        memory.is_ours = true;
        memory.schema_version = entry.schema_version;
        memory.set_rows(slice, Some(0));
    });
    Ok(snapshot)
}

/// Returns the first write of an empty stage of the declared columns: the table with its partitions and comments.
fn empty_write(
    attempt: &Attempt<'_>,
    session: &Session,
    declared: &[&ColumnDecl],
) -> Result<Vec<Statement>, StepFailure> {
    let columns: Vec<String> = declared
        .iter()
        .map(|column| format!("  {} {}", Ident::new(&column.name), column.data_type.as_deref().unwrap_or("VARCHAR")))
        .collect();
    let stage = &attempt.stage;
    let sql = format!("CREATE OR REPLACE TEMP TABLE {stage} (\n{}\n)", columns.join(",\n"));
    session.run(&Statement::new("stage no rows of the declared columns", sql))?;
    let strategy = attempt.strategy();
    let shape = shape(&ShapeFacts {
        beside: history::surroundings(attempt.ctx, attempt.asset, &strategy, Some((session, &attempt.alias)))?,
        script: attempt.script,
        step: &attempt.job.step,
        staged: &lake::schema_of(session.describe(&stage.to_string())?),
        stage,
        table: None,
        write: attempt.target(),
        strategy: &strategy,
    })?;
    Ok(shape.into_statements())
}

/// Makes the target's schema in the open transaction when it is not there.
pub fn create_schema_if_missing(
    session: &Session,
    attempt: &Attempt<'_>,
    transaction: &WriteTransaction<'_>,
) -> Result<(), StepFailure> {
    let (schema, _) = attempt.table;
    if schema != "main" && !lake::has_schema(session, &attempt.alias, schema)? {
        transaction.run(&Statement::new(
            "create the schema",
            format!("CREATE SCHEMA IF NOT EXISTS {}.{}", Ident::new(&attempt.alias), Ident::new(schema)),
        ))?;
    }
    Ok(())
}

/// Runs the setup and evaluates the query into the stage.
pub fn fill(attempt: &mut Attempt<'_>, staged: &mut Staged) -> Result<(), StepFailure> {
    let script = attempt.script;
    prepare_session(&staged.session, attempt.ctx, attempt.job, script, attempt.pins.get(&attempt.lake.name).copied())?;
    stream::make_view(attempt, &staged.session)?;
    let query_span = script.query_span();
    let query = rewrite(&script.text, query_span, &ReadAs::PINNED, attempt.partition());
    let mut strategy = script.strategy();
    if let (Some(_), WriteStrategy::Merge { order_by: order_by @ None, .. }) = (&attempt.stream, &mut strategy) {
        *order_by = stream::last_first(&staged.session, &query.sql)?;
    }
    let deduplicate = deduplicate(&strategy)?;
    let statement = stage(&attempt.stage, &query.sql, deduplicate.as_ref());
    staged.rows = staged.session.run(&statement.statement).map_err(|error| {
        let is_name = error.failure().is_some_and(|failure| failure.message.kind == "Catalog");
        let failure =
            StepFailure::in_text(error, |position| query.original_offset_in(position, statement.select_at), query_span);
        match unwritten_read(attempt).filter(|_| is_name && failure.help.is_none()) {
            Some(help) => failure.with_help(help),
            None => failure,
        }
    })?;
    staged.rows -= stream::settle_stage(attempt, &staged.session)?;
    staged.schema = lake::schema_of(staged.session.describe(&attempt.stage.to_string())?);
    mark_untyped(&staged.session, &query.sql, &mut staged.schema);
    refuse_repeated_columns(&staged.session, &query.sql, &staged.schema).map_err(|failure| failure.at(query_span))
}

/// Says which table that the script reads is written by a script which has never run.
fn unwritten_read(attempt: &Attempt<'_>) -> Option<String> {
    let project = &attempt.ctx.project;
    let unwritten = attempt.script.reads().into_iter().find_map(|asset| {
        let writer = project.script_at(project.graph.writer(asset)?)?;
        let is_other = writer.name() != attempt.script.name();
        (is_other && !attempt.ctx.memory_of(asset).has_version).then_some((asset, writer))
    });
    let (asset, writer) = unwritten?;
    Some(format!(
        "{asset} is written by {}, which has not run yet: `pintail run --select +{}`",
        writer.file.source.path,
        attempt.script.name()
    ))
}

/// Refuses a query with two columns of one name: the engine would store the second under a name that nobody wrote.
pub fn refuse_repeated_columns(session: &Session, query: &str, schema: &Schema) -> Result<(), StepFailure> {
    // `name_1` is what the engine makes of a second `name`; the query is asked only when there is one.
    let may_be_renamed = |column: &Column| {
        let stem = column.name.rsplit_once('_').filter(|(_, number)| number.parse::<u32>().is_ok());
        stem.is_some_and(|(stem, _)| schema.column(stem).is_some())
    };
    if !schema.columns.iter().any(may_be_renamed) {
        return Ok(());
    }
    let selected = session.describe(query)?;
    for (position, (name, _)) in selected.iter().enumerate() {
        let is_same = |(other, _): &&(String, String)| other.eq_ignore_ascii_case(name);
        if let Some((first, _)) = selected[..position].iter().find(is_same) {
            let message = format!("the query has two columns of one name: `{first}` and `{name}`");
            return Err(StepFailure::user(Code::ENGINE_ERROR, "compare the columns", message)
                .with_help("give one of them another name with AS; names do not differ by case"));
        }
    }
    Ok(())
}

/// Gives the columns of bare NULLs their type back: stored, the engine makes them INTEGER, and the first real value of
/// another type would then break the table. Before that they take on any type, so a NULL beside a boolean is BOOLEAN.
pub fn mark_untyped(session: &Session, query: &str, schema: &mut Schema) {
    let may_be_untyped = |column: &Column| column.data_type == "INTEGER";
    if !query.to_ascii_lowercase().contains("null") || !schema.columns.iter().any(may_be_untyped) {
        return;
    }
    let probes: Vec<String> = schema
        .columns
        .iter()
        .filter(|column| may_be_untyped(column))
        .map(|column| format!("coalesce({0}, true) AS {0}", Ident::new(&column.name)))
        .collect();
    // A query that cannot be asked so has been staged all the same; its columns keep their types.
    let Ok(types) = session.describe(&format!("SELECT {} FROM (\n{query}\n)", probes.join(", "))) else { return };
    for (name, _) in types.iter().filter(|(_, data_type)| data_type == "BOOLEAN") {
        for column in schema.columns.iter_mut().filter(|column| column.name == *name) {
            "\"NULL\"".clone_into(&mut column.data_type);
        }
    }
}

/// Returns which of several rows with one key the script keeps.
pub fn deduplicate(strategy: &WriteStrategy) -> Result<Option<Deduplicate<'_>>, StepFailure> {
    let (key, order_by): (Cow<'_, [String]>, &String) = match strategy {
        WriteStrategy::Merge { key, order_by: Some(order_by) }
        | WriteStrategy::History { key, order_by: Some(order_by), updated_at: None, .. } => (key.into(), order_by),
        // Of one key there may be several rows, at different times.
        WriteStrategy::History { key, order_by: Some(order_by), updated_at: Some(time), .. } => {
            (key.iter().chain([time]).cloned().collect(), order_by)
        }
        _ => return Ok(None),
    };
    let order_by = Fragment::new(order_by).map_err(|error| {
        StepFailure::user(Code::ENGINE_ERROR, "stage the query", format!("`order_by={order_by}`: {error}"))
    })?;
    Ok(Some(Deduplicate { key, order_by }))
}

/// Gives a session the script's search path, variables, macros and setup statements.
pub fn prepare_session(
    session: &Session,
    ctx: &RunContext,
    job: &StepJob,
    script: &CompiledScript,
    upstream: Option<SnapshotId>,
) -> Result<(), StepFailure> {
    crate::executors::datatable::attach_reads(session, ctx, script)?;
    if script.reads_lakes(&ctx.project) {
        session.use_database(ctx.project.default_lake.sql_name())?;
    }
    set_step_variables(session, ctx, job, script, upstream)?;
    for span in script.setup_spans() {
        send(session, script, "run the setup", span, job)?;
    }
    Ok(())
}

/// Sets the variables and macros of a step, and no others, in a session that another step has used.
pub fn set_variables(session: &Session, attempt: &Attempt<'_>) -> Result<(), StepFailure> {
    session.batch("forget the variables of another step", &resets(attempt.ctx.vars.keys()))?;
    let upstream = attempt.pins.get(&attempt.lake.name).copied();
    set_step_variables(session, attempt.ctx, attempt.job, attempt.script, upstream)
}

fn set_step_variables(
    session: &Session,
    ctx: &RunContext,
    job: &StepJob,
    script: &CompiledScript,
    upstream: Option<SnapshotId>,
) -> Result<(), StepFailure> {
    let memory = job.step.asset.as_ref().map(|asset| ctx.memory_of(asset)).unwrap_or_default();
    let variables = StepVariables {
        partition: job.step.partition.as_ref(),
        window: job.step.window,
        first_run: job.step.full_refresh || !memory.has_version,
        upstream_snapshot: upstream.map(|snapshot| snapshot.0),
        increment: ctx.increment_of(&job.id),
    };
    let vars: Vec<(String, String)> = ctx.vars.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let settings = settings(script, &variables, &vars);
    if !settings.is_empty() {
        session.batch("set the step's variables", &settings)?;
    }
    Ok(())
}

/// Sends one of the script's own statements.
fn send(
    session: &Session,
    script: &CompiledScript,
    purpose: &'static str,
    span: Span,
    job: &StepJob,
) -> Result<u64, StepFailure> {
    let text = rewrite(&script.text, span, &ReadAs::PINNED, job.step.partition.as_ref());
    session
        .run(&Statement::new(purpose, text.sql.clone()))
        .map_err(|error| StepFailure::in_text(error, |position| text.original_offset(position), span))
}
