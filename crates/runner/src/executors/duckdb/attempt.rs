//! One attempt of a step: what it works with, and what it knows of its target.

use std::time::{Duration, Instant};

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::id::{AttemptId, LakeName, SnapshotId};
use pintail_core::partition::PartitionKey;
use pintail_core::plan::{Content, Step};
use pintail_core::schema::Schema;
use pintail_core::sql::Relation;
use pintail_core::sql::stamp::StampEntry;
use pintail_core::sql::strategy::STAGE;
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::Guard;
use pintail_engine::lake::{self, Concern, TableFacts};
use pintail_engine::lane::{Lane, LanePass};
use pintail_engine::session::SentStatement;
use pintail_engine::{LakeLocation, Session};
use pintail_store::TestResult;

use super::commit;
use super::lease::HeldLease;
use super::stream::OpenStream;
use super::unchanged::Confirmed;
use crate::executors::{RunContext, StepFailure, StepJob};
use crate::project::CompiledScript;

/// What one attempt works with.
pub struct Attempt<'a> {
    /// The run.
    pub ctx: &'a RunContext,
    /// The step.
    pub job: &'a StepJob,
    /// Its script.
    pub script: &'a CompiledScript,
    /// What it writes.
    pub asset: &'a Asset,
    /// The target's schema and table.
    pub table: (&'a str, &'a str),
    /// The lake of the target.
    pub lake: &'a LakeLocation,
    /// The alias under which the target's lake is written.
    pub alias: String,
    /// The temp table that holds what the query gave.
    pub stage: Relation,
    /// Whether the target is known not to exist, so that nobody needs to look.
    pub is_absent: bool,
    /// Whether the stage is made inside the write transaction, so that nothing can have changed since.
    pub stages_inside: bool,
    /// The lake's guard.
    pub guard: &'a Guard,
    /// The slot that does it.
    pub slot: usize,
    /// The attempt's id.
    pub id: AttemptId,
    /// Which attempt of the step it is, from 1.
    pub number: u32,
    /// The snapshot of each lake at which it reads; moved when a self-reader must see a newer version.
    pub pins: std::collections::BTreeMap<LakeName, SnapshotId>,
    /// What happened besides, for people.
    pub notes: Vec<String>,
    /// What the tests found.
    pub tests: Vec<TestResult>,
    /// What was sent.
    pub sent: Vec<SentStatement>,
    /// How long each phase took.
    pub phases: Vec<(&'static str, Duration)>,
    /// What a script with `stream` takes, once it is known.
    pub stream: Option<OpenStream>,
    /// The right to write the slice, once it is given.
    pub lease: Option<HeldLease<'a>>,
    /// When this attempt began.
    pub started: Instant,
    /// When the step's first attempt began.
    pub begun: Instant,
    /// Who is told of each phase: the step's place and the phase.
    pub report_phase: &'a dyn Fn(usize, &'static str),
}

/// A commit that the look-up has proved.
#[derive(Clone, Debug)]
pub struct Landed {
    /// Its snapshot.
    pub snapshot: SnapshotId,
    /// What it said about itself.
    pub entry: StampEntry,
    /// The columns afterwards.
    pub schema: Option<Schema>,
}

/// How an attempt ended well.
#[derive(Clone, Debug)]
pub enum Ended {
    /// It committed.
    Landed(Box<Landed>),
    /// The table holds already what it would have written.
    Unchanged(Box<Confirmed>),
    /// A newer run was there first.
    Superseded {
        /// Its snapshot.
        snapshot: SnapshotId,
        /// Its run.
        run: pintail_core::id::RunId,
    },
}

