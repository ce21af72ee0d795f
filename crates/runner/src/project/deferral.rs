//! A profile that defers to another: what it writes goes to schemas of its own, what it has not built is read from the
//! other profile.
//!
//! Invariant: nothing that the other profile owns is ever a target. Every asset that a script of the project writes is
//! renamed before the graph is built; which table a read means is decided when it runs, by what this profile has built.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use pintail_core::annotation::{Mute, TestCheck, Trigger};
use pintail_core::asset::Asset;
use pintail_core::id::LakeName;
use pintail_core::sql::classify::Need;

use super::{CompiledScript, CompiledTest, ParsedText};
use crate::workspace::Config;

/// What a deferring profile knows of the one that it defers to.
#[derive(Debug, Default)]
pub struct Deferral {
    /// The profile that is read where this one has built nothing.
    pub profile: String,
    suffix: String,
    /// The lakes of the other profile that are not this one's, under the names by which they are attached.
    elsewhere: BTreeMap<LakeName, LakeName>,
    /// What each asset of this profile is called in the other.
    originals: BTreeMap<Asset, Asset>,
    /// Where what this profile has not built, or cannot build, is read.
    read_from: BTreeMap<Asset, Asset>,
    /// Views that are built with a table, by the view: the current rows beside a history.
    built_with: BTreeMap<Asset, Asset>,
    built: RwLock<HashSet<Asset>>,
}

impl Deferral {
    /// Returns the deferral of the selected profile; `None` when it has none.
    pub(super) fn of(config: &Config, scripts: &[CompiledScript], tests: &[CompiledTest]) -> Option<Self> {
        let deferred = config.deferred.as_ref()?;
        let elsewhere: BTreeMap<LakeName, LakeName> =
            deferred.lakes.keys().map(|lake| (lake.clone(), deferred.lake_name(lake))).collect();
        let mut deferral = Self {
            profile: deferred.profile.clone(),
            suffix: deferred.schema_suffix.clone(),
            elsewhere,
            ..Self::default()
        };
        for script in scripts {
            let Some(target) = &script.target else { continue };
            deferral.add_original(target);
            if let Some(view) = script.current_view() {
                deferral.add_original(&view);
                deferral.built_with.insert(deferral.own_name(&view), deferral.own_name(target));
            }
        }
        let texts = scripts.iter().map(|script| &script.text).chain(tests.iter().map(|test| &test.text));
        let reads: BTreeSet<&Asset> = texts.flat_map(|text| &text.lineage.reads).map(|read| &read.asset).collect();
        for (own, original) in deferral.originals.clone() {
            deferral.read_from.insert(own, deferral.elsewhere_name(&original));
        }
        let owned: BTreeSet<&Asset> = deferral.originals.values().collect();
        let outside: Vec<(Asset, Asset)> = reads
            .into_iter()
            .filter(|asset| !owned.contains(asset))
            .map(|asset| (asset.clone(), deferral.elsewhere_name(asset)))
            .filter(|(asset, there)| asset != there)
            .collect();
        deferral.read_from.extend(outside);
        Some(deferral)
    }

    fn add_original(&mut self, asset: &Asset) {
        let own = self.own_name(asset);
        if own != *asset || self.elsewhere_name(asset) != *asset {
            self.originals.insert(own, asset.clone());
        }
    }

    fn own_name(&self, asset: &Asset) -> Asset {
        match asset {
            Asset::Lake { lake, schema, table } => {
                Asset::Lake { lake: lake.clone(), schema: format!("{schema}{}", self.suffix), table: table.clone() }
            }
            other => other.clone(),
        }
    }

    fn elsewhere_name(&self, asset: &Asset) -> Asset {
        match asset {
            Asset::Lake { lake, schema, table } => Asset::Lake {
                lake: self.elsewhere.get(lake).unwrap_or(lake).clone(),
                schema: schema.clone(),
                table: table.clone(),
            },
            other => other.clone(),
        }
    }

    /// Returns this profile's asset for one that the project calls `asset`.
    pub fn own(&self, asset: &Asset) -> Option<&Asset> {
        self.originals.iter().find(|(_, original)| *original == asset).map(|(own, _)| own)
    }

    /// Returns the assets that this profile may build, with what the other calls them.
    pub fn originals(&self) -> &BTreeMap<Asset, Asset> {
        &self.originals
    }

    /// Returns what may be read elsewhere, with where that is.
    pub(crate) fn read_elsewhere(&self) -> &BTreeMap<Asset, Asset> {
        &self.read_from
    }

    /// Returns where `asset` is in the other profile.
    pub(crate) fn there<'a>(&'a self, asset: &'a Asset) -> &'a Asset {
        self.read_from.get(asset).unwrap_or(asset)
    }

    /// Returns where `asset` is read now.
    pub fn resolve<'a>(&'a self, asset: &'a Asset) -> &'a Asset {
        match self.is_built(asset) {
            true => asset,
            false => self.read_from.get(asset).unwrap_or(asset),
        }
    }

