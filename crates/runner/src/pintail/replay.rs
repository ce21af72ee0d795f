//! `pintail replay`: what a past run would write today, computed from its recorded texts at its recorded pins, and compared
//! with what it wrote.
//!
//! Invariant: nothing of the project on disk takes part but its configuration, macros and variables; nothing is written
//! unless a schema for the results is named, and then only new tables of that schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Severity;
use pintail_core::id::{AttemptId, RunId, ScriptName, SnapshotId, StepId};
use pintail_core::partition::PartitionKey;
use pintail_core::plan::{Content, Reason, Step};
use pintail_core::sql::diff::{Comparison, ShapeChange, Side, shape_changes};
use pintail_core::sql::stamp::StampEntry;
use pintail_core::sql::strategy::stage;
use pintail_core::sql::{Ident, Literal, Relation, Statement};
use pintail_engine::lake::{self, OWN_SCHEMA, TableFacts};
use pintail_engine::transaction::CommitWords;
use pintail_engine::{LakeLocation, Session, WriteTransaction};
use pintail_store::{AttemptStatus, Materialization, RunDetail, ScriptText, StepDetail};

use super::diff::{compare_rows, key_of};
use super::versions::Holds;
use super::{Pintail, RowDiff, RunnerError};
use crate::executors::duckdb::{
    ReadAs, Shape, ShapeFacts, Surroundings, deduplicate, mark_untyped, prepare_session, rewrite, shape, strategy_of,
};
use crate::executors::{RunContext, Slot, StepFailure, StepJob};
use crate::project::{CompiledProject, CompiledScript, compile, fingerprint};

/// Functions whose result is another one each time.
const CHANGING: [&str; 16] = [
    "random",
    "setseed",
    "now",
    "today",
    "current_timestamp",
    "current_date",
    "current_time",
    "get_current_timestamp",
    "transaction_timestamp",
    "localtimestamp",
    "current_localtimestamp",
    "uuid",
    "uuidv4",
    "uuidv7",
    "gen_random_uuid",
    "nextval",
];

/// What to replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayRequest {
    /// The run: its id, the beginning of it, or `last`.
    pub run: String,
    /// Only the steps of this script.
    pub step: Option<String>,
    /// The schema that gets the results as tables.
    pub into: Option<String>,
    /// At most so many rows of each kind are shown.
    pub limit: u64,
}

/// What became of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The run that was replayed.
    pub run: RunId,
    /// Its steps that had written something, in order.
    pub steps: Vec<ReplayedStep>,
}

/// One step, computed again.
#[derive(Clone, Debug)]
pub struct ReplayedStep {
    /// The script.
    pub script: ScriptName,
    /// What it wrote.
    pub asset: Asset,
    /// The partition.
    pub partition: Option<PartitionKey>,
    /// The snapshot that it made.
    pub snapshot: SnapshotId,
    /// How the result compares.
    pub outcome: ReplayOutcome,
    /// What may explain a difference.
    pub hints: Vec<String>,
    /// The table that holds the result.
    pub table: Option<String>,
}

/// How a replayed result compares with what was written.
#[derive(Clone, Debug)]
pub enum ReplayOutcome {
    /// It is the same.
    Equal {
        /// How many rows.
        rows: u64,
    },
    /// It is another one: from what was written to what the replay gives.
    Different {
        /// Columns.
        shape: Vec<ShapeChange>,
        /// Rows.
        rows: Box<RowDiff>,
    },
    /// There is nothing to compute again, and why.
    Skipped(String),
    /// It cannot be computed.
    Failed(Box<StepFailure>),
}

impl Replayed {
    /// Returns whether every step that could be computed gave the same.
    pub fn is_proven(&self) -> bool {
        let is_bad =
            |step: &ReplayedStep| matches!(step.outcome, ReplayOutcome::Different { .. } | ReplayOutcome::Failed(_));
        !self.steps.iter().any(is_bad)
    }
}

