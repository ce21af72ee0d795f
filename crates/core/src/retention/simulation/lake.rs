//! The model of a lake: snapshots, files with their rows, what waits to be deleted, who reads, and a consumer.
//!
//! A row is the number of the commit that brought it. A merged file holds rows of several commits, and shows at a snapshot
//! those that were there then, as DuckLake's does.

use std::collections::{BTreeMap, BTreeSet};

use super::super::*;
use super::{Protocol, Random};
use crate::id::SnapshotId;

#[derive(Clone, Debug)]
struct File {
    rows: BTreeSet<i64>,
    begin: i64,
    end: Option<i64>,
}

impl File {
    fn is_shown_at(&self, snapshot: i64) -> bool {
        self.begin <= snapshot && self.end.is_none_or(|end| snapshot < end)
    }
}

/// Somebody who reads one version from a list of its files.
#[derive(Clone, Debug)]
struct Reader {
    snapshot: i64,
    /// When its pin was written.
    since: i64,
    /// The files that it will open, once it is sure of its snapshot.
    files: Option<BTreeSet<usize>>,
}

/// A consumer of the change feed: its cursor in the lake, and what it has told.
#[derive(Clone, Debug, Default)]
struct Consumer {
    cursor: i64,
    told: i64,
}

#[derive(Debug, Default)]
pub struct Lake {
    pub now: i64,
    snapshots: BTreeSet<i64>,
    head: i64,
    copied: BTreeSet<i64>,
    pub expired: BTreeSet<i64>,
    pins: BTreeSet<i64>,
    readers: Vec<Reader>,
    consumer: Consumer,
    /// What the catalog knows.
    files: BTreeMap<usize, File>,
    made: usize,
    /// Since when files wait that no snapshot shows.
    waiting: BTreeMap<usize, i64>,
    pub deleted: BTreeSet<usize>,
    pub merged: usize,
    /// What each version said when it was made.
    truth: BTreeMap<i64, BTreeSet<i64>>,
    wrongs: Vec<String>,
}

impl Lake {
    pub fn new() -> Self {
        Self { snapshots: BTreeSet::from([0]), truth: BTreeMap::from([(0, BTreeSet::new())]), ..Self::default() }
    }

    fn wrong(&mut self, what: String) {
        self.wrongs.push(what);
    }

    /// Returns what went wrong so far.
    pub fn wrongs(&self) -> &[String] {
        &self.wrongs
    }

    fn add(&mut self, file: File) {
        self.files.insert(self.made, file);
        self.made += 1;
    }

    fn live(&self) -> Vec<usize> {
        self.files.iter().filter(|(_, file)| file.end.is_none()).map(|(id, _)| *id).collect()
    }

    /// A commit that appends, or replaces everything.
    pub fn commit(&mut self, replaces: bool) {
        self.head += 1;
        let head = self.head;
        self.snapshots.insert(head);
        let mut rows = self.truth[&(head - 1)].clone();
        if replaces {
            rows.clear();
            self.files.values_mut().filter(|file| file.end.is_none()).for_each(|file| file.end = Some(head));
        }
        rows.insert(head);
        self.truth.insert(head, rows);
        self.add(File { rows: BTreeSet::from([head]), begin: head, end: None });
    }

    /// Two small files become one, which shows what both did at every snapshot; they wait to be deleted from now on.
    pub fn merge(&mut self) {
        let live = self.live();
        let [one, other, ..] = live.as_slice() else { return };
        let (one, other) = (self.forget(*one), self.forget(*other));
        let rows = one.rows.union(&other.rows).copied().collect();
        self.add(File { rows, begin: one.begin.min(other.begin), end: None });
        self.merged += 1;
    }

    fn forget(&mut self, id: usize) -> File {
        self.waiting.insert(id, self.now);
        self.files.remove(&id).expect("it was listed as live")
    }

    fn holds(&self) -> Vec<Hold> {
        let hold = |snapshot: i64, is_in_flight| Hold {
            snapshot: SnapshotId(snapshot),
            owner: String::new(),
            reason: String::new(),
            is_in_flight,
        };
        let pins = self.pins.iter().map(|pin| hold(*pin, false));
        let consumer = std::iter::once(hold(self.consumer.told, true));
        pins.chain(self.readers.iter().map(|reader| hold(reader.snapshot, true))).chain(consumer).collect()
    }

    pub fn freeze(&self, keep: i64) -> Vec<SnapshotId> {
        let snapshots: Vec<Snapshot> =
            self.snapshots.iter().map(|id| Snapshot { id: SnapshotId(*id), at_micros: *id }).collect();
        let holds = self.holds();
        decide(&RetentionFacts { snapshots: &snapshots, holds: &holds, keep_from_micros: self.head - keep }).expire
    }

    pub fn copy(&mut self, ids: &[SnapshotId]) {
        self.copied.extend(ids.iter().map(|id| id.0));
    }

