//! What planned steps read of partitions that nobody has written: their results would lack those rows without a word.
//!
//! An upstream without partitions that was never written is not here: its table is missing, and the step fails.

use std::collections::{BTreeMap, BTreeSet};

use super::{Facts, Hint, Step};
use crate::partition::PartitionKey;

/// Returns a hint for each pair of a planned script and a script that it reads, where partitions of the latter in the
/// windows of the plan were never written and are not in the plan either.
pub(super) fn unwritten_upstream(facts: &Facts<'_>, steps: &[Step]) -> Vec<Hint> {
    let planned: BTreeSet<(usize, &PartitionKey)> =
        steps.iter().filter_map(|step| Some((step.script, step.partition.as_ref()?))).collect();
    let mut missing: BTreeMap<(usize, usize), BTreeSet<PartitionKey>> = BTreeMap::new();
    for step in steps {
        let Some(window) = step.window else { continue };
        let script = &facts.scripts[step.script];
        for position in &script.upstream {
            let upstream = &facts.scripts[*position];
            let Some(asset) = upstream.asset.as_ref().filter(|asset| script.reads.contains(asset)) else { continue };
            let Some(calendar) = &upstream.partition else { continue };
            let is_missing = |key: &PartitionKey| {
                let known = facts.slices.get(&(asset.clone(), Some(key.clone())));
                // What is still going on, or has not begun, is not expected yet.
                let is_over = calendar.window(key).is_ok_and(|window| window.end <= facts.now);
                is_over
                    && !planned.contains(&(*position, key))
                    && !calendar.is_before_start(key)
                    && known.is_none_or(|slice| slice.version.is_none())
            };
            let found = calendar.overlapping(window).filter(is_missing);
            let all = missing.entry((step.script, *position)).or_default();
            all.extend(found);
        }
    }
    missing
        .into_iter()
        .filter_map(|((script, upstream), keys)| {
            Some(Hint::UnwrittenUpstream {
                script: facts.scripts[script].name.clone(),
                upstream: facts.scripts[upstream].name.clone(),
                missing: u64::try_from(keys.len()).unwrap_or(u64::MAX),
                first: keys.into_iter().next()?,
            })
        })
        .collect()
}