/// A step with what it wrote.
struct Past {
    step: StepDetail,
    made: Materialization,
    asset: Asset,
    snapshot: SnapshotId,
    /// Whether it took the next part of a column.
    is_increment: bool,
}

/// Where the results go.
struct Results<'a> {
    schema: &'a str,
    made: BTreeSet<String>,
}

impl Pintail {
    /// Computes a past run again.
    pub fn replay(&self, request: &ReplayRequest) -> Result<Replayed, RunnerError> {
        self.observe([])?;
        let detail = self.run_detail(&request.run)?;
        let past = self.past_steps(&detail, request.step.as_deref())?;
        let project = Arc::new(self.project_of_run(&past)?);
        let mut into = request.into.as_deref().map(|schema| Results { schema, made: BTreeSet::new() });
        if let Some(into) = &into {
            self.refuse_existing(into, &past)?;
        }
        let mut holds = Vec::new();
        for past in past.iter().filter(|past| why_skipped(past).is_none()) {
            self.hold_inputs(past, &mut holds)?;
        }
        let is_refresh = detail.run.command.iter().any(|word| word == "--full-refresh");
        let mut steps = Vec::new();
        for past in &past {
            steps.push(self.replay_step(past, &project, is_refresh, into.as_mut(), request.limit)?);
        }
        Ok(Replayed { run: detail.run.id, steps })
    }

    /// Returns the steps of a run that have written something.
    fn past_steps(&self, detail: &RunDetail, only: Option<&str>) -> Result<Vec<Past>, RunnerError> {
        let mut past = Vec::new();
        for step in &detail.steps {
            if only.is_some_and(|only| step.step.script.as_str() != only) {
                continue;
            }
            let committed = step.attempts.iter().rev().find(|attempt| attempt.status == AttemptStatus::Committed);
            let Some(attempt) = committed else { continue };
            let made = self.runtime.block_on(self.store.materialization_of(&attempt.id))?;
            let Some(made) = made else { continue };
            let Some(snapshot) = made.snapshot else { continue };
            let asset = Asset::parse(made.asset.as_str()).map_err(|error| RunnerError::Usage {
                message: format!("the store names `{}`, which is no asset: {error}", made.asset),
            })?;
            let script = self.project.script(&step.step.script);
            if script.is_some_and(|script| script.header.stream.is_some()) {
                // What came in one pass is not what comes in another; its versions are compared by `diff`.
                if only.is_some() {
                    let message = format!(
                        "`{}` consumes a stream, so a past pass of it cannot be computed again; `pintail diff` compares its versions",
                        step.step.script
                    );
                    return Err(RunnerError::Usage { message });
                }
                continue;
            }
            let is_increment = script.is_some_and(|script| script.increment_column().is_some());
            past.push(Past { step: step.clone(), made, asset, snapshot, is_increment });
        }
        if !past.is_empty() {
            return Ok(past);
        }
        let run = &detail.run.id;
        let names: BTreeSet<&str> = detail.steps.iter().map(|step| step.step.script.as_str()).collect();
        let message = match only {
            Some(only) if !names.contains(only) => {
                let near = pintail_core::diagnostic::nearest(only, names.iter().copied());
                let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                format!("run {run} has no step of `{only}`{hint}")
            }
            _ => format!("run {run} has written nothing that could be computed again"),
        };
        Err(RunnerError::NotFound { message })
    }

