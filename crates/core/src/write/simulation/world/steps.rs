//! The steps of one writer, as the protocol has them: lease, stage, begin, check, write, commit, look up, remember; and
//! what follows a failure. Each takes the decision that the product takes.

use std::collections::BTreeMap;

use super::{Fence, Meant, World, asset_name};
use crate::id::{AttemptId, RunId, ScriptHash, SnapshotId, StepId, TableId};
use crate::partition::PartitionKey;
use crate::sql::stamp::StampEntry;
use crate::write::simulation::lake::{Catalog, Committed, Lake, Row, Shape};
use crate::write::simulation::writer::{ASSETS, Mode, Part, State, Strategy, Told, Writer};
use crate::write::{Check, CheckFacts, ErrorClass, Facts, MAX_ATTEMPTS, Next, check, next_after_failure};

impl World {
    pub(super) fn step(&mut self, chosen: usize) {
        if self.writers[chosen].is_dead {
            return;
        }
        match self.writers[chosen].state {
            State::Idle => self.lease(chosen),
            State::Leased => self.stage(chosen),
            State::Staged => self.begin(chosen),
            State::Begun => self.check(chosen),
            State::Checked => self.write(chosen),
            State::Written => self.commit(chosen),
            State::Sent { returned_well } => self.look_up(chosen, returned_well),
            State::Committed(snapshot) => self.remember(chosen, snapshot),
            State::Ended => {}
        }
    }

    fn lease(&mut self, chosen: usize) {
        let keys: Vec<(usize, String)> = self.writers[chosen].parts.iter().map(Part::lease).collect();
        if self.protocol.leases {
            if keys.iter().any(|key| self.leases.contains_key(key)) {
                return;
            }
            self.leases.extend(keys.into_iter().map(|key| (key, chosen)));
        }
        let head = self.lake.head();
        let writer = &mut self.writers[chosen];
        for part in &mut writer.parts {
            part.base = head;
            part.read = writer.pin;
            if ASSETS[part.asset].reads_target {
                // Staging on a version that is known to be old would be in vain.
                part.read = head;
                part.base = head;
            }
        }
        writer.state = State::Leased;
    }

    fn stage(&mut self, chosen: usize) {
        let writer = &self.writers[chosen];
        // A run in one transaction stages inside it.
        if writer.mode != Mode::Atomic {
            let stages: Vec<Vec<Row>> =
                writer.parts.iter().map(|part| self.staged(writer.name, part, part.read)).collect();
            for (part, rows) in self.writers[chosen].parts.iter_mut().zip(stages) {
                part.staged = rows;
            }
        }
        self.writers[chosen].state = State::Staged;
    }

    /// Returns what the part's query gives when it reads the lake at a snapshot.
    fn staged(&self, name: usize, part: &Part, read: SnapshotId) -> Vec<Row> {
        let row = |key: u64| Row { asset: part.asset, slice: part.slice.clone(), key, tag: name as u64 };
        let asset = ASSETS[part.asset];
        if asset.reads_target {
            let largest = self.lake.rows_at(part.asset, read).iter().map(|row| row.key).max().unwrap_or(0);
            return vec![row(largest + 1)];
        }
        match asset.strategy {
            Strategy::Merge => vec![row(name as u64 % 3), row(9)],
            Strategy::Replace if name % 7 == 6 => Vec::new(),
            _ => vec![row(0), row(1)],
        }
    }

    fn begin(&mut self, chosen: usize) {
        if self.lake.catalog == Catalog::Sqlite {
            match self.file_lock {
                Some(_) => return,
                None => self.file_lock = Some(chosen),
            }
        }
        if self.is_unlucky(20) {
            return self.again(chosen, ErrorClass::Transient);
        }
        self.writers[chosen].transaction = Some(self.lake.begin());
        self.writers[chosen].state = State::Begun;
    }

