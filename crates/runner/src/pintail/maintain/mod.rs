//! `pintail maintain`: what nobody needs goes, and what expiry would destroy is kept first.
//!
//! The steps, each safe to be the last one before a crash: lead alone; renew the holds of past runs; delete the slices
//! whose time is over; freeze what may go; compact tables, each under its lease; copy stamps and last changes in a commit;
//! expire in chunks, each alone in the lane after a second look at the holds; then files that nobody shows, older than
//! every reader, and files without an owner.

mod compaction;
mod consumers;
mod counting;
mod retire;
mod sample;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use pintail_core::asset::Asset;
use pintail_core::id::{AttemptId, LakeName, SnapshotId};
use pintail_core::retention::{
    Decision, Hold, RetentionFacts, Snapshot, TableFiles, Why, bytes_freed, bytes_held, decide, delete_before,
    still_free,
};
use pintail_engine::fault::FaultPoint;
use pintail_engine::guard::{Guard, Pin, PinId, PinKind};
use pintail_engine::lake::maintain::{self as upkeep, LastChange, LastChangesByName};
use pintail_engine::lake::{self, Commit, audit};
use pintail_engine::lane::{Lane, LanePass, Purpose};
use pintail_engine::{EngineError, LakeLocation, Session};

use super::changes::{changed_tables, dropped_tables, is_only_retired, names_by_id, stamps_by_asset};
use super::{Pintail, RunnerError};
use crate::executors::Cancel;
pub use compaction::{CompactedTable, Compaction};
use compaction::{Need, needs};

pub use consumers::Standing;
pub use counting::describe as describe_upkeep;
pub use retire::Retired;
use sample::{Difference, Sample};

/// The name under which [`Cancel`] knows the one session of upkeep.
const SLOT: usize = 0;

/// How long upkeep waits for others to leave the lane.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many snapshots are expired while the lane is held.
const CHUNK: usize = 64;

/// What to do.
#[derive(Clone, Debug)]
pub struct MaintainRequest {
    /// One lake; otherwise all.
    pub lake: Option<String>,
    /// Snapshots younger than this stay.
    pub keep: Duration,
    /// Files that expiry has let go of stay for so long, for readers that nobody knows of.
    pub grace: Duration,
    /// After how long a silence a consumer that says nothing itself no longer holds what it has not read.
    pub stale_after: Duration,
    /// Whether and how files are merged and written again; `None` for not at all.
    pub compaction: Option<Compaction>,
    /// Only say what would go.
    pub dry_run: bool,
    /// Ends it between two steps, and what can be taken back at once.
    pub cancel: Cancel,
}

/// Snapshots that one owner holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// Who.
    pub owner: String,
    /// Why; the first reason of several.
    pub reason: String,
    /// Which, oldest first.
    pub snapshots: Vec<SnapshotId>,
    /// Bytes that the head no longer shows and these do.
    pub bytes: u64,
}

/// What was done for one lake, or would be.
#[derive(Clone, Debug, Default)]
pub struct Maintained {
    /// The lake.
    pub lake: Option<LakeName>,
    /// Whether another process is at it, so that nothing was done here.
    pub is_led_elsewhere: bool,
    /// The snapshots that went, or would go.
    pub expired: Vec<SnapshotId>,
    /// How many stay.
    pub kept: usize,
    /// How many of those because they are young.
    pub young: usize,
    /// Who holds the older ones.
    pub held: Vec<HeldBy>,
    /// What retention took, or would take.
    pub retired: Vec<Retired>,
    /// The consumers of the lake and where they stand.
    pub consumers: Vec<Standing>,
    /// The tables whose files were compacted, or would be, and those where that was not possible.
    pub compacted: Vec<CompactedTable>,
    /// Bytes of files that no snapshot shows any more.
    pub bytes_freed: u64,
    /// Files that were deleted.
    pub files_deleted: usize,
    /// Files without an owner that were deleted.
    pub orphans_deleted: usize,
    /// Snapshots whose tables were counted before and after.
    pub checked: usize,
}

impl Maintained {
    fn elsewhere(location: &LakeLocation) -> Self {
        Self { lake: Some(location.name.clone()), is_led_elsewhere: true, ..Self::default() }
    }
}

/// A lake that is looked after.
#[derive(Clone, Copy)]
struct At<'a> {
    location: &'a LakeLocation,
    alias: &'a str,
    guard: &'a Guard,
    session: &'a Session,
    request: &'a MaintainRequest,
}