    /// Returns the project with the texts that the run had.
    fn project_of_run(&self, past: &[Past]) -> Result<CompiledProject, RunnerError> {
        let mut project = self.project.project.clone();
        for past in past.iter().filter(|past| why_skipped(past).is_none()) {
            let text = self.text_of(past)?;
            match project.scripts.iter_mut().find(|script| script.name == past.made.script) {
                Some(script) => {
                    script.source.text = text.text;
                    script.hash = text.hash;
                }
                None => project.scripts.push(crate::workspace::ScriptFile {
                    name: past.made.script.clone(),
                    language: pintail_core::source::Language::DuckDbSql,
                    source: pintail_core::source::SourceFile { path: text.path, text: text.text },
                    hash: text.hash,
                }),
            }
        }
        project.scripts.sort_by(|one, other| one.name.cmp(&other.name));
        compile(project).map_err(|error| match error {
            crate::project::CompileError::Engine(error) => error.into(),
        })
    }

    fn text_of(&self, past: &Past) -> Result<ScriptText, RunnerError> {
        let hash = &past.made.script_hash;
        if let Some(text) = self.runtime.block_on(self.store.script_text(hash))? {
            return Ok(text);
        }
        let on_disk = self.project.script(&past.made.script).filter(|script| script.hash() == hash);
        on_disk
            .map(|script| ScriptText {
                hash: hash.clone(),
                path: script.file.source.path.clone(),
                text: script.file.source.text.clone(),
            })
            .ok_or_else(|| RunnerError::NotFound {
                message: format!(
                    "the text that `{}` had in that run is not in this store (hash {hash}): the store was rebuilt or \
                     belongs to another project since",
                    past.made.script
                ),
            })
    }

    /// Holds what a step read and made, and makes sure that all of it is there.
    fn hold_inputs(&self, past: &Past, holds: &mut Vec<Holds>) -> Result<(), RunnerError> {
        let own = past.made.lake.as_ref().map(|lake| (lake, past.snapshot));
        let wanted = past.made.inputs.iter().map(|(lake, snapshot)| (lake, *snapshot)).chain(own);
        for (lake, snapshot) in wanted {
            let location = self.lake_named(lake)?;
            let mut held = Holds::new(self.guard(location)?, self.runtime.handle().clone());
            held.hold(snapshot, "a replay reads it", (self.settings.now)().timestamp_micros())?;
            let mut slot = self.take_slot();
            slot.attach_existing(location)?;
            let session = slot.session()?;
            let there = self.require_snapshot(location, &session, &location.write_alias(), snapshot);
            drop(session);
            self.keep_slot(slot);
            there.map_err(|error| match error {
                RunnerError::NotFound { message } => RunnerError::NotFound {
                    message: format!(
                        "`{}` cannot be computed again: {message}; `keep_runs` and `keep_days` say what is kept",
                        past.made.script
                    ),
                },
                other => other,
            })?;
            holds.push(held);
        }
        Ok(())
    }

    fn replay_step(
        &self,
        past: &Past,
        project: &Arc<CompiledProject>,
        is_refresh: bool,
        into: Option<&mut Results<'_>>,
        limit: u64,
    ) -> Result<ReplayedStep, RunnerError> {
        let mut replayed = ReplayedStep {
            script: past.made.script.clone(),
            asset: past.asset.clone(),
            partition: past.made.partition.clone(),
            snapshot: past.snapshot,
            outcome: ReplayOutcome::Skipped(String::new()),
            hints: Vec::new(),
            table: None,
        };
        if let Some(reason) = why_skipped(past) {
            replayed.outcome = ReplayOutcome::Skipped(reason);
            return Ok(replayed);
        }
        let script = match runnable(project, &past.made.script) {
            Ok(script) => script,
            Err(reason) => {
                let code = pintail_core::diagnostic::Code::ENGINE_ERROR;
                let failure = StepFailure::user(code, "compile the recorded text", reason);
                replayed.outcome = ReplayOutcome::Failed(Box::new(failure));
                return Ok(replayed);
            }
        };
        match self.compute(past, project, script, is_refresh, into, limit) {
            Ok((outcome, table)) => {
                replayed.outcome = outcome;
                replayed.table = table;
            }
            Err(RunnerError::Step(failure)) => replayed.outcome = ReplayOutcome::Failed(failure),
            Err(other) => return Err(other),
        }
        if matches!(replayed.outcome, ReplayOutcome::Different { .. }) {
            replayed.hints = self.hints(past, script);
        }
        Ok(replayed)
    }

