//! Dead letters for people: what there is, the whole of one, and a second try.
//!
//! A letter is replayed in one commit with the mark that it was: it lands once, however often and by whomever it is asked
//! for. Letters of consumers are about rows that are in the lake already; those are decoded again by the consumer.

use indoc::formatdoc;
use pintail_core::sql::{Literal, Statement};
use pintail_engine::EngineError;
use pintail_engine::lake::OWN_SCHEMA;
use pintail_streams::dead_letter::{self, EventName};
use pintail_streams::{PositionTable, Writer};

use crate::cloudevents::{Event, Payload, from_json};
use crate::log::Arrival;
use crate::raw::{LayoutError, RawTable};
use crate::sink::{Batch, LandError, Sink, SourceName};

/// The origins of letters that ingest writes.
pub const ORIGINS: [&str; 5] = ["http", "nats", "kafka", "file", "replay"];

/// How the origins of consumers begin.
pub const CONSUMER: &str = "consumer ";

/// A dead letter as it lies in the lake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// Its id.
    pub id: String,
    /// When it was written, RFC 3339.
    pub recorded_at: String,
    /// Who could not take it.
    pub origin: String,
    /// Where it lay.
    pub position: String,
    /// The part of it.
    pub part: Option<String>,
    /// Why.
    pub reason: String,
    /// Its bytes.
    pub raw: Vec<u8>,
    /// When it was replayed, RFC 3339.
    pub replayed_at: Option<String>,
    /// The event that it is about, as far as it is known.
    pub event: EventName,
}

/// How the part of a letter begins whose payload is in the blob store; its key follows.
const ELSEWHERE: &str = "its payload is the object ";

/// Which letters.
#[derive(Clone, Debug, Default)]
pub struct LetterFilter {
    /// Beginnings of ids; all when there are none.
    pub ids: Vec<String>,
    /// Of this origin only.
    pub origin: Option<String>,
    /// Also those that were replayed.
    pub with_replayed: bool,
    /// The newest so many.
    pub limit: Option<u64>,
}

/// What became of letters that were replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Ids of those that landed.
    pub landed: Vec<String>,
    /// Ids of those that cannot land, with the reason.
    pub refused: Vec<(String, String)>,
}

/// Letters that could not be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The lake failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The lake's table cannot take events.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// They did not land.
    #[error(transparent)]
    Land(#[from] LandError),
}

/// Returns letters, the newest first.
pub fn list(writer: &Writer, filter: &LetterFilter) -> Result<Vec<Letter>, EngineError> {
    dead_letter::prepare(writer)?;
    let mut conditions = vec!["true".to_owned()];
    if !filter.ids.is_empty() {
        let ids = filter.ids.iter().map(|id| format!("starts_with(id, {})", Literal::new(id)));
        conditions.push(format!("({})", ids.collect::<Vec<_>>().join(" OR ")));
    }
    conditions.extend(filter.origin.iter().map(|origin| format!("origin = {}", Literal::new(origin))));
    if !filter.with_replayed {
        conditions.push("replayed_at IS NULL".to_owned());
    }
    let limit = filter.limit.map_or_else(String::new, |limit| format!("LIMIT {limit}"));
    let sql = formatdoc! {"
        SELECT id, strftime(recorded_at, '%Y-%m-%dT%H:%M:%SZ'), origin, position, part, reason, raw,
               strftime(replayed_at, '%Y-%m-%dT%H:%M:%SZ'), event_id, event_source, subject, event_type,
               epoch_us(event_time)
        FROM {table}
        WHERE {conditions}
        ORDER BY recorded_at DESC, position, part
        {limit}",
        table = dead_letter::relation(writer.alias()),
        conditions = conditions.join(" AND "),
    };
    writer.session().rows("list the dead letters", &sql, |row| {
        Ok(Letter {
            id: row.get(0)?,
            recorded_at: row.get(1)?,
            origin: row.get(2)?,
            position: row.get(3)?,
            part: row.get(4)?,
            reason: row.get(5)?,
            raw: row.get(6)?,
            replayed_at: row.get(7)?,
            event: EventName {
                id: row.get(8)?,
                source: row.get(9)?,
                subject: row.get(10)?,
                event_type: row.get(11)?,
                time_micros: row.get(12)?,
            },
        })
    })
}

/// Returns the origins of the letters that are there.
pub fn origins(writer: &Writer) -> Result<Vec<String>, EngineError> {
    dead_letter::prepare(writer)?;
    let table = dead_letter::relation(writer.alias());
    let sql = format!("SELECT DISTINCT origin FROM {table} ORDER BY origin");
    writer.session().rows("list the origins of dead letters", &sql, |row| row.get(0))
}

/// Lands `letters` as events, those that are events now; `now_micros` is the time of those that have none.
pub fn replay(writer: Writer, table: RawTable, letters: &[Letter], now_micros: i64) -> Result<Replayed, ReplayError> {
    let name = SourceName {
        position: PositionTable::source("replays"),
        source: "replays".to_owned(),
        origin: "replay".to_owned(),
    };
    let (sink, at) = Sink::open(writer, table, name, "0")?;
    // Read after the position: who replays one of them from here on moves it, and this replay is refused as a whole.
    let ids = letters.iter().map(|letter| letter.id.clone()).collect();
    let open = if letters.is_empty() {
        Vec::new()
    } else {
        list(sink.writer(), &LetterFilter { ids, ..LetterFilter::default() })?
    };
    let mut replayed = Replayed::default();
    let mut batch = Batch::default();
    for letter in letters.iter().filter(|letter| open.iter().any(|open| open.id == letter.id)) {
        if letter.origin.starts_with(CONSUMER) {
            let reason = "it is about a row that is in the lake: `pintail consume replay` decodes it again";
            replayed.refused.push((letter.id.clone(), reason.to_owned()));
            continue;
        }
        match from_json(&letter.raw) {
            Ok(mut event) => {
                if let (Payload::None, Some(key)) = (&event.data, letter.part.as_deref().and_then(stored_payload)) {
                    event.data = Payload::Stored { key: key.to_owned() };
                }
                batch.arrivals.push(Arrival { event, received_micros: now_micros });
                batch.positions.push(format!("dead letter {}", letter.id));
                replayed.landed.push(letter.id.clone());
            }
            Err(error) => replayed.refused.push((letter.id.clone(), error.to_string())),
        }
    }
    if replayed.landed.is_empty() {
        return Ok(replayed);
    }
    batch.changes = Some((OWN_SCHEMA, dead_letter::TABLE));
    batch.records.push(mark(sink.writer().alias(), &replayed.landed));
    let to = (at.parse::<u64>().unwrap_or(0) + 1).to_string();
    sink.land(&at, &to, batch)?;
    Ok(replayed)
}

/// Returns the part that a letter of an event has whose payload is in the blob store, and not in the letter.
pub(crate) fn payload_elsewhere(event: &Event) -> Option<String> {
    match &event.data {
        Payload::Stored { key } => Some(format!("{ELSEWHERE}{key}")),
        Payload::None | Payload::Json(_) | Payload::Base64(_) => None,
    }
}

fn stored_payload(part: &str) -> Option<&str> {
    part.strip_prefix(ELSEWHERE)
}

fn mark(alias: &str, ids: &[String]) -> Statement {
    let ids: Vec<String> = ids.iter().map(|id| Literal::new(id).to_string()).collect();
    let table = dead_letter::relation(alias);
    let sql =
        format!("UPDATE {table} SET replayed_at = now() WHERE id IN ({}) AND replayed_at IS NULL", ids.join(", "));
    Statement::new("mark the letters as replayed", sql)
}
