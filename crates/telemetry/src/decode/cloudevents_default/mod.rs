//! The decoder `cloudevents-default`: payloads with `signals` and `events` as plain JSON.
//!
//! ```json
//! {"signals": [{"name": "speed", "timestamp": "2025-11-29T12:00:00Z", "value": 50}],
//!  "events":  [{"name": "safety.collision", "timestamp": "2025-11-29T12:00:00Z", "durationNs": 5, "tags": ["front"]}]}
//! ```
//!
//! One payload may be shared by several events, so an event's type says which of the two is read; events of other types
//! have no rows. The first of two equal keys counts.

use arrow::array::RecordBatch;
use metrics::counter;
use pintail_streams::{Dead, Decoded, Decoder, EventColumns, Parent, ResolveError, Target};
use serde_json::value::RawValue;

use super::blobs;
use super::event::decode_events;
use super::fault::Fault;
use super::json::{self, Object};
use super::near::NearNames;
use super::registry::DecoderOptions;
use super::rows::{READS, RawRow, RawRows};
use super::signal::decode_signals;
use super::tables::{self, EventRows, Header, Origin, SignalRows};
use crate::rollup::{EventsLatest, SignalsLatest};
use crate::subject::subject_bucket;

/// The name of the decoder.
pub const NAME: &str = "cloudevents-default";

/// The version; it grows with every change of what comes out.
pub const VERSION: u32 = 1;

/// The decoder.
pub struct CloudEventsDefault {
    options: DecoderOptions,
    version: u32,
}

/// What is read of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Signals,
    Events,
}

impl CloudEventsDefault {
    /// Returns the decoder with `options`.
    pub fn new(options: DecoderOptions) -> Self {
        Self { options, version: VERSION }
    }