    /// Evaluates the step's query at its pins, compares the result, and writes it where it was asked for.
    fn compute(
        &self,
        past: &Past,
        project: &Arc<CompiledProject>,
        script: &CompiledScript,
        is_refresh: bool,
        into: Option<&mut Results<'_>>,
        limit: u64,
    ) -> Result<(ReplayOutcome, Option<String>), RunnerError> {
        let (location, schema, table) = self.lake_of(&past.asset)?;
        let ctx = self.replay_context(past, project)?;
        let job = job_of(past, script, is_refresh);
        // An instance of its own: reading older versions safely is a setting of the whole instance.
        let mut slot = Slot::new(0, self.instance_options(1), self.keepers.clone());
        slot.attach_existing(location)?;
        for (lake, snapshot) in &past.made.inputs {
            slot.attach_pinned(self.lake_named(lake)?, *snapshot)?;
        }
        let session = slot.session()?;
        lake::read_old_versions(&session)?;
        let _watch = self.cancel.watch(slot.number, &session);
        let alias = location.write_alias();
        let facts = lake::table_at(&session, &alias, schema, table, past.snapshot)?;
        let staged = Evaluated::of(&session, &ctx, &job, script)?;
        let write = Relation::in_catalog(&alias, schema, table);
        let shape = shape(&ShapeFacts {
            script,
            step: &job.step,
            staged: &staged.schema,
            stage: &staged.stage,
            table: facts.as_ref(),
            write,
            beside: Surroundings { at: past.made.started, ..Surroundings::default() },
            strategy: &strategy_of(script, &job.step),
        })?;
        let before = written(past, &alias, (schema, table), facts.as_ref(), &shape, is_refresh, script)?;
        let after = staged.side(&session, &shape)?;
        let changes = shape_changes(&before.schema, &after.schema);
        let comparison = Comparison::new(before, after, &key_of(script));
        let rows = compare_rows(&session, &comparison, changes.is_empty(), limit)?;
        let outcome = match rows.is_empty() && changes.is_empty() {
            true => ReplayOutcome::Equal { rows: rows.same.unwrap_or(0) },
            false => ReplayOutcome::Different { shape: changes, rows: Box::new(rows) },
        };
        let name = match into {
            Some(into) => Some(write_into(location, &session, into, past, &shape, &staged.stage)?),
            None => None,
        };
        Ok((outcome, name))
    }

    /// Returns the context of the run as it was: its texts, and whether its target had a version.
    fn replay_context(&self, past: &Past, project: &Arc<CompiledProject>) -> Result<RunContext, RunnerError> {
        let mut ctx = self.context(crate::new_id(), &super::Observation::default())?;
        ctx.project = project.clone();
        let versions = self.versions_of(&past.asset)?;
        let is_before = |version: &Materialization| {
            version.snapshot < Some(past.snapshot) && !["create", "adopt"].contains(&version.strategy.as_str())
        };
        let had_version = versions.iter().any(is_before);
        ctx.remember(&past.asset, |memory| memory.has_version = had_version);
        Ok(ctx)
    }

    /// Says what may explain that a replay gave something else.
    fn hints(&self, past: &Past, script: &CompiledScript) -> Vec<String> {
        let mut hints = Vec::new();
        let calls = |name: &&&str| script.text.body.functions.iter().any(|function| function == **name);
        let text = script.text.blanked.to_ascii_lowercase();
        let named = |name: &&&str| text.contains(*name) && name.starts_with("current_");
        let changing: Vec<&str> = CHANGING.iter().filter(|name| calls(name) || named(name)).copied().collect();
        if !changing.is_empty() {
            hints.push(format!("its query uses {}, which gives another value each time", changing.join(", ")));
        }
        for (asset, print) in &past.made.files {
            let now = Asset::parse(asset).ok().and_then(|asset| fingerprint(&self.project.project, &asset));
            if now.as_ref() != Some(print) {
                hints.push(format!("{asset} has changed since: files have no versions"));
            }
        }
        if !script.text.lineage.unknown_reads.is_empty() {
            hints.push("it reads something that could not be resolved, so it may not be pinned".to_owned());
        }
        if hints.is_empty() {
            hints
                .push("macros, `[vars]` and the order of rows without ORDER BY are not recorded with a run".to_owned());
        }
        hints
    }

