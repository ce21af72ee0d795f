//! Looking whether rollups are what their bases say, and making them anew.
//!
//! Both may be done beside the owner: a rebuild is a commit that updates the cursor's row, so that it and a fold of the
//! owner conflict instead of both landing.

use super::in_place;
use super::outcome::PassError;
use super::pass::Consumer;
use crate::position;
use crate::rollup::{Drift, Healing, Rollup};

/// Which rollups are made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuild {
    /// None: they are only looked at.
    Nothing,
    /// Those that are not what their bases say.
    Wrong,
    /// All.
    All,
}

/// A rollup that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Its table.
    pub table: String,
    /// How far it was from its base.
    pub drift: Drift,
    /// Whether it was made anew.
    pub is_rebuilt: bool,
}

impl Consumer<'_> {
    /// Looks at the rollups of this consumer, or of this shard, and makes anew those that are asked for.
    pub fn rebuild(&mut self, which: Rebuild) -> Result<Vec<Looked>, PassError> {
        if position::read(self.writer, &self.spec.cursor())?.is_none() {
            return Err(PassError::NeverRun { consumer: self.spec.name.clone() });
        }
        self.prepare()?;
        let targets = self.targets.as_deref().unwrap_or_default();
        let (mut looked, mut statements) = (Vec::new(), Vec::new());
        for target in targets {
            let Some((rollup, table)) = target.target.rollup.as_deref().zip(target.rollup.as_ref()) else { continue };
            let drift = self.drift(rollup, &target.base_of_shard, &table.to_string())?;
            let is_rebuilt = match (which, drift.healing(&table.table.0)) {
                (Rebuild::All, _) => true,
                (Rebuild::Wrong, Healing::Rebuild(reason)) => {
                    tracing::info!(%reason, "a rollup is made anew");
                    true
                }
                (Rebuild::Wrong | Rebuild::Nothing, _) => false,
            };
            if is_rebuilt {
                statements.extend(in_place::rebuild(target));
            }
            looked.push(Looked { table: table.table.0.clone(), drift, is_rebuilt });
        }
        if !statements.is_empty() {
            self.write_in_place(&statements, "rollups made anew from their bases")?;
        }
        Ok(looked)
    }

    fn drift(&self, rollup: &dyn Rollup, base: &str, table: &str) -> Result<Drift, PassError> {
        let sql = rollup.check(base, table);
        let counts = self.writer.session().one("compare a rollup with its base", &sql, |row| {
            Ok([row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?])
        })?;
        let [missing, extra, different] = counts.map(|count| u64::try_from(count).unwrap_or(0));
        Ok(Drift { missing, extra, different })
    }
}