    fn is_unlucky(&mut self, one_in: u64) -> bool {
        !self.is_calm && self.dice.one_in(one_in)
    }

    fn check(&mut self, chosen: usize) {
        let writer = &self.writers[chosen];
        let is_atomic = writer.mode == Mode::Atomic;
        let is_checked = if is_atomic { self.protocol.checks_atomic } else { self.protocol.checks };
        let found: Vec<Check> = match is_checked {
            true => writer.parts.iter().map(|part| self.found(writer, part)).collect(),
            false => vec![Check::Clear; writer.parts.len()],
        };
        if found.iter().any(|found| matches!(found, Check::Conflict { .. })) {
            return self.again(chosen, ErrorClass::Conflict);
        }
        let ended = |found: &Check| match found {
            Check::Done { .. } => Some(Told::Landed),
            Check::Superseded { .. } => Some(Told::Superseded),
            _ => None,
        };
        let first_end = found.iter().find_map(ended);
        let (state, snapshot) = (State::Checked, writer.transaction.as_ref().map(|open| open.snapshot));
        let writer = &mut self.writers[chosen];
        writer.state = state;
        for (part, found) in writer.parts.iter_mut().zip(&found) {
            // All of a run in one transaction lands, or nothing.
            part.told = part.told.or(if is_atomic { first_end } else { ended(found) });
        }
        if writer.parts.iter().all(|part| part.told.is_some()) {
            return self.end(chosen);
        }
        if is_atomic && let Some(snapshot) = snapshot {
            let name = writer.name;
            let stages: Vec<Vec<Row>> =
                self.writers[chosen].parts.iter().map(|part| self.staged(name, part, snapshot)).collect();
            for (part, rows) in self.writers[chosen].parts.iter_mut().zip(stages) {
                (part.base, part.read, part.staged) = (snapshot, snapshot, rows);
            }
        }
    }

    fn found(&self, writer: &Writer, part: &Part) -> Check {
        let asset = ASSETS[part.asset];
        let partition = asset.is_sliced.then(|| PartitionKey(part.slice.clone()));
        // What is staged inside the transaction has read what the transaction sees.
        let base = match (writer.mode, &writer.transaction) {
            (Mode::Atomic, Some(open)) => open.snapshot,
            _ => part.base,
        };
        let facts = CheckFacts {
            attempt: &AttemptId(part.attempt_name()),
            step: &StepId(part.step.clone()),
            asset: &asset_name(part.asset),
            partition: partition.as_ref(),
            table_id: self.lake.table(part.asset).map(TableId),
            schema: "main",
            table: &format!("t{}", part.asset),
            reads_target: asset.reads_target,
            base,
        };
        check(&facts, &self.lake.since(writer.pin.min(base)))
    }

    fn write(&mut self, chosen: usize) {
        let Some(mut transaction) = self.writers[chosen].transaction.take() else { return };
        let parts: Vec<Part> = self.writers[chosen].parts.iter().filter(|part| part.told.is_none()).cloned().collect();
        for part in &parts {
            let asset = ASSETS[part.asset];
            let is_of_slice = |row: &Row| !asset.is_sliced || row.slice == part.slice;
            let is_replaced = |row: &Row| match asset.strategy {
                Strategy::Append => false,
                Strategy::Replace => is_of_slice(row),
                Strategy::Merge => is_of_slice(row) && part.staged.iter().any(|staged| staged.key == row.key),
            };
            let deleted = self.lake.write(&mut transaction, part.asset, part.shape, is_replaced, &part.staged);
            let is_nothing = deleted == 0 && part.staged.is_empty();
            let overlaps = self.lake.catalog == Catalog::Postgres;
            let touches = match self.protocol.fence {
                Fence::Always => overlaps || is_nothing,
                Fence::WhenOnlyInserting => deleted == 0 && part.shape == Shape::Kept && (overlaps || is_nothing),
                Fence::Never => is_nothing,
            };
            if touches {
                Lake::fence(&mut transaction, i64::try_from(part.asset % 3).expect("it is small"));
            }
        }
        transaction.is_aborted = self.is_unlucky(40);
        self.writers[chosen].transaction = Some(transaction);
        self.writers[chosen].state = State::Written;
    }

