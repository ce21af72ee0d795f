//! What a backfill would do: its partitions, how long they may take, and what it reads that was never written.

use std::num::NonZeroU32;
use std::time::Duration;

use pintail_core::asset::Asset;
use pintail_core::id::ScriptName;
use pintail_core::partition::{PartitionError, PartitionKey, TimeSpec, Window};
use pintail_core::plan::backfill::{Ranges, RangesBuilder};
use pintail_core::plan::{Facts, ScriptFacts, SliceStatus, slice_status};
use pintail_store::{AssetKey, BackfillId, BackfillOptions};

use super::super::{Pintail, RunnerError};
use super::BackfillRange;
use crate::project::CompiledScript;

/// How many past materializations an estimate looks at.
const SAMPLES: u32 = 50;

/// How many partitions are named.
const FIRST: usize = 3;

/// A backfill that is asked for.
#[derive(Clone, Debug, Default)]
pub struct BackfillRequest {
    /// Which partitions of which script.
    pub range: BackfillRange,
    /// What is up to date, too.
    pub force: bool,
    /// Partitions at once; as many as there are slots when absent.
    pub concurrency: Option<NonZeroU32>,
}

/// A backfill before it begins.
#[derive(Clone, Debug)]
pub struct BackfillPlan {
    /// The script.
    pub script: ScriptName,
    /// What it writes.
    pub asset: Option<Asset>,
    /// The partitions to make.
    pub ranges: Ranges,
    /// How many they are.
    pub total: u64,
    /// The first few of them.
    pub first: Vec<PartitionKey>,
    /// How many of what was asked for are up to date, and so left out.
    pub up_to_date: u64,
    /// How it is done.
    pub options: BackfillOptions,
    /// How long it may take; `None` when the script has never written anything here.
    pub estimate: Option<Estimate>,
    /// What it reads that was never written.
    pub unwritten: Vec<UnwrittenUpstream>,
    /// Jobs of the same script that were interrupted.
    pub interrupted: Vec<BackfillId>,
    /// The calendar.
    pub(super) calendar: String,
    /// What was asked for, in words.
    pub(super) request: String,
}

/// How long a backfill may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// All of it.
    pub total: Duration,
    /// One partition, by the median of past ones.
    pub each: Duration,
    /// How many past ones there were.
    pub samples: usize,
    /// Partitions at once.
    pub at_once: u64,
}

/// Partitions of an upstream that were never written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnwrittenUpstream {
    /// The script that would write them.
    pub script: ScriptName,
    /// How many; `None` for a script without partitions.
    pub partitions: Option<u64>,
}

impl BackfillPlan {
    /// Returns the options that asked for it, as they stand on a command line.
    pub fn request_text(&self) -> &str {
        &self.request
    }
}

impl Pintail {
    /// Returns what the backfill `request` would do. Nothing is expanded: ten thousand partitions are passed one by one.
    pub fn plan_backfill(&self, request: &BackfillRequest) -> Result<BackfillPlan, RunnerError> {
        let seen = self.observe(&self.project.scripts)?;
        let runnable = self.runnable(&seen);
        let range = &request.range;
        let (position, script, spec) = self.backfill_script(range, &runnable.scripts)?;
        let facts = self.facts(&seen, &runnable);
        let script_facts = &runnable.facts[position];
        let chosen = Chosen { request, facts: &facts, script: script_facts };
        let (ranges, up_to_date) = self.choose(&chosen, script, spec)?;
        let total = ranges.count(spec).map_err(usage)?;
        let options = BackfillOptions {
            upstream: range.upstream,
            force: request.force,
            concurrency: request.concurrency.map(NonZeroU32::get),
        };
        let unwritten = match range.upstream {
            true => Vec::new(),
            false => unwritten_upstream(&facts, script_facts, spec, &ranges).map_err(usage)?,
        };
        let first = ranges.keys(spec).map_err(usage)?.take(FIRST).collect();
        Ok(BackfillPlan {
            script: script.name().clone(),
            asset: script.target.clone(),
            first,
            estimate: self.estimate(script, total, options)?,
            interrupted: self.interrupted_backfills(script.name())?,
            calendar: calendar_text(spec),
            request: request_text(range, request.force),
            ranges,
            total,
            up_to_date,
            options,
            unwritten,
        })
    }

    /// Returns the partitions to make, and how many of those asked for are up to date.
    fn choose(
        &self,
        chosen: &Chosen<'_>,
        script: &CompiledScript,
        spec: &TimeSpec,
    ) -> Result<(Ranges, u64), RunnerError> {
        let (first, last) = self.bounds(&chosen.request.range, script, spec)?;
        if spec.is_future(&last, (self.settings.now)()).map_err(usage)? {
            return Err(RunnerError::Usage {
                message: format!("`{}`: the partition {last} has not begun yet", script.name()),
            });
        }
        let mut builder = RangesBuilder::new(spec);
        let mut up_to_date = 0;
        for key in spec.range(&first, &last).map_err(usage)? {
            match chosen.wants(&key) {
                Wanted::Yes => builder.push(key).map_err(usage)?,
                Wanted::IsUpToDate => up_to_date += 1,
                Wanted::No => {}
            }
        }
        Ok((builder.finish(), up_to_date))
    }

