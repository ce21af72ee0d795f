//! What a script with `stream` consumes: the same observation and decision as a consumer's, for a step that reads and writes
//! by itself.
//!
//! Invariant: the step commits its rows together with [`ScriptFeed::statement`], which changes exactly one row or makes the
//! cursor; otherwise somebody else has moved it.

use pintail_core::id::{LakeName, SnapshotId, TableId};
use pintail_core::sql::{Relation, Statement};
use pintail_core::stream::{Decision, Gap, Kinds, Part, Passage, decide};
use pintail_engine::Session;
use pintail_engine::guard::ConsumerProgress;
use pintail_engine::lake::{self, feed};

use super::gaps::skipped;
use super::observe::{cursor_of, observe};
use super::outcome::PassError;
use super::source::{Source, Spec, Start, table_of};
use crate::dead_letter;
use crate::position::{self, Move, Position};

/// What a step takes.
#[derive(Clone, Debug)]
pub struct ScriptFeed {
    /// The query of the changes: `snapshot_id`, `change_type` and the table's columns.
    pub query: String,
    /// The last snapshot that is taken; the cursor moves there.
    pub upto: SnapshotId,
    /// Whether anything came.
    pub is_empty: bool,
    /// Whether more is known to wait.
    pub has_more: bool,
    /// The gap of which the table is read again.
    pub rescanned: Option<Gap>,
    /// The gaps that are left out.
    pub skipped: Vec<Gap>,
    from: Option<SnapshotId>,
    /// Whether the cursor's table is left over from a beginning that was taken back.
    is_left_over: bool,
    /// The greatest token that the cursor knows.
    known: i64,
    /// Whether the whole table is taken, whatever the cursor was one in.
    is_anew: bool,
    source: String,
    asset: String,
    spec: Spec,
}

/// Where and at which version a step looks.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The session.
    pub session: &'a Session,
    /// The alias under which the lake is written.
    pub alias: &'a str,
    /// The lake.
    pub lake: &'a LakeName,
    /// Nothing newer is taken.
    pub pin: SnapshotId,
}

/// What is known of the script, its source and its cursor before it is decided what to take.
struct Looked<'a> {
    place: &'a Place<'a>,
    spec: &'a Spec,
    kinds: Kinds,
    is_anew: bool,
    /// The source, for people.
    asset: String,
    /// What its cursor is to be one in.
    source: String,
    from: Option<SnapshotId>,
    is_left_over: bool,
    known: i64,
}

/// Returns what the script `spec` takes next; everything that the table holds when `is_anew`. `vouched` is what the guard
/// knows of it.
pub fn script_feed(
    place: &Place<'_>,
    spec: &Spec,
    kinds: Kinds,
    is_anew: bool,
    vouched: SnapshotId,
) -> Result<ScriptFeed, PassError> {
    let Source { schema, table } = &spec.source;
    let tables = lake::live_tables(place.session, place.alias)?;
    let live =
        tables.iter().find(|live| live.schema.eq_ignore_ascii_case(schema) && live.name.eq_ignore_ascii_case(table));
    let asset = spec.source.asset(place.lake);
    let Some(live) = live else {
        return Err(PassError::SourceShape { asset, what: "does not exist yet".to_owned() });
    };
    let source = spec.source_text(place.lake, live.id);
    let found = position::read_in(place.session, place.alias, &spec.cursor())?;
    let from = found.as_ref().map(cursor_of).transpose()?;
    let known = found.as_ref().map_or(0, |found| found.token);
    let is_left_over = found.is_none() && position::is_left_over(place.session, place.alias, &spec.cursor())?;
    let looked = Looked { place, spec, kinds, is_anew, asset, source, from, is_left_over, known };
    let position = match found {
        _ if is_anew => return Ok(looked.feed(looked.whole(), place.pin)),
        Some(found) => found,
        None if spec.start == Start::Earliest => return Ok(looked.feed(looked.whole(), place.pin)),
        None => {
            let at = match spec.start {
                Start::After(snapshot) => snapshot,
                _ => place.pin,
            };
            let source = looked.source.clone();
            Position { at: at.to_string(), source, token: 0, updated_micros: 0, has_moved: false }
        }
    };
    looked.decided(&position, vouched)
}