    /// Returns how the other profile calls what `asset` is read as; `None` when it is read here.
    pub fn deferred_name<'a>(&'a self, asset: &'a Asset) -> Option<&'a Asset> {
        let is_here = self.is_built(asset) || !self.read_from.contains_key(asset);
        (!is_here).then(|| self.originals.get(asset).unwrap_or(asset))
    }

    fn is_built(&self, asset: &Asset) -> bool {
        let asset = self.built_with.get(asset).unwrap_or(asset);
        self.built.read().unwrap_or_else(PoisonError::into_inner).contains(asset)
    }

    /// Says what this profile has built.
    pub(crate) fn set_built(&self, assets: impl Iterator<Item = Asset>) {
        *self.built.write().unwrap_or_else(PoisonError::into_inner) =
            assets.filter(|asset| self.originals.contains_key(asset)).collect();
    }

    /// Says that this profile is about to build `asset`: what reads it waits for it.
    pub(crate) fn will_build(&self, asset: &Asset) {
        if self.originals.contains_key(asset) {
            self.built.write().unwrap_or_else(PoisonError::into_inner).insert(asset.clone());
        }
    }

    /// Returns the name under which the other profile's commits call a lake that is attached as `lake`.
    pub fn stamped_name<'a>(&'a self, lake: &'a LakeName) -> &'a LakeName {
        self.elsewhere.iter().find(|(_, there)| *there == lake).map_or(lake, |(name, _)| name)
    }

    fn rename(&self, asset: &mut Asset) {
        let own = self.own_name(asset);
        if self.originals.contains_key(&own) && self.originals[&own] == *asset {
            *asset = own;
        }
    }

    fn rename_text(self: &Arc<Self>, text: &mut ParsedText) {
        let lineage = &mut text.lineage;
        let reads = lineage.reads.iter_mut().map(|read| &mut read.asset);
        let writes = lineage.writes.iter_mut().map(|write| &mut write.asset);
        let tables = lineage.table_refs.iter_mut().map(|table| &mut table.asset);
        reads.chain(writes).chain(tables).for_each(|asset| self.rename(asset));
        text.deferral = Some(self.clone());
    }

    /// Renames everything that a script says about assets of the project.
    pub(super) fn rename_script(self: &Arc<Self>, script: &mut CompiledScript) {
        let header = &mut script.header;
        if let Some(line) = &mut header.materialize {
            self.rename(&mut line.value.target.value);
        }
        for trigger in &mut header.triggers {
            if let Trigger::Asset { asset, .. } = &mut trigger.value {
                self.rename(asset);
            }
        }
        for mute in &mut header.mutes {
            if let Mute::Asset(asset) = &mut mute.value {
                self.rename(asset);
            }
        }
        for test in &mut header.tests {
            if let TestCheck::Relationships { parent, .. } = &mut test.value.check {
                self.rename(parent);
            }
        }
        let sources = header.columns.iter_mut().flat_map(|column| &mut column.value.sources);
        sources.for_each(|(asset, _)| self.rename(asset));
        if let Some(target) = &mut script.target {
            self.rename(target);
        }
        self.rename_text(&mut script.text);
        script.text.own = script.target.clone();
        if script.cannot_run.is_none() {
            script.cannot_run = self.could_write_there(script);
        }
    }

    /// Renames what a test reads.
    pub(super) fn rename_test(self: &Arc<Self>, test: &mut CompiledTest) {
        self.rename_text(&mut test.text);
    }

    /// A statement whose table is not known, or is none of the project's, could write what the other profile owns.
    fn could_write_there(&self, script: &CompiledScript) -> Option<String> {
        if let Some(target) = script.target.as_ref().filter(|target| target.lake().is_none()) {
            return Some(format!("in a profile that defers to `{}`, {target} would be its own", self.profile));
        }
        let writing =
            script.statements.iter().filter(|(_, need)| matches!(need, Need::OwnTransaction | Need::InTransaction));
        for (span, _) in writing {
            let inside = |at: &pintail_core::source::Span| span.start <= at.start && at.end <= span.end;
            let mut writes = script.text.lineage.writes.iter().filter(|write| inside(&write.span)).peekable();
            let line = 1 + script.text.blanked[..span.start].matches('\n').count();
            let refused =
                |what: String| Some(format!("in a profile that defers to `{}`, line {line} {what}", self.profile));
            if writes.peek().is_none() {
                return refused("writes a table that cannot be told from its text".to_owned());
            }
            if let Some(write) = writes.find(|write| write.name.is_none() || !self.originals.contains_key(&write.asset))
            {
                return refused(format!("writes {}, which no script of the project declares", write.asset));
            }
        }
        None
    }
}

impl ParsedText {
    /// Returns where `asset` is read: its own table, or the other profile's. A script never reads its target elsewhere.
    pub fn resolve<'a>(&'a self, asset: &'a Asset) -> &'a Asset {
        match &self.deferral {
            Some(deferral) if self.own.as_ref() != Some(asset) => deferral.resolve(asset),
            _ => asset,
        }
    }
}
