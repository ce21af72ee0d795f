//! What a script with `stream` consumes: the same observation and decision as a consumer's, for a step that reads and writes
//! by itself.
//!
//! Invariant: the step commits its rows together with [`ScriptFeed::statement`], which changes exactly one row or makes the
//! cursor; otherwise somebody else has moved it.

use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::sql::{Relation, Statement};
use pintail_core::stream::{Decision, Kinds, Part, Passage, decide};
use pintail_engine::Session;
use pintail_engine::guard::ConsumerProgress;
use pintail_engine::lake::{self, feed};

use super::observe::{cursor_of, observe};
use super::outcome::PassError;
use super::source::{Source, Spec, Start, table_of};
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
    from: Option<SnapshotId>,
    /// The greatest token that the cursor knows.
    known: i64,
    /// Whether the whole table is taken, whatever the cursor was one in.
    is_anew: bool,
    source: String,
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
    let feed = |query: String, upto, is_empty, has_more| ScriptFeed {
        query,
        upto,
        is_empty,
        has_more,
        from,
        known,
        is_anew,
        source: source.clone(),
        spec: spec.clone(),
    };
    let whole = || {
        let table = Relation::in_catalog(place.alias, schema, table);
        format!("SELECT snapshot_id, 'insert' AS change_type, *\nFROM {table} AT (VERSION => {})", place.pin)
    };
    let position = match found {
        _ if is_anew => return Ok(feed(whole(), place.pin, false, false)),
        Some(found) => found,
        None if spec.start == Start::Earliest => return Ok(feed(whole(), place.pin, false, false)),
        None => {
            let at = match spec.start {
                Start::After(snapshot) => snapshot,
                _ => place.pin,
            };
            Position { at: at.to_string(), source: source.clone(), token: 0, updated_micros: 0, has_moved: false }
        }
    };
    let cursor = cursor_of(&position)?;
    let is_same =
        table_of(&position.source).is_some_and(|table| spec.source_text(place.lake, table) == position.source);
    let Some(was) = table_of(&position.source).filter(|_| is_same) else {
        return Err(PassError::OtherSource { consumer: spec.name.clone(), was: position.source, is: source });
    };
    let mut seen = observe((place.session, place.alias), spec, kinds, &position, SnapshotId(0))?;
    seen.snapshots.retain(|snapshot| snapshot.id <= place.pin);
    seen.head = seen.snapshots.last().map_or(cursor, |snapshot| snapshot.id).max(cursor.min(seen.head));
    let nothing = || format!("{} WHERE false", whole());
    match decide(&seen.facts(spec, was, vouched)) {
        Decision::Idle => Ok(feed(nothing(), cursor, true, false)),
        Decision::Consume(span) => {
            let permit = span.permit(Part::Last, 0);
            let deletes = span.snapshots().iter().any(|snapshot| seen.deleting.contains(snapshot));
            let query = query_of(place.alias, &spec.source, span.snapshots(), kinds, deletes);
            Ok(feed(query, permit.to(), false, span.has_more))
        }
        Decision::Stopped(gap) | Decision::Rescan(Passage { gap, .. }) | Decision::Skip(Passage { gap, .. }) => {
            Err(PassError::Gap { consumer: spec.name.clone(), asset, gap, cursor })
        }
        Decision::Ahead => Err(PassError::Ahead { consumer: spec.name.clone(), cursor, head: seen.head }),
        Decision::Replaced { found } => {
            Err(PassError::Replaced { consumer: spec.name.clone(), asset, cursor, was, found })
        }
        Decision::Absent => Err(PassError::SourceShape { asset, what: "is gone".to_owned() }),
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

    /// Returns whether the cursor is made, because the script has never run.
    pub fn makes_cursor(&self) -> bool {
        self.from.is_none()
    }

    /// Returns what the guard is told after the commit.
    pub fn progress(&self, now_micros: i64) -> ConsumerProgress {
        ConsumerProgress::new(self.spec.full_name(), self.upto, now_micros)
    }
}