    /// One chunk, as one step: the lane is held from the look at the holds to the expiry.
    pub fn expire(&mut self, chunk: &[SnapshotId], protocol: Protocol) {
        let free = if protocol.looks_again { still_free(chunk, &self.holds()) } else { chunk.to_vec() };
        for id in free {
            if !self.copied.contains(&id.0) {
                self.wrong(format!("the stamp of snapshot {id} is lost"));
            }
            self.snapshots.remove(&id.0);
            self.expired.insert(id.0);
        }
        let is_shown = |file: &File| self.snapshots.iter().any(|snapshot| file.is_shown_at(*snapshot));
        let hidden: Vec<usize> = self.files.iter().filter(|(_, file)| !is_shown(file)).map(|(id, _)| *id).collect();
        for id in hidden {
            self.forget(id);
        }
    }

    /// Deletes files that have waited long enough.
    pub fn clean(&mut self, grace: i64, protocol: Protocol) {
        let work: Vec<i64> = match protocol.cleans_behind_readers {
            true => self.readers.iter().map(|reader| reader.since).collect(),
            false => Vec::new(),
        };
        let before = delete_before(self.now, grace, work);
        let due: Vec<usize> = self.waiting.iter().filter(|(_, since)| **since < before).map(|(id, _)| *id).collect();
        for id in due {
            self.waiting.remove(&id);
            self.deleted.insert(id);
        }
    }

    /// A reader pins a snapshot, of which it does not know yet whether it is there.
    pub fn pin_to_read(&mut self, random: &mut Random) {
        let snapshot = random.number(self.head + 1);
        self.readers.push(Reader { snapshot, since: self.now, files: None });
    }

    /// A reader passes the lane and looks: what is gone is told, and it goes. What it finds it will open.
    pub fn look(&mut self, random: &mut Random) {
        let Some(place) = random.place(self.readers.len()) else { return };
        let snapshot = self.readers[place].snapshot;
        if !self.snapshots.contains(&snapshot) {
            self.readers.remove(place);
            return;
        }
        let shown = self.files.iter().filter(|(_, file)| file.is_shown_at(snapshot)).map(|(id, _)| *id).collect();
        self.readers[place].files = Some(shown);
    }

    /// A reader opens its files and goes.
    pub fn read(&mut self, random: &mut Random) {
        let Some(place) = random.place(self.readers.len()) else { return };
        let reader = self.readers.remove(place);
        if reader.files.iter().flatten().any(|id| self.deleted.contains(id)) {
            self.wrong(format!("a file went under the reader of snapshot {}", reader.snapshot));
        }
    }

    /// Somebody pins what is there, the same way: written, then looked for in the lane.
    pub fn pin(&mut self, random: &mut Random) {
        let ids: Vec<i64> = self.snapshots.iter().copied().collect();
        self.pins.extend(random.place(ids.len()).map(|place| ids[place]));
        if 4 < self.pins.len() {
            self.pins.pop_first();
        }
    }

    /// The consumer reads what has come, and moves its cursor; it tells later, unless it crashes first.
    pub fn consume(&mut self) {
        let unread = self.consumer.cursor..=self.head;
        if let Some(lost) = unread.clone().find(|id| !self.snapshots.contains(id) && *id != 0) {
            self.wrong(format!("snapshot {lost} went before the consumer had read what follows"));
        }
        self.consumer.cursor = self.head;
    }

    pub fn tell(&mut self, protocol: Protocol) {
        self.consumer.told = if protocol.tells_after_commit { self.consumer.cursor } else { self.head };
    }

    /// Checks what must hold after every step.
    pub fn check(&mut self) {
        if !self.snapshots.contains(&self.head) {
            self.wrong("the head is gone".to_owned());
        }
        let lost_pin = self.pins.iter().find(|pin| !self.snapshots.contains(pin)).copied();
        if let Some(pin) = lost_pin {
            self.wrong(format!("the pinned snapshot {pin} is gone"));
        }
        let under =
            self.readers.iter().find(|reader| reader.files.is_some() && !self.snapshots.contains(&reader.snapshot));
        if let Some(reader) = under.cloned() {
            self.wrong(format!("snapshot {} is gone under a reader", reader.snapshot));
        }
        let changed = self.snapshots.iter().find(|snapshot| self.said_at(**snapshot) != self.truth[*snapshot]).copied();
        if let Some(snapshot) = changed {
            self.wrong(format!("snapshot {snapshot} says something else than before"));
        }
    }

    /// What a version says to whoever reads it now: rows of files that are gone are missing.
    fn said_at(&self, snapshot: i64) -> BTreeSet<i64> {
        let shown = self.files.iter().filter(|(id, file)| file.is_shown_at(snapshot) && !self.deleted.contains(id));
        shown.flat_map(|(_, file)| file.rows.iter().copied().filter(|row| *row <= snapshot)).collect()
    }
}