    fn commit(&mut self, chosen: usize) {
        let Some(transaction) = self.writers[chosen].transaction.take() else { return };
        if self.is_unlucky(20) {
            // The server went away before it had read the COMMIT.
            self.writers[chosen].state = State::Sent { returned_well: false };
            return;
        }
        let written: Vec<Part> =
            self.writers[chosen].parts.iter().filter(|part| part.told.is_none()).cloned().collect();
        let stamps: Vec<StampEntry> = written.iter().map(stamp).collect();
        let stale = self.stale_landings(chosen, &written);
        let committed = self.lake.commit(transaction, stamps, None);
        if let Committed::Stored(snapshot) = committed {
            let meant = |part: &Part| Meant {
                snapshot,
                strategy: ASSETS[part.asset].strategy,
                asset: part.asset,
                slice: part.slice.clone(),
                rows: part.staged.clone(),
            };
            self.meant.extend(written.iter().map(meant));
            self.wrongs.extend(stale);
        }
        if committed == Committed::Conflict {
            return self.again(chosen, ErrorClass::Conflict);
        }
        // Or after it had stored it, and the answer is lost.
        let returned_well = !self.is_unlucky(8);
        self.writers[chosen].state = State::Sent { returned_well };
    }

    /// Returns what would be wrong if `written` landed now: an older version would lie over a newer one.
    fn stale_landings(&self, chosen: usize, written: &[Part]) -> Vec<String> {
        let Writer { pin, mode, .. } = &self.writers[chosen];
        let is_stale = |part: &&Part| {
            let of_slice = self.meant.iter().filter(|meant| (meant.asset, &meant.slice) == (part.asset, &part.slice));
            let newest = of_slice.map(|meant| meant.snapshot).filter(|at| self.is_ours(*at)).max();
            let asset = ASSETS[part.asset];
            // What is read again inside the transaction is as new as can be; an append still repeats its input.
            let reads_anew = asset.reads_target || (*mode == Mode::Atomic && asset.strategy != Strategy::Append);
            !reads_anew && newest.is_some_and(|newest| *pin < newest)
        };
        written
            .iter()
            .filter(is_stale)
            .map(|part| format!("{} landed on a newer version of its slice", part.step))
            .collect()
    }

    fn is_ours(&self, at: SnapshotId) -> bool {
        self.lake.commits.iter().any(|commit| commit.snapshot == at && !commit.stamps.is_empty())
    }

    fn look_up(&mut self, chosen: usize, returned_well: bool) {
        let unknown = self.protocol.looks_up && self.is_unlucky(15);
        let writer = &mut self.writers[chosen];
        if unknown {
            writer.parts.iter_mut().for_each(|part| part.is_in_doubt = true);
            return self.again(chosen, ErrorClass::Transient);
        }
        let attempt = writer.parts.iter().find(|part| part.told.is_none()).map(Part::attempt_name);
        let holds = |commit: &&crate::write::SeenCommit| {
            commit.stamps.iter().any(|entry| Some(&entry.attempt.0) == attempt.as_ref())
        };
        let found = self.lake.commits.iter().find(holds).map(|commit| commit.snapshot);
        let found = match self.protocol.looks_up {
            true => found,
            false => returned_well.then(|| self.lake.head()),
        };
        match found {
            Some(snapshot) => self.writers[chosen].state = State::Committed(snapshot),
            None => self.again(chosen, ErrorClass::Transient),
        }
    }

