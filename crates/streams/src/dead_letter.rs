//! Dead letters: what could not be taken in or decoded, kept with its bytes, its reason and where it came from.
//!
//! Invariant: a letter is written in the commit that moves the position past it, and its id comes from what it is, so that
//! a commit that is done again after a crash does not write it twice.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array};
use indoc::formatdoc;
use pintail_core::id::SnapshotId;
use pintail_core::sql::{Literal, Relation, Statement};
use pintail_engine::batches::PLACE;
use pintail_engine::lake::{self, OWN_SCHEMA};
use pintail_engine::{EngineError, Session, Stage, WriteTransaction};
use sha2::{Digest as _, Sha256};

use crate::writer::Writer;

/// The table's name in Pintail's own schema.
pub const TABLE: &str = "dead_letters";

const STAGE: &str = "_pt_dead_letters";

/// Something that could not be taken in or decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Who could not, such as `consumer decode` or `http`.
    pub origin: String,
    /// Where it lay in what was read: a snapshot, an offset, a request and the index in its batch.
    pub position: String,
    /// The part of the payload, such as `signals[3]`; the whole when absent.
    pub part: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// The bytes, as they came.
    pub raw: Vec<u8>,
    /// The decoder and its version.
    pub decoder: Option<(String, u32)>,
    /// Which event it is about.
    pub event: EventName,
}

/// How people name an event, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventName {
    /// Its id.
    pub id: Option<String>,
    /// Who sent it.
    pub source: Option<String>,
    /// Whom it is about.
    pub subject: Option<String>,
    /// Its type.
    pub event_type: Option<String>,
    /// Its time, in microseconds since 1970 UTC.
    pub time_micros: Option<i64>,
}

impl DeadLetter {
    /// Returns the id: the same for the same part of the same bytes of the same event at the same place of the same origin.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        let EventName { id, source, subject, .. } = &self.event;
        let of_event = [id, source, subject].map(|field| field.as_deref().unwrap_or_default());
        for field in
            [&self.origin, &self.position, self.part.as_deref().unwrap_or_default()].into_iter().chain(of_event)
        {
            hash.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(field.as_bytes());
        }
        hash.update(&self.raw);
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the table in the lake attached as `alias`.
pub fn relation(alias: &str) -> Relation {
    Relation::in_catalog(alias, OWN_SCHEMA, TABLE)
}

/// The letters of one origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LettersOf {
    /// Who could not take something in.
    pub origin: String,
    /// How many letters it wrote.
    pub count: u64,
    /// The newest snapshot that one of them is about.
    pub newest: Option<SnapshotId>,
}

/// Returns how many letters there are of each origin in the lake attached as `alias`.
pub fn by_origin(session: &Session, alias: &str) -> Result<Vec<LettersOf>, EngineError> {
    if !lake::absent_names(session, alias, &[(OWN_SCHEMA, TABLE)])?.is_empty() {
        return Ok(Vec::new());
    }
    let sql = formatdoc! {"
        SELECT origin, count(*)::UBIGINT, max(TRY_CAST(regexp_extract(position, '^snapshot ([0-9]+)$', 1) AS BIGINT))
        FROM {letters}
        GROUP BY origin
        ORDER BY origin",
        letters = relation(alias),
    };
    session.rows("count the dead letters", &sql, |row| {
        Ok(LettersOf { origin: row.get(0)?, count: row.get(1)?, newest: row.get::<_, Option<i64>>(2)?.map(SnapshotId) })
    })
}

/// Letters that statements of the writer's session can read, ready for a transaction.
#[derive(Debug)]
pub struct StagedLetters {
    /// `None` when there are none.
    stage: Option<Stage>,
    positions: Option<(String, String)>,
}

/// Makes `letters` readable for statements of `session`.
pub fn stage(session: &Session, letters: &[DeadLetter]) -> Result<StagedLetters, EngineError> {
    let positions = || letters.iter().map(|letter| &letter.position);
    let positions = positions().min().cloned().zip(positions().max().cloned());
    if letters.is_empty() {
        return Ok(StagedLetters { stage: None, positions });
    }
    let batch = batch(letters);
    let stage = session.stage("stage the dead letters", &Relation::temp(STAGE), &batch.schema(), &[batch])?;
    Ok(StagedLetters { stage: Some(stage), positions })
}