    fn estimate(
        &self,
        script: &CompiledScript,
        total: u64,
        options: BackfillOptions,
    ) -> Result<Option<Estimate>, RunnerError> {
        let Some(asset) = &script.target else { return Ok(None) };
        let durations = self.runtime.block_on(self.store.past_durations(&AssetKey::from(asset), SAMPLES))?;
        let mut durations: Vec<Duration> = durations.iter().filter_map(|duration| duration.to_std().ok()).collect();
        durations.sort_unstable();
        let Some(each) = durations.get(durations.len() / 2).copied() else { return Ok(None) };
        let at_once = options.concurrency.map_or(self.slots(), u64::from).max(1);
        let rounds = u32::try_from(total.div_ceil(at_once)).unwrap_or(u32::MAX);
        Ok(Some(Estimate { total: each.saturating_mul(rounds), each, samples: durations.len(), at_once }))
    }
}

/// What decides whether a partition is wanted.
struct Chosen<'a> {
    request: &'a BackfillRequest,
    facts: &'a Facts<'a>,
    script: &'a ScriptFacts,
}

enum Wanted {
    Yes,
    IsUpToDate,
    No,
}

impl Chosen<'_> {
    fn wants(&self, key: &PartitionKey) -> Wanted {
        let range = &self.request.range;
        let known =
            self.script.asset.as_ref().and_then(|asset| self.facts.slices.get(&(asset.clone(), Some(key.clone()))));
        let is_written = known.is_some_and(|slice| slice.version.is_some());
        let has_failed = known.is_some_and(|slice| slice.has_failed);
        if !range.missing && !range.failed && !range.stale {
            // With its upstream, what is up to date now may be stale once that is written.
            let is_sure = !self.request.force && !range.upstream;
            return if is_sure && !self.is_due(key) { Wanted::IsUpToDate } else { Wanted::Yes };
        }
        let is_stale = || is_written && !has_failed && self.is_due(key);
        let is_wanted = (range.missing && !is_written) || (range.failed && has_failed) || (range.stale && is_stale());
        if is_wanted { Wanted::Yes } else { Wanted::No }
    }

    fn is_due(&self, key: &PartitionKey) -> bool {
        matches!(slice_status(self.facts, self.script, Some(key)), SliceStatus::Due(_))
    }
}

/// Returns what `script` reads in `ranges` that was never written, though a script of the project would write it.
fn unwritten_upstream(
    facts: &Facts<'_>,
    script: &ScriptFacts,
    spec: &TimeSpec,
    ranges: &Ranges,
) -> Result<Vec<UnwrittenUpstream>, PartitionError> {
    let mut unwritten = Vec::new();
    for upstream in script.upstream.iter().map(|position| &facts.scripts[*position]) {
        let Some(asset) = upstream.asset.as_ref().filter(|asset| script.reads.contains(asset)) else { continue };
        let is_missing = |key: Option<PartitionKey>| {
            facts.slices.get(&(asset.clone(), key)).is_none_or(|slice| slice.version.is_none())
        };
        let partitions = match &upstream.partition {
            None if is_missing(None) => None,
            None => continue,
            Some(calendar) => Some(count_missing(calendar, spec, ranges, is_missing)?),
        };
        if partitions != Some(0) {
            unwritten.push(UnwrittenUpstream { script: upstream.name.clone(), partitions });
        }
    }
    Ok(unwritten)
}

/// Returns how many partitions of `calendar` that share time with `ranges` of `spec` are missing. Those before `start=` are
/// not expected.
fn count_missing(
    calendar: &TimeSpec,
    spec: &TimeSpec,
    ranges: &Ranges,
    is_missing: impl Fn(Option<PartitionKey>) -> bool,
) -> Result<u64, PartitionError> {
    let mut missing = 0;
    let mut previous: Option<PartitionKey> = None;
    for range in ranges.as_slice() {
        let window = Window { start: spec.window(&range.first)?.start, end: spec.window(&range.last)?.end };
        for key in calendar.overlapping(window) {
            // Two ranges may lie in one longer period.
            let is_new = previous.as_ref() != Some(&key);
            if is_new && !calendar.is_before_start(&key) && is_missing(Some(key.clone())) {
                missing += 1;
            }
            previous = Some(key);
        }
    }
    Ok(missing)
}

/// Returns the calendar as text: two specs with the same text have the same partitions.
pub(super) fn calendar_text(spec: &TimeSpec) -> String {
    format!("{} {}", spec.unit.word(), spec.zone())
}

fn request_text(range: &BackfillRange, force: bool) -> String {
    let mut words = Vec::new();
    words.extend(range.from.iter().map(|from| format!("--from {from}")));
    words.extend(range.to.iter().map(|to| format!("--to {to}")));
    let flags = [
        (range.missing, "--missing"),
        (range.failed, "--failed"),
        (range.stale, "--stale"),
        (range.upstream, "--upstream"),
        (force, "--force"),
    ];
    words.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_owned()));
    words.join(" ")
}

pub(super) fn usage(error: PartitionError) -> RunnerError {
    RunnerError::Usage { message: error.to_string() }
}
