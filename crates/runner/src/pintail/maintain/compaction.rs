//! Compaction of the tables of one lake, each under its write lease, within a budget of time.

use std::time::{Duration, Instant};

use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, RunId, SnapshotId};
use pintail_core::retention::{KnownConsumer, Ramp, RewriteRefused, TableFiles, may_rewrite, unread_changes};
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::{Lease, LeaseAnswer, LeaseKey};
use pintail_engine::lake::OWN_SCHEMA;
use pintail_engine::lake::compact::{self, CompactTable, Compacted};
use pintail_engine::lake::{self, feed};
use pintail_engine::lane::Purpose;
use pintail_engine::{EngineError, ErrorClass, Session};

use super::{At, SLOT, counting};
use crate::pintail::{Pintail, RunnerError};

/// What DuckLake writes when nobody says otherwise.
const TARGET_BYTES: u64 = 512_000_000;

/// How long a merge waits for those who change rows of its table. They are done in moments, and those who come later
/// wait behind the merge.
const PATIENCE: Duration = Duration::from_secs(10);

const OVER: &str = "the time for compaction was over";

/// How files are compacted.
#[derive(Clone, Debug, PartialEq)]
pub struct Compaction {
    /// A file of less than this is small, and merged with others of its partition.
    pub small_bytes: u64,
    /// Tables of which at least this part is deleted are written again; `None` for none.
    pub rewrite: Option<f64>,
    /// No merge is begun after this time.
    pub budget: Duration,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { small_bytes: 64_000_000, rewrite: Some(0.5), budget: Duration::from_secs(1_800) }
    }
}

/// What became of the files of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactedTable {
    /// The schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// Files that were merged, or could be, and how many came of them.
    pub merged: Option<Compacted>,
    /// Files that were written again without their deleted rows.
    pub rewritten: Option<Compacted>,
    /// Why something was left for the next time.
    pub left: Option<String>,
}

impl CompactedTable {
    fn new(need: &Need) -> Self {
        let (schema, table) = (need.files.schema.clone(), need.files.table.clone());
        Self { schema, table, merged: None, rewritten: None, left: need.refused.clone() }
    }

    fn is_worth_a_line(&self) -> bool {
        self.merged.is_some() || self.rewritten.is_some() || self.left.is_some()
    }
}

/// A table, and what its files need.
pub struct Need {
    /// Its files.
    pub files: TableFiles,
    merges: bool,
    rewrites: bool,
    /// Why it is not written again although it would be worth it.
    refused: Option<String>,
}

impl Need {
    /// Whether something is to be done.
    pub fn is_due(&self) -> bool {
        self.merges || self.rewrites
    }

    /// Returns what would be done.
    pub fn expected(
        &self,
        place: (&Session, &str),
        known: &[KnownConsumer],
    ) -> Result<Option<CompactedTable>, EngineError> {
        let mut table = CompactedTable::new(self);
        let would = |before, after| Some(Compacted { files_before: before, files_after: after });
        if self.merges {
            match unread_update(place, &self.files, known)? {
                Some(reason) => table.left = Some(reason),
                None => table.merged = would(self.files.mergeable, self.files.merge_groups),
            }
        }
        if self.rewrites {
            table.rewritten = would(self.files.with_deletes, self.files.with_deletes);
        }
        Ok(table.is_worth_a_line().then_some(table))
    }
}

/// Returns every table with files and what these need, those first where something is to be done, and Pintail's own last.
pub fn needs(
    (session, alias): (&Session, &str),
    compaction: Option<&Compaction>,
    known: &[KnownConsumer],
) -> Result<Vec<Need>, EngineError> {
    let threshold = compaction.and_then(|compaction| compaction.rewrite).unwrap_or(f64::INFINITY);
    let need = |files: TableFiles| {
        let rewrite = may_rewrite(&files, known, threshold);
        let refused = rewrite.as_ref().err().map(|refused| refusal(&files, refused));
        let merges = compaction.is_some() && 0 < files.mergeable;
        Need { files, merges, rewrites: rewrite == Ok(true), refused }
    };
    let small_bytes = compaction.map_or(0, |compaction| compaction.small_bytes);
    let mut needs: Vec<Need> = compact::table_files(session, alias, small_bytes)?.into_iter().map(need).collect();
    needs.sort_by_key(|need| (!need.is_due(), need.files.schema == OWN_SCHEMA));
    Ok(needs)
}

