//! `pintail rollback`: a plan of one step that writes an older version again, and what it would change.

use pintail_core::asset::Asset;
use pintail_core::id::SnapshotId;
use pintail_core::plan::{Content, Plan, Reason, Step};
use pintail_core::sql::diff::ShapeChange;
use pintail_core::sql::stamp::StampEntry;
use pintail_engine::lake;

use super::{AssetDiff, Observation, Pintail, PlanRequest, RunnerError};

/// What to bring back.
#[derive(Clone, Debug, Default)]
pub struct RollbackRequest {
    /// The asset, a table of the default lake, or a script.
    pub asset: String,
    /// The version to bring back.
    pub to: String,
    /// One partition; otherwise the whole table.
    pub partition: Option<String>,
    /// At most so many rows of each kind are shown.
    pub limit: u64,
}

/// A rollback that was not done yet.
#[derive(Debug)]
pub struct Rollback {
    /// The asset.
    pub asset: Asset,
    /// The version that comes back.
    pub to: SnapshotId,
    /// What changes, from the version that is live; `None` when the table is gone.
    pub diff: Option<AssetDiff>,
    /// The plan of one step.
    pub plan: Plan,
    /// What was seen.
    pub seen: Observation,
    /// The scripts that read the asset, by name, in order.
    pub downstream: Vec<String>,
}

impl Rollback {
    /// Returns whether the live version is that version already. A partition has no columns of its own: its rows decide,
    /// and only a column that came since changes nothing about them.
    pub fn is_nothing(&self) -> bool {
        let is_of_a_slice = self.plan.steps.iter().any(|step| step.partition.is_some());
        let is_same_shape = |change: &ShapeChange| is_of_a_slice && matches!(change, ShapeChange::Removed(_));
        self.diff.as_ref().is_some_and(|diff| diff.rows.is_empty() && diff.shape.iter().all(is_same_shape))
    }
}

impl Pintail {
    /// Plans to bring an older version back; nothing is written.
    pub fn plan_rollback(&self, request: &RollbackRequest) -> Result<Rollback, RunnerError> {
        let asset = self.parse_asset(&request.asset)?;
        let (location, ..) = self.lake_of(&asset)?;
        let refuse = |message: String| Err(RunnerError::Usage { message });
        let Some(script) = self.writer_of(&asset) else {
            return refuse(format!(
                "no script of this project writes {asset}; only what Pintail writes is rolled back"
            ));
        };
        if script.strategy_word() == "view" {
            return refuse(format!(
                "{asset} is a view: it has no rows of its own; bring the older text of `{}` back and run it",
                script.name()
            ));
        }
        let seen = self.observe([script])?;
        if !seen.memory.get(&asset).is_some_and(|memory| memory.is_ours) {
            return refuse(format!("Pintail has not written {asset}; `pintail adopt {asset}` takes it over"));
        }
        let mut old = self.old_versions(location)?;
        let head = lake::head(&old.session, &old.alias())?;
        let to = self.version(&old, &asset, &request.to)?;
        for at in [head, to] {
            self.hold(&mut old, at, "a rollback reads it")?;
        }
        let partition = self.partition_of(&asset, request.partition.as_deref())?;
        let is_there = |at| old.table_at(&asset, at);
        if is_there(to)?.is_some_and(|facts| facts.is_view) {
            return refuse(format!("{asset} was a view at snapshot {to}; only tables are rolled back"));
        }
        let diff = match is_there(head)? {
            Some(_) => Some(self.compare_versions(&old, &asset, partition.clone(), (head, to), request.limit)?),
            None if is_there(to)?.is_some() => None,
            None => return refuse(format!("{asset} did not exist at snapshot {to}, and is not there now")),
        };
        let window = match (script.time_spec(), &partition) {
            (Some(spec), Some(key)) => {
                Some(spec.window(key).map_err(|error| RunnerError::Usage { message: error.to_string() })?)
            }
            _ => None,
        };
        let step = Step {
            script: 0,
            name: script.name().clone(),
            asset: Some(asset.clone()),
            strategy: StampEntry::ROLLBACK,
            partition,
            window,
            reason: Reason::RolledBack(to),
            content: Content::Restore { snapshot: to },
            full_refresh: false,
            script_hash: script.hash().clone(),
            depends_on: Vec::new(),
        };
        // The preview is of this head: whatever comes after it stops the rollback.
        let mut pins = seen.heads.clone();
        pins.insert(location.name.clone(), head);
        let plan = Plan { steps: vec![step], pins, ..Plan::default() };
        let downstream = self.readers_of(&asset);
        Ok(Rollback { asset, to, diff, plan, seen, downstream })
    }

    /// Returns the names of the scripts that come after the writer of `asset`, in order.
    fn readers_of(&self, asset: &Asset) -> Vec<String> {
        let Some(writer) = self.writer_of(asset) else { return Vec::new() };
        let nodes = self.project.select(Some(&format!("{}+", writer.name())), None).unwrap_or_default();
        let names = nodes.into_iter().filter_map(|node| self.project.script_at(node)).map(|script| script.name());
        names.filter(|name| *name != writer.name()).map(ToString::to_string).collect()
    }

    /// Returns the request that runs what a rollback of `asset` made stale.
    pub fn downstream_request(&self, asset: &Asset) -> Option<PlanRequest> {
        let writer = self.writer_of(asset)?.name();
        Some(PlanRequest {
            select: Some(format!("{writer}+")),
            exclude: Some(writer.to_string()),
            ..PlanRequest::default()
        })
    }
}