impl Looked<'_> {
    fn feed(&self, query: String, upto: SnapshotId) -> ScriptFeed {
        ScriptFeed {
            query,
            upto,
            is_empty: false,
            has_more: false,
            rescanned: None,
            skipped: Vec::new(),
            from: self.from,
            is_left_over: self.is_left_over,
            known: self.known,
            is_anew: self.is_anew,
            source: self.source.clone(),
            asset: self.asset.clone(),
            spec: self.spec.clone(),
        }
    }

    /// Returns the query of all that the table holds.
    fn whole(&self) -> String {
        let Source { schema, table } = &self.spec.source;
        let table = Relation::in_catalog(self.place.alias, schema, table);
        format!("SELECT snapshot_id, 'insert' AS change_type, *\nFROM {table} AT (VERSION => {})", self.place.pin)
    }

    fn nothing(&self) -> String {
        format!("{} WHERE false", self.whole())
    }

    /// Decides what comes after `position`.
    fn decided(&self, position: &Position, vouched: SnapshotId) -> Result<ScriptFeed, PassError> {
        let (place, spec) = (self.place, self.spec);
        let cursor = cursor_of(position)?;
        let is_same =
            table_of(&position.source).is_some_and(|table| spec.source_text(place.lake, table) == position.source);
        let Some(was) = table_of(&position.source).filter(|_| is_same) else {
            let (was, is) = (position.source.clone(), self.source.clone());
            return Err(PassError::OtherSource { consumer: spec.name.clone(), was, is });
        };
        let mut seen = observe((place.session, place.alias), spec, self.kinds, position, SnapshotId(0))?;
        seen.snapshots.retain(|snapshot| snapshot.id <= place.pin);
        seen.head = seen.snapshots.last().map_or(cursor, |snapshot| snapshot.id).max(cursor.min(seen.head));
        let mut facts = seen.facts(spec, was, vouched);
        let mut skipped = Vec::new();
        // What is left out comes with what follows it: a step is one commit.
        let decision = loop {
            match decide(&facts) {
                Decision::Skip(passage) => {
                    skipped.push(passage.gap);
                    (facts.cursor, facts.seen) = (passage.upto(), facts.seen.max(passage.upto()));
                }
                decision => break decision,
            }
        };
        let feed = match decision {
            Decision::Idle => ScriptFeed { is_empty: skipped.is_empty(), ..self.feed(self.nothing(), facts.cursor) },
            Decision::Consume(span) => {
                let deletes = span.snapshots().iter().any(|snapshot| seen.deleting.contains(snapshot));
                let query = query_of(place.alias, &spec.source, span.snapshots(), self.kinds, deletes);
                let to = span.permit(Part::Last, 0).to();
                ScriptFeed { has_more: span.has_more, ..self.feed(query, to) }
            }
            Decision::Rescan(passage) => self.rescanned(&passage, seen.head),
            refused => return Err(self.refusal(refused, cursor, was, seen.head)),
        };
        Ok(ScriptFeed { skipped, ..feed })
    }

    /// Returns the rows that the table holds of a gap, at the first version behind it.
    fn rescanned(&self, passage: &Passage, head: SnapshotId) -> ScriptFeed {
        let Source { schema, table } = &self.spec.source;
        let rows = feed::rows_after(self.place.alias, schema, table, passage.after(), passage.upto());
        let query = format!("SELECT snapshot_id, 'insert' AS change_type, *\nFROM {rows}");
        let to = passage.permit(Part::Last, 0).to();
        ScriptFeed { rescanned: Some(passage.gap), has_more: to < head, ..self.feed(query, to) }
    }

    fn refusal(&self, decision: Decision, cursor: SnapshotId, was: TableId, head: SnapshotId) -> PassError {
        let (consumer, asset) = (self.spec.name.clone(), self.asset.clone());
        match decision {
            Decision::Stopped(gap) => PassError::Gap { consumer, asset, gap, cursor },
            Decision::Ahead => PassError::Ahead { consumer, cursor, head },
            Decision::Replaced { found } => PassError::Replaced { consumer, asset, cursor, was, found },
            _ => PassError::SourceShape { asset, what: "is gone".to_owned() },
        }
    }
}

fn query_of(alias: &str, source: &Source, snapshots: &[SnapshotId], kinds: Kinds, has_deletes: bool) -> String {
    let Source { schema, table } = source;
    match kinds {
        Kinds::All => {
            format!("SELECT * EXCLUDE (rowid)\nFROM {}", feed::changed_rows(alias, schema, table, snapshots))
        }
        Kinds::Inserts if has_deletes => {
            let rows = feed::inserted_rows(alias, schema, table, snapshots, true);
            format!("SELECT * EXCLUDE (rowid)\nFROM {rows}")
        }
        Kinds::Inserts => {
            let rows = feed::inserted_rows(alias, schema, table, snapshots, false);
            format!("SELECT snapshot_id, 'insert' AS change_type, *\nFROM {rows}")
        }
    }
}

impl ScriptFeed {
    /// Returns the statement that moves the cursor, or makes it; sent in the step's transaction, it must change one row,
    /// unless [`Self::makes_cursor`].
    pub fn statement(&self, alias: &str, token: i64) -> Statement {
        let (table, to) = (self.spec.cursor(), self.upto.to_string());
        // A guard that was lost counts its tokens from 0 again; the step holds the lease of its target all the same.
        let token = token.max(self.known);
        match self.from {
            None if self.is_left_over => position::create_again(alias, &table, &to, &self.source),
            None => position::create(alias, &table, &to, &self.source),
            Some(from) => {
                let from = from.to_string();
                let change = Move { from: &from, to: &to, source: &self.source, token };
                match self.is_anew {
                    true => position::set(alias, &table, &from, &change),
                    false => position::swap(alias, &table, &change),
                }
            }
        }
    }

    /// Returns the statements that record the gaps which are left out, for the step's transaction.
    pub fn records(&self, alias: &str) -> Vec<Statement> {
        let by = format!("consumer {}", self.spec.full_name());
        let letters = self.skipped.iter().map(|gap| skipped(by.clone(), gap, &self.asset));
        letters.flat_map(|letter| dead_letter::record(alias, &letter)).collect()
    }

    /// Returns whether the cursor is made, because the script has never run.
    pub fn makes_cursor(&self) -> bool {
        self.from.is_none()
    }

    /// Returns what the guard is told after the commit.
    pub fn progress(&self, now_micros: i64) -> ConsumerProgress {
        ConsumerProgress::new(self.spec.full_name(), self.upto, now_micros)
    }
}