impl Pintail {
    /// Does what is needed.
    pub(super) fn compact(
        &self,
        at: &At<'_>,
        compaction: &Compaction,
        known: &[KnownConsumer],
        needs: &[Need],
    ) -> Result<Vec<CompactedTable>, RunnerError> {
        let started = Instant::now();
        let mut told = Vec::new();
        for need in needs {
            let mut table = CompactedTable::new(need);
            if need.is_due() {
                let work = TableWork { at, compaction, files: &need.files, consumers: known, started };
                self.compact_table(&work, need.rewrites, &mut table)?;
            }
            if table.is_worth_a_line() {
                told.push(table);
            }
        }
        Ok(told)
    }

    fn compact_table(
        &self,
        work: &TableWork<'_>,
        rewrites: bool,
        table: &mut CompactedTable,
    ) -> Result<(), RunnerError> {
        if work.is_over() {
            table.left = Some(OVER.to_owned());
            return Ok(());
        }
        let Some(lease) = self.lease_table(work)? else {
            table.left = Some("it is being written; the next upkeep comes to it".to_owned());
            return Ok(());
        };
        let done = self.merge_table(work, table).and_then(|()| match rewrites {
            true => self.rewrite_table(work, table),
            false => Ok(()),
        });
        self.runtime.block_on(work.at.guard.release(&lease)).map_err(EngineError::from)?;
        // What a writer without a lease, such as a program of others, made impossible is tried next time.
        match done {
            Err(error) if work.at.request.cancel.is_set() => return Err(error.into()),
            Err(error) if error.class() == ErrorClass::Conflict => {
                table.left = Some("it was written meanwhile; the next upkeep comes to it".to_owned());
            }
            Err(error) if error.class() == ErrorClass::Transient => {
                table.left = Some(format!("{}; the next upkeep comes to it", crate::with_sources(&error)));
            }
            // One table that cannot be compacted must not keep versions from expiring.
            Err(error) => {
                counting::count_failed_compaction(&work.at.location.name);
                table.left = Some(format!("its files cannot be compacted: {}", crate::with_sources(&error)));
            }
            Ok(()) => {}
        }
        Ok(())
    }

    fn merge_table(&self, work: &TableWork<'_>, table: &mut CompactedTable) -> Result<(), EngineError> {
        if work.files.mergeable == 0 {
            return Ok(());
        }
        let memory = self.project.project.config.run.memory_limit.0 / self.slots().max(1);
        let mut ramp = Ramp::new(work.files, memory, TARGET_BYTES);
        loop {
            if work.is_over() {
                table.left = Some(OVER.to_owned());
                return Ok(());
            }
            let began = Instant::now();
            // Asked where nobody changes rows of the table any more, and of each merge: an update may come between two.
            let mut unread = None;
            let merged = self.in_lane(work, |table, attempt| {
                unread = unread_update((work.at.session, work.at.alias), work.files, work.consumers)?;
                match unread {
                    None => table.merge(work.compaction.small_bytes, ramp.next(), attempt),
                    Some(_) => Ok(None),
                }
            });
            match merged {
                Ok(None) => {
                    table.left = unread.or(table.left.take());
                    return Ok(());
                }
                Ok(Some(done)) => {
                    add(&mut table.merged, done);
                    ramp = ramp.after_success(began.elapsed());
                }
                Err(error) if error.is_out_of_memory() => match ramp.after_out_of_memory() {
                    Some(smaller) => ramp = smaller,
                    None => {
                        table.left = Some("the memory does not suffice to merge one file of it".to_owned());
                        return Ok(());
                    }
                },
                Err(error) => return Err(error),
            }
        }
    }