    /// Returns the decoder as if it had another version: what a replay after a change does can be tried before there is
    /// one.
    #[must_use]
    pub fn with_version(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// Returns what is read of a row's payload, if anything.
    fn route(&self, row: &RawRow<'_>) -> Option<Route> {
        let event_type = row.event_type?;
        let is_in = |types: &[String]| types.iter().any(|known| known == event_type);
        if is_in(&self.options.event_types) {
            return Some(Route::Events);
        }
        let gate = self.options.vehicles.as_ref();
        let is_vehicle = gate.is_none_or(|gate| row.subject.is_some_and(|subject| gate.admits(subject)));
        (is_in(&self.options.signal_types) && is_vehicle).then_some(Route::Signals)
    }
}

impl Decoder for CloudEventsDefault {
    fn name(&self) -> &str {
        NAME
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn reads(&self) -> Vec<String> {
        READS.map(str::to_owned).into()
    }

    fn targets(&self) -> Vec<Target> {
        let target = |table: &str, columns, rollup| Target {
            table: table.to_owned(),
            columns,
            identity: tables::identity(),
            partitioned_by: tables::PARTITIONED_BY.map(str::to_owned).into(),
            sorted_by: tables::SORTED_BY.map(str::to_owned).into(),
            rollup: Some(rollup),
        };
        vec![
            target("signals", tables::signal_columns(), Box::new(SignalsLatest)),
            target("events", tables::event_columns(), Box::new(EventsLatest)),
        ]
    }

    fn parent(&self) -> Vec<Parent> {
        let column = |(target, source): (&str, &str)| Parent { target: target.to_owned(), source: source.to_owned() };
        // Producers give one id to several events, such as a status and a fingerprint of one payload.
        let name = [("subject", "subject"), ("source", "source"), ("cloud_event_id", "id")];
        name.into_iter().chain([("type", "type"), ("cloud_event_time", "time")]).map(column).collect()
    }

    fn event(&self) -> EventColumns {
        let column = |name: &str| Some(name.to_owned());
        EventColumns {
            id: column("id"),
            source: column("source"),
            subject: column("subject"),
            event_type: column("type"),
            time: column("time"),
        }
    }

    fn payloads_elsewhere(&self, batch: &RecordBatch) -> Vec<usize> {
        blobs::wanted(batch, |row| self.route(row).is_some())
    }

    fn resolve(&self, batch: RecordBatch) -> Result<RecordBatch, ResolveError> {
        blobs::resolve(batch, &*self.options.blobs, |row| self.route(row).is_some())
    }

    fn decode(&self, batch: &RecordBatch, now_micros: i64) -> Decoded {
        let mut output = Output::new(self.version);
        match RawRows::of(batch) {
            Ok(rows) => {
                for index in 0..batch.num_rows() {
                    self.decode_row(index, &rows.row(index), now_micros, &mut output);
                }
            }
            Err(reason) => {
                for row in 0..batch.num_rows() {
                    output.dead.push(Dead {
                        row,
                        part: None,
                        reason: reason.clone(),
                        raw: Vec::new(),
                        is_unread: true,
                    });
                }
            }
        }
        output.finish()
    }
}

/// What has come of a batch so far.
struct Output {
    origin: Origin,
    signals: SignalRows,
    events: EventRows,
    dead: Vec<Dead>,
    near: NearNames,
    skipped: u64,
}

impl CloudEventsDefault {
    fn decode_row(&self, index: usize, row: &RawRow<'_>, now_micros: i64, output: &mut Output) {
        let Some(route) = self.route(row) else {
            output.skipped += 1;
            return;
        };
        let mut faults = Vec::new();
        if let Err(reason) = decode_event(route, row, now_micros, output, &mut faults) {
            faults.push(Fault::whole(row.raw(), reason));
        }
        let is_unread = row.unusable.is_some();
        let dead = |Fault { part, reason, raw }| Dead { row: index, part, reason, raw, is_unread };
        output.dead.extend(faults.into_iter().map(dead));
    }
}

/// Decodes one event; the error is that of the whole.
fn decode_event(
    route: Route,
    row: &RawRow<'_>,
    now_micros: i64,
    output: &mut Output,
    faults: &mut Vec<Fault>,
) -> Result<(), String> {
    let header = header(row)?;
    let payload = row.payload()?;
    let text = std::str::from_utf8(&payload).map_err(|error| format!("expected JSON in UTF-8: {error}"))?;
    let object = json::object(text).map_err(|error| format!("expected a JSON object: {error}"))?;
    match route {
        Route::Signals => {
            let elements = elements(&object, "signals", faults)?;
            for signal in decode_signals(&elements, now_micros, &mut output.near, faults) {
                output.signals.push(&header, &signal, output.origin);
            }
        }
        Route::Events => {
            let elements = elements(&object, "events", faults)?;
            for event in decode_events(&elements, now_micros, &mut output.near, faults) {
                output.events.push(&header, &event, output.origin);
            }
        }
    }
    Ok(())
}

fn header<'a>(row: &RawRow<'a>) -> Result<Header<'a>, String> {
    let required = |value: Option<&'a str>, name: &str| {
        value.filter(|value| !value.is_empty()).ok_or_else(|| format!("the event has no {name}"))
    };
    let subject = required(row.subject, "subject")?;
    Ok(Header { subject, bucket: subject_bucket(subject), id: required(row.id, "id")?, row: *row })
}

/// Returns the elements of the array `key`; what stands there instead is a fault of that part.
fn elements<'a>(object: &Object<'a>, key: &str, faults: &mut Vec<Fault>) -> Result<Vec<&'a RawValue>, String> {
    let Some(value) = object.value(key) else {
        return Err(format!("expected an array `{key}`, found {}{}", json::found(object.get(key)), object.near(key)));
    };
    Ok(json::array(value).unwrap_or_else(|| {
        faults.push(Fault::part(key, value, format!("expected an array, found {}", json::found(Some(value)))));
        Vec::new()
    }))
}

impl Output {
    fn new(version: u32) -> Self {
        let version = i32::try_from(version).expect("versions of decoders are small");
        Self {
            origin: Origin { decoder: NAME, version },
            signals: SignalRows::default(),
            events: EventRows::default(),
            dead: Vec::new(),
            near: NearNames::default(),
            skipped: 0,
        }
    }

    fn finish(self) -> Decoded {
        let rows = vec![self.signals.finish(), self.events.finish()];
        for (batch, table) in rows.iter().zip(["signals", "events"]) {
            counter!("pintail_decode_rows_total", "decoder" => NAME, "table" => table)
                .increment(batch.num_rows() as u64);
        }
        counter!("pintail_decode_dead_total", "decoder" => NAME).increment(self.dead.len() as u64);
        counter!("pintail_decode_skipped_total", "decoder" => NAME).increment(self.skipped);
        Decoded { rows, dead: self.dead }
    }
}

#[cfg(test)]
mod tests;