    /// Refuses a schema in which a table of a result exists.
    fn refuse_existing(&self, into: &Results<'_>, past: &[Past]) -> Result<(), RunnerError> {
        if into.schema.eq_ignore_ascii_case(OWN_SCHEMA) {
            return Err(RunnerError::Usage {
                message: format!("`{OWN_SCHEMA}` is Pintail's own schema; name another"),
            });
        }
        for past in past {
            let (location, _, table) = self.lake_of(&past.asset)?;
            let asset = Asset::lake_table(location.name.as_str(), into.schema, table);
            if self.table(&asset)?.is_some() {
                let message = format!("{asset} exists, and a replay writes only new tables; name another schema");
                return Err(RunnerError::Usage { message });
            }
        }
        Ok(())
    }
}

/// Returns why a step cannot be computed again, if so.
fn why_skipped(past: &Past) -> Option<String> {
    if past.is_increment {
        return Some("it took the next part of a column, and what it began from is not recorded".to_owned());
    }
    let reason = match past.made.strategy.as_str() {
        "replace" | "merge" | "append" => return None,
        StampEntry::ROLLBACK => "a rollback runs no script: `pintail diff` compares it with what it brought back",
        "view" => "a view holds no rows",
        "history" => "a history table is built upon its earlier versions",
        "create" | "adopt" => "it wrote no rows",
        _ => "it writes with statements of its own",
    };
    Some(reason.to_owned())
}

/// Returns the recorded script, or what is wrong with its text today.
fn runnable<'p>(project: &'p CompiledProject, name: &ScriptName) -> Result<&'p CompiledScript, String> {
    let script = project.script(name).ok_or_else(|| format!("`{name}` is no script"))?;
    let path = script.file.source.path.as_str();
    let is_error =
        |found: &&pintail_core::diagnostic::Diagnostic| found.path == path && found.severity == Severity::Error;
    if let Some(error) = project.diagnostics.iter().find(is_error) {
        return Err(format!("the recorded text no longer compiles: {} {}", error.code, error.message));
    }
    match &script.cannot_run {
        Some(reason) => Err(format!("this version cannot run it: {reason}")),
        None => Ok(script),
    }
}

fn job_of(past: &Past, script: &CompiledScript, is_refresh: bool) -> StepJob {
    let step = Step {
        script: 0,
        name: script.name().clone(),
        asset: Some(past.asset.clone()),
        strategy: script.strategy_word(),
        partition: past.made.partition.clone(),
        window: past.made.window,
        reason: Reason::Requested,
        content: Content::Script,
        full_refresh: is_refresh,
        script_hash: past.made.script_hash.clone(),
        depends_on: Vec::new(),
    };
    StepJob { index: 0, id: StepId(past.step.step.id.0.clone()), step, pins: past.made.inputs.clone() }
}

/// The result of a query, in a temp table.
struct Evaluated {
    stage: Relation,
    schema: pintail_core::schema::Schema,
}

