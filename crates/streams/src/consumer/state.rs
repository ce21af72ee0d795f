//! Where a consumer stands, for people: looked at without touching anything.

use pintail_core::id::SnapshotId;
use pintail_core::sql::Literal;
use pintail_core::stream::{Decision, Gap, Kinds, Touch, decide};
use pintail_engine::guard::ConsumerProgress;
use pintail_engine::lake;

use super::lease::{Holder, owner_of};
use super::observe::observe;
use super::outcome::PassError;
use super::source::{Spec, table_of};
use crate::dead_letter;
use crate::position;
use crate::writer::Writer;

/// Where a consumer stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// In one word.
    pub condition: Condition,
    /// The last snapshot that it has consumed; `None` when it has never begun.
    pub cursor: Option<SnapshotId>,
    /// When its cursor was last written, in microseconds since 1970 UTC.
    pub moved_micros: Option<i64>,
    /// The newest snapshot of the lake.
    pub head: SnapshotId,
    /// How many snapshots with rows it has not consumed.
    pub unread_snapshots: u64,
    /// How many rows they have, about.
    pub unread_rows: u64,
    /// When the oldest of them was made: how old it is, is the lag.
    pub oldest_unread_micros: Option<i64>,
    /// What the guard knows: what expiry waits for.
    pub progress: Option<ConsumerProgress>,
    /// Dead letters that were not replayed.
    pub dead_letters: u64,
    /// Who runs it.
    pub owner: Option<Holder>,
}

/// What a consumer will do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It has never run.
    New,
    /// The source is not there.
    NoSource,
    /// Nothing is unread.
    Idle,
    /// Rows are unread.
    Lagging,
    /// What it needs is expired.
    Gap(Gap),
    /// The lake is older than its cursor.
    Ahead,
    /// The source was made anew, or the cursor is one in something else.
    OtherSource,
}

/// Looks at the consumer `spec`, which asks for `kinds` of changes.
pub fn state_of(writer: &Writer, spec: &Spec, kinds: Kinds) -> Result<State, PassError> {
    let head = lake::head(writer.session(), writer.alias())?;
    let name = spec.full_name();
    let known = writer.guard().ask(|guard| async move { guard.consumers().await })?;
    let progress = known.into_iter().find(|row| row.consumer == name);
    let mut state = State {
        condition: Condition::New,
        cursor: None,
        moved_micros: None,
        head,
        unread_snapshots: 0,
        unread_rows: 0,
        oldest_unread_micros: None,
        progress,
        dead_letters: dead_letters(writer, &name)?,
        owner: owner_of(writer.guard(), &name)?,
    };
    let Some(position) = position::read(writer, &spec.cursor())? else {
        let (schema, table) = (spec.source.schema.as_str(), spec.source.table.as_str());
        if !lake::absent_names(writer.session(), writer.alias(), &[(schema, table)])?.is_empty() {
            state.condition = Condition::NoSource;
        }
        return Ok(state);
    };
    let seen = observe(writer.place(), spec, kinds, &position, SnapshotId(0))?;
    (state.cursor, state.moved_micros, state.head) = (Some(seen.cursor), Some(position.updated_micros), seen.head);
    let unread: Vec<_> = seen.snapshots.iter().filter(|snapshot| snapshot.touch == Touch::Rows).collect();
    state.unread_snapshots = unread.len() as u64;
    state.unread_rows = unread.iter().map(|snapshot| snapshot.rows).sum();
    state.oldest_unread_micros = unread.first().map(|snapshot| snapshot.at_micros);
    let source = table_of(&position.source);
    let is_same = source.is_some_and(|table| spec.source_text(&writer.lake().name, table) == position.source);
    let Some(source) = source.filter(|_| is_same) else {
        state.condition = Condition::OtherSource;
        return Ok(state);
    };
    let vouched = state.progress.as_ref().map_or(SnapshotId(0), |progress| progress.snapshot);
    state.condition = match decide(&seen.facts(spec, source, vouched)) {
        Decision::Idle => Condition::Idle,
        Decision::Consume(_) => Condition::Lagging,
        Decision::Stopped(gap) => Condition::Gap(gap),
        Decision::Rescan(passage) | Decision::Skip(passage) => Condition::Gap(passage.gap),
        Decision::Ahead => Condition::Ahead,
        Decision::Replaced { .. } => Condition::OtherSource,
        Decision::Absent => Condition::NoSource,
    };
    Ok(state)
}

fn dead_letters(writer: &Writer, name: &str) -> Result<u64, PassError> {
    let absent = lake::absent_names(writer.session(), writer.alias(), &[(lake::OWN_SCHEMA, dead_letter::TABLE)])?;
    if !absent.is_empty() {
        return Ok(0);
    }
    let sql = format!(
        "SELECT count(*) FROM {} WHERE origin = {} AND replayed_at IS NULL",
        dead_letter::relation(writer.alias()),
        Literal::new(format!("consumer {name}"))
    );
    let count = writer.session().one("count the dead letters", &sql, |row| row.get::<_, i64>(0))?;
    Ok(u64::try_from(count).unwrap_or(0))
}