impl At<'_> {
    /// Fails when somebody asked for the end.
    fn go_on(&self) -> Result<(), EngineError> {
        match self.request.cancel.is_set() {
            true => Err(EngineError::Stopped { lake: self.location.name.to_string() }),
            false => Ok(()),
        }
    }

    /// Waits for the lane, unless somebody asks for the end meanwhile.
    fn enter<'l>(&self, lane: &'l Lane, purpose: Purpose<'_>) -> Result<LanePass<'l>, EngineError> {
        lane.enter_to(purpose, PATIENCE, &|| self.request.cancel.is_set())
    }

    /// Does `work`, which only reads, or what can be taken back, unless somebody asks for the end meanwhile.
    fn unless_stopped<T, E: From<EngineError>>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let _watch = self.request.cancel.watch(SLOT, self.session);
        self.go_on()?;
        work()
    }
}

/// What is decided on.
struct Frozen {
    consumers: Vec<Standing>,
    snapshots: Vec<Snapshot>,
    holds: Vec<Hold>,
    decision: Decision,
}

impl Pintail {
    /// Looks after the lakes.
    pub fn maintain(&self, request: &MaintainRequest) -> Result<Vec<Maintained>, RunnerError> {
        // What the store has not seen is taken in before its stamps move.
        self.observe([])?;
        self.keep_past_runs()?;
        let lakes = self.lakes_named(request.lake.as_deref())?;
        lakes.into_iter().map(|location| self.maintain_lake(location, request)).collect()
    }

    fn maintain_lake(&self, location: &LakeLocation, request: &MaintainRequest) -> Result<Maintained, RunnerError> {
        let guard = self.guard(location)?;
        // Who only looks needs to lead nobody.
        let _leader = match request.dry_run {
            true => None,
            false => match self.runtime.block_on(guard.try_leader("maintain")).map_err(EngineError::from)? {
                None => return Ok(Maintained::elsewhere(location)),
                leader => leader,
            },
        };
        let mut slot = self.take_slot();
        slot.attach_existing(location)?;
        if !request.dry_run {
            slot.attach_for_writing(location)?;
        }
        let session = slot.session()?;
        let at = At { location, alias: &location.write_alias(), guard: &guard, session: &session, request };
        let done = self.maintain_with(&at);
        drop(session);
        self.keep_slot(slot);
        done
    }

    fn maintain_with(&self, at: &At<'_>) -> Result<Maintained, RunnerError> {
        let At { location, alias, guard, session, request } = *at;
        if !request.dry_run {
            self.vouch_for_streams(location, guard, session)?;
            self.refuse_while_damaged(at)?;
            refuse_with_lost_files(at)?;
        }
        at.go_on()?;
        let retired = self.retire(at)?;
        let frozen = self.freeze(at)?;
        let known = Self::known_consumers((session, alias), &frozen.consumers)?;
        let needs = needs((session, alias), request.compaction.as_ref(), &known)?;
        let mut report = report_of(at, &frozen)?;
        report.retired = retired;
        if request.dry_run {
            let expected = needs.iter().map(|need| need.expected((session, alias), &known));
            report.compacted = expected.filter_map(Result::transpose).collect::<Result<_, _>>()?;
            return Ok(report);
        }
        let is_compacted = needs.iter().any(Need::is_due);
        let mut sample = None;
        if is_compacted || !frozen.decision.expire.is_empty() {
            // Compaction changes nothing of other tables than those that it is about.
            let is_at_stake = |need: &&Need| need.is_due() || !frozen.decision.expire.is_empty();
            let tables: Vec<&TableFiles> = needs.iter().filter(is_at_stake).map(|need| &need.files).collect();
            let look = || Sample::take(&location.name, (session, alias), &frozen.decision.kept, &tables);
            sample = Some(at.unless_stopped(look)?);
        }
        report.checked = sample.as_ref().map_or(0, Sample::versions);
        let check = |what: &str| match &sample {
            Some(sample) => match at.unless_stopped(|| sample.check(session, what))? {
                Some(difference) => Err(self.note_damage(at, &difference)?),
                None => Ok(()),
            },
            None => Ok(()),
        };
        if let Some(compaction) = &request.compaction {
            report.compacted = self.compact(at, compaction, &known, &needs)?;
        }
        if is_compacted {
            check("compaction")?;
        }
        if !frozen.decision.expire.is_empty() {
            self.note_passed(guard, &frozen)?;
            self.keep_what_goes(at, &frozen.decision.expire)?;
            self.settings.faults.reach(FaultPoint::Kept);
            report.expired = self.expire(at, &frozen.decision.expire)?;
            report.kept = frozen.snapshots.len() - report.expired.len();
            check("expiry")?;
        }
        self.delete_files(at, &mut report)?;
        counting::count(&report, &frozen.snapshots, (self.settings.now)().timestamp_micros());
        Ok(report)
    }

