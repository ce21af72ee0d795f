//! The lake of the simulation, as DuckLake was measured to behave: versions of rows, one log of commits, conflicts per
//! table that are seen at COMMIT, and two ways to keep transactions apart.
//!
//! Its conflict rules are deliberately as weak as DuckLake's: two inserts pass each other, a change of shape passes an
//! insert, and a table that is made anew passes everything. What the protocol needs beyond them it must bring itself.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::id::SnapshotId;
use crate::sql::changes::ChangeSet;
use crate::sql::stamp::StampEntry;
use crate::write::SeenCommit;

/// How a catalog keeps transactions apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catalog {
    /// One transaction of ours at a time; any other commit meanwhile is a conflict.
    Sqlite,
    /// Transactions overlap; DuckLake compares tables at COMMIT.
    Postgres,
}

/// One row in one slice; `tag` says who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The asset's number.
    pub asset: usize,
    /// The slice; empty for an asset without partitions.
    pub slice: String,
    /// The key, or the number that a counter has reached.
    pub key: u64,
    /// Its writer.
    pub tag: u64,
}

struct Version {
    row: Row,
    table: i64,
    begin: SnapshotId,
    end: Option<SnapshotId>,
}

/// What one transaction did to tables, as DuckLake records it.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Tables with new rows.
    pub inserted: BTreeSet<i64>,
    /// Tables that lost rows.
    pub deleted: BTreeSet<i64>,
    /// Tables whose shape changed.
    pub altered: BTreeSet<i64>,
    /// Tables that are gone.
    pub dropped: BTreeSet<i64>,
    /// Names that were made.
    pub created: BTreeSet<usize>,
}

impl Changes {
    fn text(&self) -> String {
        let mut text = String::new();
        let lists = [
            ("inserted_into_table", &self.inserted),
            ("deleted_from_table", &self.deleted),
            ("altered_table", &self.altered),
            ("dropped_table", &self.dropped),
        ];
        for (word, tables) in lists {
            for table in tables {
                write!(text, "{word}:{table},").expect("a string takes any text");
            }
        }
        for asset in &self.created {
            write!(text, r#"created_table:"main"."t{asset}","#).expect("a string takes any text");
        }
        text
    }

    /// Returns whether DuckLake refuses a commit of `self` because of `other`, which came after its snapshot.
    fn conflicts_with(&self, other: &Changes) -> bool {
        let meets = |mine: &BTreeSet<i64>, theirs: &BTreeSet<i64>| !mine.is_disjoint(theirs);
        let all_mine: BTreeSet<i64> =
            [&self.inserted, &self.deleted, &self.altered, &self.dropped].into_iter().flatten().copied().collect();
        meets(&all_mine, &other.dropped)
            || meets(&self.deleted, &other.inserted)
            || meets(&self.deleted, &other.deleted)
            || meets(&self.inserted, &other.deleted)
            || meets(&self.inserted, &other.altered)
            || meets(&self.deleted, &other.altered)
            || meets(&self.altered, &other.altered)
            || !self.created.is_disjoint(&other.created)
    }
}

/// An open transaction.
#[derive(Debug)]
pub struct Transaction {
    /// The snapshot that it sees.
    pub snapshot: SnapshotId,
    /// Whether a statement has failed in it: its COMMIT then returns well and stores nothing.
    pub is_aborted: bool,
    changes: Changes,
    deleted: Vec<usize>,
    inserted: Vec<(Row, i64)>,
    /// Tables that were made anew: their assets, and the ids that they get.
    renewed: Vec<(usize, i64)>,
}

/// What a COMMIT did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It is stored.
    Stored(SnapshotId),
    /// It was refused.
    Conflict,
    /// It returned well, and there is nothing.
    Nothing,
}

/// The lake.
pub struct Lake {
    /// Its catalog.
    pub catalog: Catalog,
    /// Every commit in order.
    pub commits: Vec<SeenCommit>,
    changes: Vec<Changes>,
    versions: Vec<Version>,
    /// The id of each asset's table; `None` before its first write.
    tables: Vec<Option<i64>>,
    next_table: i64,
}

/// How a write shapes its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As it is.
    Kept,
    /// With one column more.
    Altered,
    /// Made anew, the other rows carried over.
    Renewed,
}

const FENCES: i64 = 1_000;

impl Lake {
    /// Returns an empty lake for `assets` assets.
    pub fn new(catalog: Catalog, assets: usize) -> Self {
        Self {
            catalog,
            commits: Vec::new(),
            changes: Vec::new(),
            versions: Vec::new(),
            tables: vec![None; assets],
            next_table: 1,
        }
    }

    /// Returns the newest snapshot.
    pub fn head(&self) -> SnapshotId {
        SnapshotId(i64::try_from(self.commits.len()).expect("a world is small"))
    }

    /// Returns the commits after `base`.
    pub fn since(&self, base: SnapshotId) -> Vec<SeenCommit> {
        self.commits.iter().filter(|commit| base < commit.snapshot).cloned().collect()
    }

