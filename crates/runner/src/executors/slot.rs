//! A worker slot: one warm DuckDB instance with the lakes attached that its steps use.
//!
//! Aliases are instance-wide, so a slot does one step at a time. A pinned alias stays attached as long as its pin is the
//! one that is asked for: the first bind on a fresh one costs fifty milliseconds.

use std::collections::BTreeMap;

use super::Keepers;
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::sql::Ident;
use pintail_engine::{EngineError, Instance, InstanceOptions, LakeLocation, Session};

/// One slot.
pub struct Slot {
    /// Its number, from 0.
    pub number: usize,
    options: InstanceOptions,
    keepers: Keepers,
    open: Option<Open>,
}

/// What exists only while the instance is sound.
struct Open {
    // Declared in this order so that the session goes before its instance.
    session: Session,
    instance: Instance,
    /// Lakes attached for writing, and whether they have all that Pintail needs.
    writing: BTreeMap<LakeName, bool>,
    pinned: BTreeMap<LakeName, SnapshotId>,
}

impl Slot {
    /// Returns slot `number`; its instance is opened by the first step.
    pub fn new(number: usize, options: InstanceOptions, keepers: Keepers) -> Self {
        Self { number, options, keepers, open: None }
    }

    /// Returns a new session of the slot's instance.
    pub fn session(&mut self) -> Result<Session, EngineError> {
        self.open()?.instance.session()
    }

    /// Makes sure that `lake` is attached for writing and has all that Pintail needs; makes the lake when it is new.
    pub fn attach_for_writing(&mut self, lake: &LakeLocation) -> Result<(), EngineError> {
        let keepers = self.keepers.clone();
        let open = self.open()?;
        match open.writing.get(&lake.name) {
            Some(true) => {}
            Some(false) => lake.prepare_attached(&open.session)?,
            None => lake.attach_for_writing(&open.instance, &open.session)?,
        }
        open.writing.insert(lake.name.clone(), true);
        keepers.keep_open(lake, &open.instance)
    }

    /// Makes sure that `lake`, which exists, is attached under its write alias; makes nothing.
    pub fn attach_existing(&mut self, lake: &LakeLocation) -> Result<(), EngineError> {
        let open = self.open()?;
        if !open.writing.contains_key(&lake.name) {
            lake.attach_existing(&open.instance, &open.session)?;
            open.writing.insert(lake.name.clone(), false);
        }
        Ok(())
    }

    /// Makes sure that `lake` is attached under its SQL name at `pin`.
    pub fn attach_pinned(&mut self, lake: &LakeLocation, pin: SnapshotId) -> Result<(), EngineError> {
        let open = self.open()?;
        if open.pinned.get(&lake.name) == Some(&pin) {
            return Ok(());
        }
        self.detach_pinned(lake)?;
        let open = self.open()?;
        lake.attach_for_reading(&open.instance, &open.session, &lake.sql_name(), Some(pin))?;
        open.pinned.insert(lake.name.clone(), pin);
        Ok(())
    }

    /// Detaches the pinned alias of `lake`, if it is there.
    pub fn detach_pinned(&mut self, lake: &LakeLocation) -> Result<(), EngineError> {
        let open = self.open()?;
        if open.pinned.remove(&lake.name).is_some() {
            open.session.batch("detach the pinned lake", &format!("DETACH {}", Ident::new(lake.sql_name())))?;
        }
        Ok(())
    }

    /// Attaches `lake` for writing under the name that scripts use, for a script with statements of its own.
    pub fn attach_for_script(&mut self, lake: &LakeLocation) -> Result<(), EngineError> {
        self.detach_pinned(lake)?;
        let open = self.open()?;
        lake.attach_for_script(&open.session)
    }

    /// Detaches what [`Slot::attach_for_script`] attached.
    pub fn detach_from_script(&mut self, lake: &LakeLocation) -> Result<(), EngineError> {
        let open = self.open()?;
        open.session.batch("detach the script's lake", &format!("DETACH {}", Ident::new(lake.sql_name())))
    }

    /// Throws the instance away; the next step opens a new one.
    pub fn discard(&mut self) {
        self.open = None;
    }

    fn open(&mut self) -> Result<&mut Open, EngineError> {
        if self.open.is_none() {
            let instance = Instance::open(self.options.clone())?;
            let session = instance.session()?;
            self.open = Some(Open { session, instance, writing: BTreeMap::new(), pinned: BTreeMap::new() });
        }
        Ok(self.open.as_mut().expect("it was opened just now"))
    }
}