impl<'a> Attempt<'a> {
    /// Returns the first attempt of a step, not begun yet, or why there can be none.
    pub fn first(
        ctx: &'a RunContext,
        job: &'a StepJob,
        slot: usize,
        report_phase: &'a dyn Fn(usize, &'static str),
    ) -> Result<Self, StepFailure> {
        let (Some(script), Some(asset)) = (ctx.project.script(&job.step.name), &job.step.asset) else {
            let message = "the step has no script or no target";
            return Err(StepFailure::user(Code::ENGINE_ERROR, "find the script", message));
        };
        let Asset::Lake { lake: lake_name, schema, table } = asset else {
            let message = format!("{asset} is not a lake table; this version writes lakes only");
            return Err(StepFailure::user(Code::ENGINE_ERROR, "find the target", message));
        };
        let (Some(lake), Some(guard)) = (ctx.lakes.get(lake_name), ctx.guards.get(lake_name)) else {
            let message = format!("there is no lake `{lake_name}`");
            return Err(StepFailure::user(Code::UNKNOWN_LAKE, "find the lake", message));
        };
        Ok(Self {
            ctx,
            job,
            script,
            asset,
            table: (schema, table),
            lake,
            alias: lake.write_alias(),
            stage: stage_of(job),
            is_absent: false,
            stages_inside: false,
            guard,
            slot,
            id: AttemptId(crate::new_id()),
            number: 1,
            pins: job.pins.clone(),
            notes: Vec::new(),
            tests: Vec::new(),
            sent: Vec::new(),
            phases: Vec::new(),
            stream: None,
            lease: None,
            started: Instant::now(),
            begun: Instant::now(),
            report_phase,
        })
    }

    /// Returns the attempt after this one, which has ended.
    pub fn next(self) -> Self {
        Self {
            id: AttemptId(crate::new_id()),
            number: self.number + 1,
            alias: self.lake.write_alias(),
            is_absent: false,
            stages_inside: false,
            pins: self.job.pins.clone(),
            notes: Vec::new(),
            tests: Vec::new(),
            sent: Vec::new(),
            phases: Vec::new(),
            stream: None,
            lease: None,
            started: Instant::now(),
            ..self
        }
    }

    /// Returns the table as it is written.
    pub fn target(&self) -> Relation {
        Relation::in_catalog(&self.alias, self.table.0, self.table.1)
    }

    /// Runs `work` as the phase `name`.
    pub fn phase<T>(&mut self, name: &'static str, work: impl FnOnce(&mut Self) -> T) -> T {
        (self.report_phase)(self.job.index, name);
        let started = Instant::now();
        let value = work(self);
        self.add_time(name, started.elapsed());
        value
    }

    /// Adds to the time of the phase `name`.
    pub fn add_time(&mut self, name: &'static str, elapsed: Duration) {
        match self.phases.iter_mut().find(|(phase, _)| *phase == name) {
            Some((_, total)) => *total += elapsed,
            None => self.phases.push((name, elapsed)),
        }
    }

    /// Marks a point of the protocol for tests.
    pub fn reach(&self, point: FaultPoint) {
        self.ctx.faults.reach(point);
    }

    /// Fails when the user has stopped the run or the step's time is up.
    pub fn go_on(&self, stage: &'static str) -> Result<(), StepFailure> {
        match self.is_stopped() {
            true => Err(StepFailure::cancelled(stage)),
            false => Ok(()),
        }
    }

    /// Returns whether the user has stopped the run or the step's time is up.
    pub fn is_stopped(&self) -> bool {
        self.ctx.cancel.is_set() || self.ctx.cancel.is_late(self.slot)
    }

    /// Enters the lake's lane; who waits there for another process can be stopped.
    pub fn enter<'l>(&self, lane: &'l Lane) -> Result<LanePass<'l>, StepFailure> {
        Ok(lane.enter_within(self.ctx.faults.patience(), &|| self.is_stopped())?)
    }

    /// Returns the target as the catalog describes it, having taken in what was committed to it since the run was planned.
    ///
    /// A table whose shape nobody has changed since this run described it is not described again: that costs as much as
    /// writing a small slice.
    pub fn target_table(&self, session: &Session, head: SnapshotId) -> Result<Option<TableFacts>, StepFailure> {
        let memory = self.ctx.memory_of(self.asset);
        if self.is_absent && memory.table.is_none() {
            return Ok(None);
        }
        if let Some((known, _)) = memory.table {
            self.catch_up(session, Some(&known), head)?;
            if let Some(facts) = self.ctx.memory_of(self.asset).described_table() {
                return Ok(Some(facts.clone()));
            }
        }
        let (schema, table) = self.table;
        let facts = lake::table_facts(session, &self.alias, schema, table)?;
        self.catch_up(session, facts.as_ref(), head)?;
        self.ctx.remember(self.asset, |memory| memory.table = facts.clone().map(|facts| (facts, head)));
        Ok(facts)
    }

    /// Takes in what was committed to the target since the run was planned: what is remembered of it was read then. A
    /// foreign change makes the numbers of rows unknown, and a table that a foreign writer made is not ours. Each commit
    /// is taken in once in a run.
    fn catch_up(&self, session: &Session, table: Option<&TableFacts>, head: SnapshotId) -> Result<(), StepFailure> {
        let planned = self.job.pins.get(&self.lake.name).copied().unwrap_or(SnapshotId(0));
        let after = self.ctx.memory_of(self.asset).caught_up.map_or(planned, |seen| seen.max(planned));
        if head <= after {
            return Ok(());
        }
        let asset = self.asset.to_string();
        for commit in lake::commits_concerning(session, &self.alias, after, &self.concern(table))? {
            let is_made = commit.changes.creates(self.table.0, self.table.1);
            let touches = is_made || table.is_some_and(|table| commit.changes.touches_table(table.id));
            let changes_shape =
                is_made || table.is_none_or(|table| touches && !commit.changes.changes_only_rows(table.id));
            let stamps = commit::seen(&commit).stamps;
            let ours: Vec<&StampEntry> = stamps.iter().filter(|entry| entry.asset == asset).collect();
            self.ctx.remember(self.asset, |memory| {
                memory.caught_up = memory.caught_up.max(Some(commit.snapshot));
                if changes_shape {
                    memory.shape_changed = memory.shape_changed.max(Some(commit.snapshot));
                }
                match (ours.is_empty(), touches) {
                    (true, true) => memory.take_in_foreign(is_made),
                    (true, false) => {}
                    (false, _) => ours.iter().for_each(|entry| memory.take_in(entry)),
                }
            });
        }
        Ok(())
    }

    /// Returns what a commit must be about to matter to this write.
    pub fn concern(&self, table: Option<&TableFacts>) -> Concern {
        Concern {
            asset: self.asset.to_string(),
            name: (self.table.0.to_owned(), self.table.1.to_owned()),
            table: table.map(|table| table.id),
            slice: None,
        }
    }

    /// Returns the partition.
    pub fn partition(&self) -> Option<&PartitionKey> {
        self.job.step.partition.as_ref()
    }

    /// Returns whether what the step writes is computed from its own target.
    pub fn reads_target(&self) -> bool {
        self.job.step.content == Content::Script && self.script.reads_target()
    }

    /// Returns how the step writes.
    pub fn strategy(&self) -> WriteStrategy {
        strategy_of(self.script, &self.job.step)
    }

    /// Returns the stamp of the attempt as far as it is known before writing.
    pub fn entry(&self) -> StampEntry {
        let memory = self.ctx.memory_of(self.asset);
        StampEntry {
            attempt: self.id.clone(),
            run: self.ctx.run.clone(),
            step: self.job.id.clone(),
            asset: self.asset.to_string(),
            script: self.script.name().to_string(),
            table_id: None,
            generation: memory.generation,
            partition: self.partition().cloned(),
            window: self.job.step.window,
            increment: self.ctx.increment_of(&self.job.id).map(|open| open.increment),
            strategy: self.script.strategy_word().to_owned(),
            deleted: 0,
            inserted: 0,
            rows: None,
            schema_version: memory.schema_version,
            script_hash: self.script.hash().clone(),
            inputs: self.inputs(),
            files: self.script.prints_read(self.ctx),
            atomic: false,
            restored: None,
        }
    }

    /// Returns the pins of the places that the script reads, and of its own.
    fn inputs(&self) -> std::collections::BTreeMap<LakeName, SnapshotId> {
        self.pins
            .iter()
            .filter(|(place, _)| **place == self.lake.name || self.script.reads_place(place))
            .map(|(place, pin)| (place.clone(), *pin))
            .collect()
    }
}

/// Returns the temp table of a step: the stages of a group lie side by side in one session.
pub fn stage_of(job: &StepJob) -> Relation {
    Relation::temp(&format!("{STAGE}_{}", job.index))
}

/// Returns how a step writes: as declared, but a full refresh writes merge and append anew.
pub fn strategy_of(script: &CompiledScript, step: &Step) -> WriteStrategy {
    if step.content != Content::Script {
        return WriteStrategy::Replace;
    }
    match script.strategy() {
        WriteStrategy::Merge { .. } | WriteStrategy::Append if step.full_refresh => WriteStrategy::Replace,
        // An increment has no rows of its own before it is written: there is nothing to replace.
        WriteStrategy::Replace if script.increment_column().is_some() && !step.full_refresh => WriteStrategy::Append,
        declared => declared,
    }
}