    fn remember(&mut self, chosen: usize, snapshot: SnapshotId) {
        let writer = &mut self.writers[chosen];
        for part in writer.parts.iter_mut().filter(|part| part.told.is_none()) {
            part.told = Some(Told::Landed);
            self.store.insert((part.asset, part.slice.clone(), part.attempt_name(), snapshot));
        }
        self.end(chosen);
    }

    /// Decides what follows a failure.
    fn again(&mut self, chosen: usize, class: ErrorClass) {
        self.leave(chosen);
        let head = self.lake.head();
        if self.writers[chosen].mode == Mode::Group {
            return self.part_ways(chosen);
        }
        let moves_blindly = self.protocol.moves_base_blindly;
        let is_anew = class == ErrorClass::Transient && self.is_unlucky(4);
        let writer = &mut self.writers[chosen];
        writer.tries += 1;
        let is_atomic = writer.mode == Mode::Atomic;
        let limit = if is_atomic { 3 } else { MAX_ATTEMPTS };
        let reads_target = writer.parts.iter().any(|part| ASSETS[part.asset].reads_target);
        let staged = !is_atomic;
        let facts = Facts { class, reads_target, staged, tries: writer.tries, is_out_of_patience: false };
        let next = if limit <= writer.tries { Next::Stop } else { next_after_failure(facts) };
        match next {
            Next::Stop => {
                for part in writer.parts.iter_mut().filter(|part| part.told.is_none()) {
                    part.told = Some(if part.is_in_doubt { Told::Unknown } else { Told::Failed });
                }
                self.end(chosen);
            }
            _ if is_anew || is_atomic => {
                writer.parts.iter_mut().for_each(|part| part.attempt += 1);
                writer.state = State::Idle;
                self.leases.retain(|_, holder| *holder != chosen);
            }
            Next::Rewrite => {
                // Only a conflict tells what has changed, so only after one may the base move over it.
                if class == ErrorClass::Conflict || moves_blindly {
                    writer.parts.iter_mut().for_each(|part| part.base = head);
                }
                writer.state = State::Staged;
            }
            Next::Restage => {
                for part in &mut writer.parts {
                    (part.base, part.read) = (head, if reads_target { head } else { part.read });
                }
                writer.state = State::Leased;
            }
        }
    }

    /// A group that failed goes on as single steps, each with the stage and the lease that it has.
    fn part_ways(&mut self, chosen: usize) {
        let parts = std::mem::take(&mut self.writers[chosen].parts);
        let (pin, mut left) = (self.writers[chosen].pin, Vec::new());
        for part in parts {
            if part.told.is_some() {
                left.push(part);
                continue;
            }
            let name = self.writers.len();
            if let Some(holder) = self.leases.get_mut(&part.lease()).filter(|holder| **holder == chosen) {
                *holder = name;
            }
            let (mode, state) = (Mode::Alone, State::Staged);
            let parts = vec![part];
            self.writers.push(Writer { name, mode, pin, state, parts, transaction: None, tries: 0, is_dead: false });
        }
        self.writers[chosen].parts = left;
        self.end(chosen);
    }

    pub(super) fn end(&mut self, chosen: usize) {
        self.leave(chosen);
        self.writers[chosen].state = State::Ended;
        self.leases.retain(|_, holder| *holder != chosen);
    }
}

fn stamp(part: &Part) -> StampEntry {
    StampEntry {
        attempt: AttemptId(part.attempt_name()),
        run: RunId(part.step.clone()),
        step: StepId(part.step.clone()),
        asset: asset_name(part.asset),
        script: "t".to_owned(),
        table_id: None,
        generation: 0,
        partition: (!part.slice.is_empty()).then(|| PartitionKey(part.slice.clone())),
        window: None,
        increment: None,
        strategy: "replace".to_owned(),
        deleted: 0,
        inserted: 0,
        rows: None,
        schema_version: 1,
        script_hash: ScriptHash(String::new()),
        inputs: BTreeMap::new(),
        files: BTreeMap::new(),
        atomic: false,
        restored: None,
    }
}
