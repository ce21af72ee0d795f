//! What an entry holds: events that arrived, and what was refused and is on its way to the dead letters.
//!
//! The bytes are a stored format: the first one is its number. A refused element is logged like an event, so that it is
//! as durable when its sender gets an answer.

use crate::cloudevents::{Event, Payload, from_taken_json};

/// The number of the format that is written.
const FORMAT: u8 = 1;

const EVENT: u8 = 1;
const REFUSED: u8 = 2;

/// One thing that came in.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// An event.
    Event(Arrival),
    /// Something that is no event.
    Refused(Refusal),
}

/// An event, and when it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The event.
    pub event: Event,
    /// When it came, in microseconds since 1970 UTC: the time of an event that has none.
    pub received_micros: i64,
}

/// Something that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where it lay, such as `element 3`; the whole when absent.
    pub part: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// Its bytes, as they came.
    pub raw: Vec<u8>,
}

/// Bytes that are no entry of this version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Another format.
    #[error("the entry has format {0}, this version reads format {FORMAT}")]
    Format(u8),
    /// The bytes end too early, or are not what they should be.
    #[error("the entry is damaged: {0}")]
    Damaged(String),
}

/// Returns the bytes of an entry.
pub fn encode(records: &[Record]) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    for record in records {
        match record {
            Record::Event(arrival) => {
                bytes.push(EVENT);
                bytes.extend(arrival.received_micros.to_le_bytes());
                let key = match &arrival.event.data {
                    Payload::Stored { key } => key.as_str(),
                    _ => "",
                };
                put(&mut bytes, key.as_bytes());
                put(&mut bytes, arrival.event.to_json().as_bytes());
            }
            Record::Refused(refusal) => {
                bytes.push(REFUSED);
                put(&mut bytes, refusal.part.as_deref().unwrap_or_default().as_bytes());
                put(&mut bytes, refusal.reason.as_bytes());
                put(&mut bytes, &refusal.raw);
            }
        }
    }
    bytes
}

fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    let length = u32::try_from(field.len()).expect("a request is smaller than 4 GiB");
    bytes.extend(length.to_le_bytes());
    bytes.extend(field);
}

/// Reads an entry.
pub fn decode(entry: &[u8]) -> Result<Vec<Record>, RecordError> {
    let (format, mut rest) = entry.split_first().ok_or_else(|| damaged("it is empty"))?;
    if *format != FORMAT {
        return Err(RecordError::Format(*format));
    }
    let mut records = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        rest = after;
        records.push(match *kind {
            EVENT => Record::Event(arrival(&mut rest)?),
            REFUSED => {
                let part = Some(text(&mut rest)?).filter(|part| !part.is_empty());
                Record::Refused(Refusal { part, reason: text(&mut rest)?, raw: take_field(&mut rest)?.to_vec() })
            }
            other => return Err(damaged(&format!("{other} is no kind of record"))),
        });
    }
    Ok(records)
}

fn arrival(rest: &mut &[u8]) -> Result<Arrival, RecordError> {
    let received_micros = i64::from_le_bytes(*take(rest)?);
    let key = text(rest)?;
    let mut event = from_taken_json(take_field(rest)?).map_err(|error| damaged(&error.to_string()))?;
    if !key.is_empty() {
        event.data = Payload::Stored { key };
    }
    Ok(Arrival { event, received_micros })
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], RecordError> {
    let (taken, after) = rest.split_first_chunk().ok_or_else(|| damaged("it ends too early"))?;
    *rest = after;
    Ok(taken)
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], RecordError> {
    let length = u32::from_le_bytes(*take(rest)?) as usize;
    let (field, after) = rest.split_at_checked(length).ok_or_else(|| damaged("it ends too early"))?;
    *rest = after;
    Ok(field)
}

fn text(rest: &mut &[u8]) -> Result<String, RecordError> {
    String::from_utf8(take_field(rest)?.to_vec()).map_err(|_| damaged("a text is not UTF-8"))
}

fn damaged(what: &str) -> RecordError {
    RecordError::Damaged(what.to_owned())
}
