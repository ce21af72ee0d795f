//! Which partitions a backfill means.

use pintail_core::id::ScriptName;
use pintail_core::partition::{PartitionKey, TimeSpec};
use pintail_core::plan::Partitions;

use super::super::{Observation, Pintail, RunnerError};
use crate::project::CompiledScript;

/// A backfill of one script.
#[derive(Clone, Debug, Default)]
pub struct BackfillRange {
    /// The script, or the asset that it writes.
    pub script: String,
    /// The first partition; `start=` when absent.
    pub from: Option<String>,
    /// Where to end, not included: the range is `[from, to)`; after the last closed one when absent.
    pub to: Option<String>,
    /// Only partitions that were never written.
    pub missing: bool,
    /// Only partitions whose newest attempt failed.
    pub failed: bool,
    /// Only partitions that are older than the script or its inputs.
    pub stale: bool,
    /// What the script reads, too.
    pub upstream: bool,
    /// Exactly these, in order: a window of a job. The bounds and choices above are not looked at then.
    pub keys: Option<Vec<PartitionKey>>,
}

impl Pintail {
    /// Returns the script that `text` names: its name, its file, or the asset that it writes.
    pub fn find_script(&self, text: &str) -> Result<&CompiledScript, RunnerError> {
        if let Some(script) = self.project.script(&ScriptName(text.to_owned())) {
            return Ok(script);
        }
        let matching = self.project.select(Some(text), None).unwrap_or_default();
        match matching.as_slice() {
            [node] => self.project.script_at(*node).ok_or_else(|| self.no_script(text)),
            [] => Err(self.no_script(text)),
            several => {
                Err(RunnerError::Usage { message: format!("`{text}` means {} scripts; name one", several.len()) })
            }
        }
    }

    fn no_script(&self, text: &str) -> RunnerError {
        let names = self.project.scripts.iter().map(|script| script.name().as_str());
        let hint = pintail_core::diagnostic::nearest(text, names)
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        RunnerError::NoScript { name: ScriptName(text.to_owned()), hint }
    }

    /// Returns the script of `range` with its place among `runnable` and its calendar.
    pub(super) fn backfill_script<'s>(
        &'s self,
        range: &BackfillRange,
        runnable: &[&CompiledScript],
    ) -> Result<(usize, &'s CompiledScript, &'s TimeSpec), RunnerError> {
        let script = self.find_script(&range.script)?;
        let Some(position) = runnable.iter().position(|runnable| runnable.name() == script.name()) else {
            let reason = script.cannot_run.clone().unwrap_or_default();
            return Err(RunnerError::Usage { message: format!("`{}` cannot run: {reason}", script.name()) });
        };
        if let Some(dynamic) = script.dynamic_spec() {
            let how = match dynamic.payload_path() {
                Some(_) => {
                    format!("run it for each value: `pintail run --select {} --partition <value>`", script.name())
                }
                None => format!("`pintail run --select {} --full-refresh` takes everything anew", script.name()),
            };
            let message = format!("`{}` has no calendar, so it has no range to fill; {how}", script.name());
            return Err(RunnerError::Usage { message });
        }
        let Some(spec) = script.time_spec() else {
            return Err(RunnerError::Usage {
                message: format!(
                    "`{}` has no partitions; `pintail run --select {}` runs it",
                    script.name(),
                    script.name()
                ),
            });
        };
        Ok((position, script, spec))
    }

    pub(in super::super) fn backfill_partitions(
        &self,
        range: &BackfillRange,
        runnable: &[&CompiledScript],
        seen: &Observation,
    ) -> Result<Partitions, RunnerError> {
        let (position, script, spec) = self.backfill_script(range, runnable)?;
        if let Some(keys) = &range.keys {
            return Ok(Partitions::Of { script: position, keys: keys.clone() });
        }
        let (first, last) = self.bounds(range, script, spec)?;
        let partitions =
            spec.range(&first, &last).map_err(|error| RunnerError::Usage { message: error.to_string() })?;
        let wanted = |key: &PartitionKey| {
            let known = script.target.as_ref().and_then(|asset| seen.slices.get(&(asset.clone(), Some(key.clone()))));
            match (range.missing, range.failed) {
                (false, false) => true,
                (missing, failed) => {
                    (missing && known.is_none_or(|slice| slice.version.is_none()))
                        || (failed && known.is_some_and(|slice| slice.has_failed))
                }
            }
        };
        Ok(Partitions::Of { script: position, keys: partitions.filter(wanted).collect() })
    }

    /// Returns the first and the last partition that `range` means, both included.
    pub(super) fn bounds(
        &self,
        range: &BackfillRange,
        script: &CompiledScript,
        spec: &TimeSpec,
    ) -> Result<(PartitionKey, PartitionKey), RunnerError> {
        let wrong = |error: pintail_core::partition::PartitionError| RunnerError::Usage { message: error.to_string() };
        let now = (self.settings.now)();
        let first = match &range.from {
            Some(text) => first_of(spec, text).map_err(wrong)?,
            None => spec.expected(now).next().filter(|_| spec.start.is_some()).ok_or_else(|| RunnerError::Usage {
                message: format!("`{}` has no `start=`, so say where to begin: `--from <partition>`", script.name()),
            })?,
        };
        let Some(text) = &range.to else { return Ok((first, spec.last_closed(now))) };
        let end = first_of(spec, text).map_err(wrong)?;
        if spec.window(&end).map_err(wrong)?.start <= spec.window(&first).map_err(wrong)?.start {
            return Err(RunnerError::Usage {
                message: format!("nothing lies from {first} to {end}: the end itself is not included"),
            });
        }
        let last = spec.previous(&end).map_err(wrong)?;
        Ok((first, last))
    }
}

/// A coarser text, such as a month for a daily script, means the first that it holds.
fn first_of(spec: &TimeSpec, text: &str) -> Result<PartitionKey, pintail_core::partition::PartitionError> {
    match spec.parse_key(text) {
        Ok(key) => Ok(key),
        Err(error) => pintail_core::partition::translate_argument(text, spec)?.next().ok_or(error),
    }
}