    /// Holds the version that was changed, under a name by which every later upkeep knows that it must not go on, and returns
    /// what is said of it.
    fn note_damage(&self, at: &At<'_>, found: &Difference) -> Result<RunnerError, RunnerError> {
        let now = (self.settings.now)().timestamp_micros();
        let held = at.guard.hold(found.at, FINDER_OF_DAMAGE, &found.words, now, None);
        let id = self.runtime.block_on(held).map_err(EngineError::from)?;
        Ok(damaged(&at.location.name, id, &found.words))
    }

    fn refuse_while_damaged(&self, at: &At<'_>) -> Result<(), RunnerError> {
        let pins = self.runtime.block_on(at.guard.pins()).map_err(EngineError::from)?;
        match pins.iter().find(|pin| pin.owner == FINDER_OF_DAMAGE) {
            Some(pin) => Err(damaged(&at.location.name, pin.id, &pin.reason)),
            None => Ok(()),
        }
    }

    fn delete_files(&self, at: &At<'_>, report: &mut Maintained) -> Result<(), RunnerError> {
        let At { location, alias, guard, session, request } = *at;
        at.go_on()?;
        let pins = self.runtime.block_on(guard.pins()).map_err(EngineError::from)?;
        let lane = location.lane();
        let _pass = at.enter(&lane, Purpose::Write)?;
        report.files_deleted = upkeep::clean_files(session, alias, self.older_than(&pins, request.grace))?;
        self.settings.faults.reach(FaultPoint::Cleaned);
        at.go_on()?;
        let a_day = Duration::from_secs(86_400);
        report.orphans_deleted = upkeep::delete_orphans(session, alias, self.older_than(&pins, a_day))?;
        Ok(())
    }

    /// Decides what may go; nothing that is made after this can be among it.
    fn freeze(&self, at: &At<'_>) -> Result<Frozen, RunnerError> {
        let At { alias, guard, session, request, .. } = *at;
        let keep_from_micros = ((self.settings.now)() - request.keep).timestamp_micros();
        let (holds, consumers) = self.holds(guard, (session, alias), request.stale_after)?;
        let snapshots = lake::snapshots(session, alias)?;
        let decision = decide(&RetentionFacts { snapshots: &snapshots, holds: &holds, keep_from_micros });
        Ok(Frozen { consumers, snapshots, holds, decision })
    }

    /// Copies the stamps of `ids`, and when each table last changed in them, in a commit of its own.
    fn keep_what_goes(&self, at: &At<'_>, ids: &[SnapshotId]) -> Result<(), RunnerError> {
        let At { location, alias, session, .. } = *at;
        let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(()) };
        let commits = lake::commits_between(session, alias, SnapshotId(first.0 - 1), Some(*last))?;
        let names = names_by_id(session, alias)?;
        let mut changes = LastChangesByName::new();
        for commit in commits.iter().filter(|commit| ids.binary_search(&commit.snapshot).is_ok()) {
            record(&mut changes, &location.name, commit, &names);
        }
        let lane = location.lane();
        let _pass = at.enter(&lane, Purpose::Write)?;
        let now = (self.settings.now)().timestamp_micros();
        upkeep::keep(session, alias, ids, &changes, now, &AttemptId(crate::new_id()))?;
        Ok(())
    }

    /// Expires what of `ids` nobody holds by then, and returns what went.
    fn expire(&self, at: &At<'_>, ids: &[SnapshotId]) -> Result<Vec<SnapshotId>, RunnerError> {
        let At { location, alias, guard, session, request } = *at;
        let lane = location.lane();
        let mut gone = Vec::new();
        for chunk in ids.chunks(CHUNK) {
            at.go_on()?;
            let pass = at.enter(&lane, Purpose::Alone)?;
            let (holds, _) = self.holds(guard, (session, alias), request.stale_after)?;
            let free = still_free(chunk, &holds);
            upkeep::expire(session, alias, &free)?;
            drop(pass);
            gone.extend(free);
            self.settings.faults.reach(FaultPoint::Expired);
        }
        Ok(gone)
    }

    /// Returns the moment before which nothing is read any more: `grace` ago, or before the oldest work in progress.
    fn older_than(&self, pins: &[Pin], grace: Duration) -> i64 {
        let work = pins.iter().filter(|pin| pin.kind == PinKind::Process).map(|pin| pin.since_micros);
        let grace = i64::try_from(grace.as_micros()).unwrap_or(i64::MAX);
        delete_before((self.settings.now)().timestamp_micros(), grace, work)
    }
}