    /// Returns the id of the asset's table.
    pub fn table(&self, asset: usize) -> Option<i64> {
        self.tables[asset]
    }

    /// Returns the rows of `asset` at a snapshot.
    pub fn rows_at(&self, asset: usize, at: SnapshotId) -> Vec<Row> {
        let is_there = |version: &&Version| {
            version.row.asset == asset && version.begin <= at && version.end.is_none_or(|end| at < end)
        };
        self.versions.iter().filter(is_there).map(|version| version.row.clone()).collect()
    }

    /// Opens a transaction.
    pub fn begin(&self) -> Transaction {
        Transaction {
            snapshot: self.head(),
            is_aborted: false,
            changes: Changes::default(),
            deleted: Vec::new(),
            inserted: Vec::new(),
            renewed: Vec::new(),
        }
    }

    /// Deletes what `is_replaced` says of the rows that the transaction sees, inserts `rows`, and returns how many rows were
    /// deleted.
    pub fn write(
        &mut self,
        transaction: &mut Transaction,
        asset: usize,
        shape: Shape,
        is_replaced: impl Fn(&Row) -> bool,
        rows: &[Row],
    ) -> usize {
        let seen = transaction.snapshot;
        let is_seen = |version: &Version| {
            version.row.asset == asset && version.begin <= seen && version.end.is_none_or(|end| seen < end)
        };
        let visible: Vec<usize> = (0..self.versions.len()).filter(|at| is_seen(&self.versions[*at])).collect();
        let deleted: Vec<usize> = visible.iter().copied().filter(|at| is_replaced(&self.versions[*at].row)).collect();
        let count = deleted.len();
        // A table that this transaction has made is there for its later writes.
        let made = transaction.renewed.iter().find(|(of, _)| *of == asset).map(|(_, table)| *table);
        let table = match (self.tables[asset], shape) {
            _ if made.is_some() => made.unwrap_or_default(),
            (None, _) => {
                transaction.changes.created.insert(asset);
                self.new_table(transaction, asset)
            }
            (Some(old), Shape::Renewed) => {
                transaction.changes.dropped.insert(old);
                let fresh = self.new_table(transaction, asset);
                let kept = visible.iter().filter(|at| !deleted.contains(at));
                let carried: Vec<(Row, i64)> = kept.map(|at| (self.versions[*at].row.clone(), fresh)).collect();
                transaction.inserted.extend(carried);
                transaction.inserted.extend(rows.iter().map(|row| (row.clone(), fresh)));
                return count;
            }
            (Some(table), _) => table,
        };
        if shape == Shape::Altered && self.tables[asset].is_some() {
            transaction.changes.altered.insert(table);
        }
        if !deleted.is_empty() {
            transaction.changes.deleted.insert(table);
        }
        if !rows.is_empty() && self.tables[asset].is_some() {
            transaction.changes.inserted.insert(table);
        }
        transaction.deleted.extend(deleted);
        transaction.inserted.extend(rows.iter().map(|row| (row.clone(), table)));
        count
    }

    fn new_table(&mut self, transaction: &mut Transaction, asset: usize) -> i64 {
        self.next_table += 1;
        transaction.renewed.push((asset, self.next_table));
        self.next_table
    }

    /// Touches a fence, a table of one row.
    pub fn fence(transaction: &mut Transaction, number: i64) {
        transaction.changes.inserted.insert(FENCES + number);
        transaction.changes.deleted.insert(FENCES + number);
    }

    /// Sends COMMIT.
    pub fn commit(&mut self, transaction: Transaction, stamps: Vec<StampEntry>, author: Option<&str>) -> Committed {
        if transaction.is_aborted {
            return Committed::Nothing;
        }
        let from = usize::try_from(transaction.snapshot.0).expect("snapshots count up from 0");
        let is_refused = match self.catalog {
            Catalog::Sqlite => from < self.changes.len(),
            Catalog::Postgres => self.changes[from..].iter().any(|other| transaction.changes.conflicts_with(other)),
        };
        if is_refused {
            return Committed::Conflict;
        }
        let snapshot = SnapshotId(self.head().0 + 1);
        for at in transaction.deleted {
            self.versions[at].end.get_or_insert(snapshot);
        }
        for version in &mut self.versions {
            if transaction.changes.dropped.contains(&version.table) {
                version.end.get_or_insert(snapshot);
            }
        }
        for (asset, table) in transaction.renewed {
            self.tables[asset] = Some(table);
        }
        let begun = transaction.inserted.into_iter();
        self.versions.extend(begun.map(|(row, table)| Version { row, table, begin: snapshot, end: None }));
        self.commits.push(SeenCommit {
            snapshot,
            changes: ChangeSet::parse(&transaction.changes.text()),
            stamps,
            author: author.map(str::to_owned),
        });
        self.changes.push(transaction.changes);
        Committed::Stored(snapshot)
    }
}