impl Evaluated {
    fn of(session: &Session, ctx: &RunContext, job: &StepJob, script: &CompiledScript) -> Result<Self, StepFailure> {
        let own = script.target.as_ref().and_then(Asset::lake);
        let upstream = own.and_then(|lake| job.pins.get(lake)).copied();
        prepare_session(session, ctx, job, script, upstream)?;
        let span = script.query_span();
        let query = rewrite(&script.text, span, &ReadAs::PINNED, job.step.partition.as_ref());
        let relation = Relation::temp("_pt_replayed");
        let strategy = script.strategy();
        let statement = stage(&relation, &query.sql, deduplicate(&strategy)?.as_ref());
        session.run(&statement.statement).map_err(|error| {
            StepFailure::in_text(error, |position| query.original_offset_in(position, statement.select_at), span)
        })?;
        let mut schema = lake::schema_of(session.describe(&relation.to_string())?);
        mark_untyped(session, &query.sql, &mut schema);
        Ok(Self { stage: relation, schema })
    }

    /// The result as it would be written.
    fn side(&self, session: &Session, shape: &Shape) -> Result<Side, StepFailure> {
        let query = format!("SELECT\n{}\nFROM {}", shape.target.projection, self.stage);
        let schema = lake::schema_of(session.describe(&query)?);
        Ok(Side { from: format!("({query})"), schema })
    }
}

/// Returns what the step wrote: the slice or table as it left it, or, where it only added, the rows that it inserted.
fn written(
    past: &Past,
    alias: &str,
    (schema, table): (&str, &str),
    facts: Option<&TableFacts>,
    shape: &Shape,
    is_refresh: bool,
    script: &CompiledScript,
) -> Result<Side, RunnerError> {
    let Some(facts) = facts else {
        let message = format!("{} did not exist at snapshot {}", past.asset, past.snapshot);
        return Err(RunnerError::NotFound { message });
    };
    let condition = shape.slice.as_ref().map_or_else(String::new, |slice| format!(" WHERE {}", slice.predicate(None)));
    let is_whole = is_refresh || matches!(script.strategy(), WriteStrategy::Replace);
    let source = match is_whole {
        true => lake::at_version(alias, schema, table, past.snapshot),
        false => format!(
            "ducklake_table_insertions({}, {}, {}, {snapshot}, {snapshot})",
            Literal::new(alias),
            Literal::new(schema),
            Literal::new(table),
            snapshot = past.snapshot
        ),
    };
    Ok(Side { from: format!("(SELECT * FROM {source}{condition})"), schema: facts.schema.clone() })
}

/// Writes the result as a new table of the schema, in a commit that says so; the partitions of a run share a table.
fn write_into(
    location: &LakeLocation,
    session: &Session,
    into: &mut Results<'_>,
    past: &Past,
    shape: &Shape,
    stage: &Relation,
) -> Result<String, RunnerError> {
    let alias = location.write_alias();
    let name = past.asset.short_name();
    let relation = Relation::in_catalog(&alias, into.schema, name);
    let select = format!("SELECT\n{}\nFROM {stage}", shape.target.projection);
    let is_new = into.made.insert(relation.to_string());
    let write = match is_new {
        true => Statement::new("make the table of the result", format!("CREATE TABLE {relation} AS\n{select}")),
        false => Statement::new("add to the table of the result", format!("INSERT INTO {relation} BY NAME\n{select}")),
    };
    let make_schema = format!("CREATE SCHEMA IF NOT EXISTS {}.{}", Ident::new(&alias), Ident::new(into.schema));
    let attempt = AttemptId(crate::new_id());
    let message = format!("replay {} of run {}", past.asset, past.made.run);
    let extra_info = serde_json::json!({"pintail": 1, "entries": [], "replay": attempt.as_str()}).to_string();
    let lane = location.lane();
    let _pass = lane.enter()?;
    let transaction = WriteTransaction::begin(session, &alias)?;
    transaction.run(&Statement::new("make the schema", make_schema))?;
    transaction.run(&write)?;
    let words = CommitWords { attempt: &attempt, message: &message, extra_info: &extra_info };
    transaction.commit(&words, || {})?;
    Ok(format!("{}.{name}", into.schema))
}