/// Returns what may be said before anything is done.
fn report_of(at: &At<'_>, frozen: &Frozen) -> Result<Maintained, RunnerError> {
    let files = upkeep::file_spans(at.session, at.alias)?;
    let kept: Vec<SnapshotId> = frozen.decision.kept.iter().map(|kept| kept.id).collect();
    Ok(Maintained {
        lake: Some(at.location.name.clone()),
        kept: kept.len(),
        young: frozen.decision.kept.iter().filter(|kept| kept.why == Why::Young).count(),
        held: held_by(frozen, |snapshots| bytes_held(&files, snapshots)),
        bytes_freed: bytes_freed(&files, &kept),
        expired: frozen.decision.expire.clone(),
        consumers: frozen.consumers.clone(),
        ..Maintained::default()
    })
}

/// The owner of the pins that say that upkeep has found damage.
const FINDER_OF_DAMAGE: &str = "upkeep, which found damage";

fn damaged(lake: &LakeName, id: PinId, words: &str) -> RunnerError {
    let message = format!(
        "{words}. Nothing is merged, expired or deleted before it is known why: the files of before are there until then. \
         Please report it. `pintail unpin {lake} {}` lets upkeep go on",
        id.0
    );
    RunnerError::Damaged { message }
}

/// While a table cannot be read nothing is done: among the files
/// that no snapshot shows may be what it can be mended with.
fn refuse_with_lost_files(at: &At<'_>) -> Result<(), RunnerError> {
    let lake = &at.location.name;
    let mut lost = audit::missing_files(at.session, at.alias, at.location)?;
    lost.retain(|file| file.is_live);
    let Some(first) = lost.first() else { return Ok(()) };
    let message = format!(
        "{} of lake `{lake}` that its newest snapshot shows {} not there, such as {}; so nothing was done. `pintail \
         audit {lake}` lists them; bring an older version back by `pintail rollback`, or write the table anew",
        if lost.len() == 1 { "a file".to_owned() } else { format!("{} files", lost.len()) },
        if lost.len() == 1 { "is" } else { "are" },
        first.file
    );
    Err(RunnerError::Damaged { message })
}

fn record(
    changes: &mut LastChangesByName,
    lake: &LakeName,
    commit: &Commit,
    names: &HashMap<pintail_core::id::TableId, Vec<(String, String)>>,
) {
    let stamps = stamps_by_asset(commit);
    for name in changed_tables(&commit.changes, names) {
        let asset = Asset::lake_table(lake.as_str(), &name.0, &name.1).to_string();
        if stamps.get(&asset).is_some_and(|stamps| is_only_retired(stamps)) {
            continue;
        }
        let last: &mut LastChange = changes.entry(name).or_default();
        last.changed = last.changed.max(Some(commit.snapshot));
    }
    for name in dropped_tables(&commit.changes, names) {
        let last: &mut LastChange = changes.entry(name).or_default();
        last.dropped = last.dropped.max(Some(commit.snapshot));
    }
}

/// Groups what is held by owner.
fn held_by(frozen: &Frozen, bytes: impl Fn(&[SnapshotId]) -> u64) -> Vec<HeldBy> {
    let mut owners: BTreeMap<&str, HeldBy> = BTreeMap::new();
    for kept in &frozen.decision.kept {
        let holds = match &kept.why {
            Why::Held(holds) => holds.clone(),
            Why::AfterWork(hold) => vec![*hold],
            Why::Head | Why::Young => continue,
        };
        for position in holds {
            let hold = &frozen.holds[position];
            let owner = owners.entry(&hold.owner).or_insert_with(|| HeldBy {
                owner: hold.owner.clone(),
                reason: hold.reason.clone(),
                snapshots: Vec::new(),
                bytes: 0,
            });
            if owner.snapshots.last() != Some(&kept.id) {
                owner.snapshots.push(kept.id);
            }
        }
    }
    let mut held: Vec<HeldBy> = owners.into_values().collect();
    for owner in &mut held {
        owner.bytes = bytes(&owner.snapshots);
    }
    held
}
