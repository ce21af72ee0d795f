//! Which scripts a selection means. A selection that asks for states observes; any other needs the project alone.

use std::collections::{BTreeMap, BTreeSet};

use pintail_core::graph::NodeId;
use pintail_core::id::ScriptName;
use pintail_core::plan::{SliceIndex, SliceRange, State};
use pintail_core::select::{Fact, ScriptKind, ScriptLabels, SelectFailure, Selection, Universe, parse, select};

use super::runnable::Runnable;
use super::{Observation, Pintail, RunnerError};
use crate::project::CompiledProject;

/// A selection with its exclusion, parsed.
pub(super) struct Wanted {
    selected: Option<Selection>,
    excluded: Option<Selection>,
}

/// Which scripts hold what a selection may ask for.
pub(super) type FactsOfScripts = BTreeMap<FactKey, Vec<ScriptName>>;

/// A fact in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FactKey {
    State(State),
    New,
    Modified,
}

impl FactKey {
    const ALL: [FactKey; 8] = [
        FactKey::State(State::Missing),
        FactKey::State(State::Failed),
        FactKey::State(State::Stale),
        FactKey::State(State::Partial),
        FactKey::State(State::Unknown),
        FactKey::State(State::Fresh),
        FactKey::New,
        FactKey::Modified,
    ];

    fn fact(self) -> Fact {
        match self {
            FactKey::State(state) => Fact::State(state),
            FactKey::New => Fact::New,
            FactKey::Modified => Fact::Modified,
        }
    }
}

/// Returns whether a selection asks for what only the recorded state knows; one that cannot be read does not.
pub fn asks_for_state(selected: Option<&str>, excluded: Option<&str>) -> bool {
    Wanted::parse(selected, excluded).is_ok_and(|wanted| wanted.asks_for_state())
}

impl Wanted {
    /// Reads both texts, or returns every mistake in them.
    pub(super) fn parse(selected: Option<&str>, excluded: Option<&str>) -> Result<Self, SelectFailure> {
        let wanted = selected.map(parse).transpose();
        let unwanted = excluded.map(parse).transpose();
        match (wanted, unwanted) {
            (Ok(selected), Ok(excluded)) => Ok(Self { selected, excluded }),
            (wanted, unwanted) => Err(SelectFailure {
                select: wanted.err().unwrap_or_default(),
                exclude: unwanted.err().unwrap_or_default(),
            }),
        }
    }

    /// Returns whether the recorded state must be known.
    pub(super) fn asks_for_state(&self) -> bool {
        let asks = |selection: &Option<Selection>| selection.iter().flat_map(Selection::facts).next().is_some();
        asks(&self.selected) || asks(&self.excluded)
    }

    /// Returns the states that scripts are selected by.
    pub(super) fn states(&self) -> BTreeSet<State> {
        self.selected.as_ref().map(Selection::states).unwrap_or_default()
    }

    /// Returns the chosen scripts.
    pub(super) fn evaluate(&self, universe: &Universe<'_>) -> Result<Vec<NodeId>, SelectFailure> {
        select(universe, self.selected.as_ref(), self.excluded.as_ref())
    }
}

impl CompiledProject {
    /// Returns the scripts that `select` without `exclude` means, in topological order.
    pub fn select(&self, selected: Option<&str>, excluded: Option<&str>) -> Result<Vec<NodeId>, SelectFailure> {
        Wanted::parse(selected, excluded)?.evaluate(&self.universe())
    }

    /// Returns the scripts that `select` without `exclude` may mean, whatever the recorded state is.
    pub fn select_widest(&self, selected: Option<&str>, excluded: Option<&str>) -> Result<Vec<NodeId>, SelectFailure> {
        let wanted = Wanted::parse(selected, None)?;
        let unwanted = Wanted::parse(None, excluded)?;
        let everyone = || self.scripts.iter().map(|script| script.name().clone());
        let mut widest = self.universe();
        for key in FactKey::ALL {
            widest = widest.with_fact(key.fact(), everyone());
        }
        let mut nodes = wanted.evaluate(&widest)?;
        if !unwanted.asks_for_state() && excluded.is_some() {
            let kept: BTreeSet<NodeId> = unwanted.evaluate(&self.universe())?.into_iter().collect();
            nodes.retain(|node| kept.contains(node));
        }
        Ok(nodes)
    }

    pub(super) fn universe(&self) -> Universe<'_> {
        let labels = self.scripts.iter().map(|script| ScriptLabels {
            name: script.name().clone(),
            tags: script.header.tags.iter().map(|tag| tag.value.clone()).collect(),
            owner: script.header.owner.as_ref().map(|owner| owner.value.clone()),
            kind: script.header.materialize.as_ref().map(|line| ScriptKind::from(&line.value.strategy)),
            language: script.language(),
        });
        let universe = Universe::new(&self.graph, labels);
        let Some(deferral) = &self.deferral else { return universe };
        // A script is called by the names of the project too, not only by those of this profile.
        self.scripts.iter().fold(universe, |universe, script| {
            let original = script.target.as_ref().and_then(|target| deferral.originals().get(target));
            original.into_iter().fold(universe, |universe, asset| universe.with_name(asset, script.name()))
        })
    }

    /// Returns the universe in which each fact holds of the scripts that `facts` name, or of none.
    pub(super) fn universe_with(&self, facts: &FactsOfScripts) -> Universe<'_> {
        FactKey::ALL.into_iter().fold(self.universe(), |universe, key| {
            universe.with_fact(key.fact(), facts.get(&key).cloned().unwrap_or_default())
        })
    }
}

impl Pintail {
    /// Returns the scripts that a selection means, in topological order; one that asks for states observes.
    pub fn select(&self, selected: Option<&str>, excluded: Option<&str>) -> Result<Vec<NodeId>, RunnerError> {
        let wanted = Wanted::parse(selected, excluded).map_err(RunnerError::Select)?;
        if !wanted.asks_for_state() {
            return wanted.evaluate(&self.project.universe()).map_err(RunnerError::Select);
        }
        let seen = self.observe(&self.project.scripts)?;
        let runnable = self.runnable(&seen);
        let facts = self.facts_of_scripts(&seen, &runnable);
        wanted.evaluate(&self.project.universe_with(&facts)).map_err(RunnerError::Select)
    }

    /// Returns which scripts are in which state: in one when a slice is, fresh when all are.
    pub(super) fn facts_of_scripts(&self, seen: &Observation, runnable: &Runnable<'_>) -> FactsOfScripts {
        let facts = self.facts(seen, runnable);
        let index = SliceIndex::new(&facts);
        let mut found = FactsOfScripts::new();
        let mut add = |key: FactKey, name: &ScriptName| found.entry(key).or_default().push(name.clone());
        for script in &runnable.facts {
            let ranges: Vec<SliceRange> = index.ranges(&facts, script);
            let states: BTreeSet<State> = ranges.iter().map(|range| range.state).collect();
            for state in &states {
                if *state != State::Fresh || states.len() == 1 {
                    add(FactKey::State(*state), &script.name);
                }
            }
            let is_known = script.asset.as_ref().is_some_and(|asset| seen.memory.get(asset).is_some_and(|m| m.is_ours));
            if !is_known {
                add(FactKey::New, &script.name);
            }
            let is_edited = |range: &SliceRange| range.reason == Some(pintail_core::plan::Reason::ScriptChanged);
            if ranges.iter().any(is_edited) {
                add(FactKey::Modified, &script.name);
            }
        }
        found
    }
}