fn batch(letters: &[DeadLetter]) -> RecordBatch {
    let text = |get: &dyn Fn(&DeadLetter) -> Option<String>| -> ArrayRef {
        Arc::new(letters.iter().map(get).collect::<StringArray>())
    };
    let versions = letters.iter().map(|letter| letter.decoder.as_ref().map(|(_, version)| *version));
    let times: TimestampMicrosecondArray = letters.iter().map(|letter| letter.event.time_micros).collect();
    let columns: [(&str, ArrayRef); 13] = [
        ("id", text(&|letter| Some(letter.id()))),
        ("origin", text(&|letter| Some(letter.origin.clone()))),
        ("position", text(&|letter| Some(letter.position.clone()))),
        ("part", text(&|letter| letter.part.clone())),
        ("reason", text(&|letter| Some(letter.reason.clone()))),
        ("raw", Arc::new(BinaryArray::from_iter_values(letters.iter().map(|letter| &letter.raw)))),
        ("decoder", text(&|letter| letter.decoder.as_ref().map(|(name, _)| name.clone()))),
        ("version", Arc::new(versions.collect::<UInt32Array>())),
        ("event_id", text(&|letter| letter.event.id.clone())),
        ("event_source", text(&|letter| letter.event.source.clone())),
        ("subject", text(&|letter| letter.event.subject.clone())),
        ("event_type", text(&|letter| letter.event.event_type.clone())),
        ("event_time", Arc::new(times.with_timezone("UTC"))),
    ];
    let nullable = columns.map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(nullable).expect("every column has one value per letter")
}

/// Writes staged letters in an open transaction, those that are not there yet; returns how many were new.
pub fn write(transaction: &WriteTransaction<'_>, alias: &str, staged: &StagedLetters) -> Result<u64, EngineError> {
    let Some((stage, (first, last))) = staged.stage.as_ref().zip(staged.positions.as_ref()) else { return Ok(0) };
    // The bounds let DuckLake leave out the files of other positions.
    transaction.run(&Statement::new(
        "write the dead letters",
        formatdoc! {"
            INSERT INTO {table} BY NAME
            SELECT now() AS recorded_at, s.* EXCLUDE ({PLACE})
            FROM (SELECT DISTINCT ON (id) * FROM {stage}) s
            WHERE NOT EXISTS (
              SELECT 1 FROM {table} d
              WHERE d.position BETWEEN {first} AND {last} AND d.id = s.id
            )",
            table = relation(alias),
            stage = stage.relation(),
            first = Literal::new(first),
            last = Literal::new(last),
        },
    ))
}

/// Makes the table where it is missing, in a commit of its own.
pub fn prepare(writer: &Writer) -> Result<(), EngineError> {
    crate::commit::make_table(writer, OWN_SCHEMA, TABLE, &[create(writer.alias())])
}

/// Returns the statements that write a letter without bytes and without a stage, for a transaction of somebody else.
pub(crate) fn record(alias: &str, letter: &DeadLetter) -> Vec<Statement> {
    let insert = formatdoc! {"
        INSERT INTO {table} BY NAME
        SELECT {id} AS id, now() AS recorded_at, {origin} AS origin, {position} AS position, {reason} AS reason,
               ''::BLOB AS raw
        WHERE NOT EXISTS (
          SELECT 1 FROM {table} d
          WHERE d.position = {position} AND d.id = {id}
        )",
        table = relation(alias),
        id = Literal::new(letter.id()),
        origin = Literal::new(&letter.origin),
        position = Literal::new(&letter.position),
        reason = Literal::new(&letter.reason),
    };
    vec![create(alias), Statement::new("write a dead letter", insert)]
}

fn create(alias: &str) -> Statement {
    Statement::new(
        "make the table of dead letters",
        formatdoc! {"
            CREATE TABLE IF NOT EXISTS {table} (
              id VARCHAR, recorded_at TIMESTAMPTZ, origin VARCHAR, position VARCHAR, part VARCHAR, reason VARCHAR, raw BLOB,
              decoder VARCHAR, version UINTEGER, event_id VARCHAR, event_source VARCHAR, subject VARCHAR, event_type VARCHAR,
              event_time TIMESTAMPTZ, replayed_at TIMESTAMPTZ
            )",
            table = relation(alias),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_depends_on_place_and_bytes_and_not_on_the_reason() {
        let letter = DeadLetter {
            origin: "http".into(),
            position: "7".into(),
            part: None,
            reason: "no id".into(),
            raw: b"{}".to_vec(),
            decoder: None,
            event: EventName::default(),
        };
        let other_reason = DeadLetter { reason: "no subject".into(), ..letter.clone() };
        assert_eq!(letter.id(), other_reason.id());
        for other in [
            DeadLetter { origin: "htt".into(), position: "p7".into(), ..letter.clone() },
            DeadLetter { position: "8".into(), ..letter.clone() },
            DeadLetter { part: Some("signals[0]".into()), ..letter.clone() },
            DeadLetter { raw: b"{ }".to_vec(), ..letter.clone() },
            DeadLetter { event: EventName { id: Some("7".into()), ..EventName::default() }, ..letter.clone() },
        ] {
            assert_ne!(letter.id(), other.id(), "{other:?}");
        }
    }
}