    fn rewrite_table(&self, work: &TableWork<'_>, table: &mut CompactedTable) -> Result<(), EngineError> {
        if work.is_over() {
            table.left = Some(OVER.to_owned());
            return Ok(());
        }
        let threshold = work.compaction.rewrite.unwrap_or(1.0);
        let done = self.in_lane(work, |table, attempt| table.rewrite(threshold, attempt))?;
        if let Some(done) = done {
            add(&mut table.rewritten, done);
        }
        Ok(())
    }

    /// One commit, while nobody changes rows of the table; between two of them writers have their turn.
    fn in_lane<T>(
        &self,
        work: &TableWork<'_>,
        commit: impl FnOnce(&CompactTable<'_>, &AttemptId) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let name = (work.files.schema.as_str(), work.files.table.as_str());
        let At { location, session, request, .. } = *work.at;
        let before_commit = || {
            // From here on a wish to stop could only make the outcome unknown.
            request.cancel.shield(SLOT);
            self.settings.faults.reach(FaultPoint::Compacted);
        };
        let table = CompactTable { session, lake: location, name, before_commit: &before_commit };
        let lane = location.lane();
        let _pass = lane.enter_to(Purpose::Compact(name), PATIENCE, &|| request.cancel.is_set())?;
        work.at.unless_stopped(|| commit(&table, &AttemptId(crate::new_id())))
    }

    fn lease_table(&self, work: &TableWork<'_>) -> Result<Option<Lease>, RunnerError> {
        let asset = Asset::lake_table(work.at.location.name.as_str(), &work.files.schema, &work.files.table);
        let key = LeaseKey { asset: asset.to_string(), partition: None };
        let now = (self.settings.now)().timestamp_micros();
        let run = RunId("maintain".to_owned());
        let asked = work.at.guard.try_lease(&key, &run, now);
        match self.runtime.block_on(asked).map_err(EngineError::from)? {
            LeaseAnswer::Granted(lease) => Ok(Some(lease)),
            LeaseAnswer::Held(_) => Ok(None),
        }
    }
}

/// One table and what is needed for it.
struct TableWork<'a> {
    at: &'a At<'a>,
    compaction: &'a Compaction,
    files: &'a TableFiles,
    consumers: &'a [KnownConsumer],
    started: Instant,
}

impl TableWork<'_> {
    fn is_over(&self) -> bool {
        self.compaction.budget <= self.started.elapsed()
    }
}

/// Returns why no file of a table is merged now, if a consumer has still to read an update of it.
fn unread_update(
    (session, alias): (&Session, &str),
    files: &TableFiles,
    consumers: &[KnownConsumer],
) -> Result<Option<String>, EngineError> {
    let (schema, table) = (files.schema.as_str(), files.table.as_str());
    let Some(after) = consumers.iter().map(|consumer| consumer.upto).min() else { return Ok(None) };
    let tables = lake::live_tables(session, alias)?;
    let Some(live) = tables.iter().find(|live| live.schema == schema && live.name == table) else {
        return Ok(None);
    };
    let changing = feed::changing_since(session, alias, live.id, after)?;
    let Some((consumer, unread)) = unread_changes(files, consumers, &changing) else { return Ok(None) };
    let update = feed::first_update(session, alias, (schema, table), &unread)?;
    Ok(update.map(|snapshot: SnapshotId| {
        format!(
            "consumer {consumer} has not read the updates of snapshot {snapshot} yet, which merging would show it as new \
             rows; the next upkeep comes to it"
        )
    }))
}

fn add(total: &mut Option<Compacted>, done: Compacted) {
    let sum = total.get_or_insert_default();
    sum.files_before += done.files_before;
    sum.files_after += done.files_after;
}

fn refusal(files: &TableFiles, refused: &RewriteRefused) -> String {
    let part = files.deleted as f64 / files.records.max(1) as f64 * 100.0;
    let why = match refused {
        RewriteRefused::Consumed(name) => format!("consumer {name} reads its change feed, which rewriting would fill"),
        RewriteRefused::UnknownSource(name) => {
            format!("consumer {name} may read it, and rewriting fills the change feed")
        }
    };
    format!("{part:.0} % of its rows are deleted and stay in its files: {why}")
}
