//! `[consumer.<name>]`: what a consumer reads, how it decodes, and what it does about gaps.

use pintail_core::asset::Asset;
use pintail_core::diagnostic::{Code, nearest};
use pintail_core::id::SnapshotId;
use pintail_core::source::Span;
use pintail_core::stream::{DECODERS, GapPolicy, problem_of_consumer_name};
use pintail_streams::consumer::{Source, Spec, Start};

use super::{Decoder, Table};
use crate::workspace::config::Config;
use crate::workspace::consumer::{ConsumerConfig, ConsumerPlaces};
use crate::workspace::reader::quoted_list;
use crate::workspace::toml_tree::Value;

const KEYS: [&str; 20] = [
    "source",
    "decoder",
    "start",
    "gap",
    "shards",
    "by",
    "required",
    "stale",
    "retention",
    "window_rows",
    "window_bytes",
    "span_snapshots",
    "span_rows",
    "span_bytes",
    "threads",
    "time_column",
    "signal_types",
    "event_types",
    "vehicle_chain",
    "vehicle_contract",
];

impl Decoder<'_> {
    pub(super) fn consumers(&mut self, table: &Table, config: &mut Config) {
        for (name, span, consumer) in self.reader.named_tables(table, "consumer") {
            let place = format!("[consumer.{name}]");
            self.reader.deny_unknown(consumer, &place, &KEYS);
            if let Some(problem) = problem_of_consumer_name(name) {
                let help = "such as `decode` or `decode-v2`";
                let message = format!("`{name}` cannot name a consumer: {problem}");
                self.reader.report(Code::CONSUMER_INCOMPLETE, span, message, help);
                continue;
            }
            if let Some(consumer) = self.consumer(name, span, consumer, config) {
                let is_same =
                    |other: &&ConsumerConfig| other.lake == consumer.lake && other.decoder == consumer.decoder;
                if let Some(other) = config.consumers.values().find(is_same) {
                    let message = format!(
                        "consumers `{}` and `{name}` have one decoder, and would write the same tables of lake `{}`",
                        other.spec.name, consumer.lake
                    );
                    let help = "keep one of them; `shards` share the work of one consumer";
                    self.reader.report(Code::CONSUMER_INCOMPLETE, span, message, help);
                    continue;
                }
                config.consumers.insert(name.to_owned(), consumer);
            }
        }
    }

    fn consumer(&mut self, name: &str, span: Span, table: &Table, config: &Config) -> Option<ConsumerConfig> {
        let source = self.consumer_source(name, span, table, config);
        let decoder = self.consumer_decoder(name, span, table);
        // Everything is looked at, also where something is missing, so that all mistakes are said at once.
        let mut spec = Spec::new(name, Source { schema: String::new(), table: String::new() });
        self.consumer_limits(table, &mut spec);
        spec.start = self.consumer_start(table).unwrap_or_default();
        spec.gap = self.gap(table).unwrap_or_default();
        spec.required = self.reader.boolean(table, "required").unwrap_or_default();
        spec.staleness = self.duration(table, "stale");
        spec.retention = self.some_time(table, "retention", "rows that were decoded go");
        let shards = self.reader.positive(table, "shards").map_or(1, |shards| shards.get());
        let by = self.reader.text(table, "by").map(|by| by.value);
        if 1 < shards && by.is_none() {
            self.lacks(name, span, "by", "the column by which the shards share the rows, such as `by = \"subject\"`");
        }
        if 99 < shards {
            let found = table.get("shards").map_or(span, |node| node.span);
            self.reader.report(Code::BAD_SETTING, found, format!("`shards` must be at most 99, found `{shards}`"), "");
        }
        let vehicles = self.vehicles(name, span, table);
        let texts = |texts: Vec<super::Resolved>| texts.into_iter().map(|text| text.value).collect();
        let time_column = self.reader.text(table, "time_column").map_or_else(|| "time".to_owned(), |text| text.value);
        let signal_types = self.reader.texts(table, "signal_types").map(texts);
        let event_types = self.reader.texts(table, "event_types").map(texts);
        let (lake, source) = source?;
        spec.source = source;
        let place = |key: &str| table.get(key).map(|node| node.span);
        let places = ConsumerPlaces {
            source: place("source").unwrap_or(span),
            by: place("by"),
            time_column: place("time_column"),
        };
        Some(ConsumerConfig {
            lake,
            spec,
            shards: shards.min(99),
            by,
            decoder: decoder?,
            time_column,
            signal_types,
            event_types,
            vehicles,
            places,
        })
    }

    fn lacks(&mut self, name: &str, span: Span, key: &str, what: &str) {
        let message = format!("`[consumer.{name}]` has no `{key}`");
        self.reader.report(Code::CONSUMER_INCOMPLETE, span, message, format!("add {what}"));
    }

    fn consumer_source(
        &mut self,
        name: &str,
        span: Span,
        table: &Table,
        config: &Config,
    ) -> Option<(pintail_core::id::LakeName, Source)> {
        const EXAMPLE: &str = "such as `source = \"ducklake://main/raw_events\"`";
        if !table.contains_key("source") {
            self.lacks(name, span, "source", &format!("the table that it reads, {EXAMPLE}"));
            return None;
        }
        let text = self.reader.text(table, "source")?;
        match Asset::parse(&text.value) {
            Ok(Asset::Lake { lake, schema, table }) if config.lakes.contains_key(&lake) => {
                Some((lake, Source { schema, table }))
            }
            Ok(Asset::Lake { lake, .. }) => {
                let names = config.lakes.keys().map(|lake| lake.as_str());
                let near = nearest(lake.as_str(), names).map(|near| format!("did you mean `{near}`?"));
                let help = near.unwrap_or_else(|| format!("add a section `[lake.{lake}]`"));
                self.reader.bad_value("source", &text, "a table of a lake that is configured", &help);
                None
            }
            Ok(_) => {
                self.reader.bad_value("source", &text, "a table of a lake", EXAMPLE);
                None
            }
            Err(error) => {
                self.reader.bad_value("source", &text, &format!("a table of a lake ({error})"), EXAMPLE);
                None
            }
        }
    }

    fn consumer_decoder(&mut self, name: &str, span: Span, table: &Table) -> Option<String> {
        if !table.contains_key("decoder") {
            self.lacks(name, span, "decoder", &format!("one of {}", quoted_list(&DECODERS)));
            return None;
        }
        let text = self.reader.text(table, "decoder")?;
        if DECODERS.contains(&text.value.as_str()) {
            return Some(text.value);
        }
        let help = match nearest(&text.value, DECODERS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", quoted_list(&DECODERS)),
        };
        let message = format!("unknown decoder `{}`", text.value);
        self.reader.report(Code::UNKNOWN_DECODER, text.span, message, help);
        None
    }

    fn consumer_limits(&mut self, table: &Table, spec: &mut Spec) {
        let rows = |count: std::num::NonZeroU32| u64::from(count.get());
        let (window, span) = (&mut spec.window, &mut spec.span);
        window.rows = self.reader.positive(table, "window_rows").map_or(window.rows, rows);
        window.bytes = self.size(table, "window_bytes").map_or(window.bytes, |size| size.0);
        span.rows = self.reader.positive(table, "span_rows").map_or(span.rows, rows);
        span.bytes = self.size(table, "span_bytes").map_or(span.bytes, |size| size.0);
        if let Some(snapshots) = self.reader.positive(table, "span_snapshots") {
            span.snapshots = usize::try_from(snapshots.get()).unwrap_or(usize::MAX);
        }
        let threads = self.reader.positive(table, "threads");
        spec.threads =
            threads.and_then(|threads| usize::try_from(threads.get()).ok()).and_then(std::num::NonZeroUsize::new);
    }

    fn consumer_start(&mut self, table: &Table) -> Option<Start> {
        const EXPECTED: &str = "`earliest`, `head` or a snapshot";
        const HELP: &str = "a consumer that has run before is at its cursor; `pintail consume reset` moves it";
        let node = table.get("start")?;
        if let Value::Integer(snapshot) = node.value {
            let start = parse_start(&snapshot.to_string());
            if start.is_none() {
                let message = format!("`start` must be {EXPECTED}, found `{snapshot}`");
                self.reader.report(Code::BAD_SETTING, node.span, message, HELP);
            }
            return start;
        }
        let text = self.reader.text(table, "start")?;
        let start = parse_start(&text.value);
        if start.is_none() {
            self.reader.bad_value("start", &text, EXPECTED, HELP);
        }
        start
    }

    fn gap(&mut self, table: &Table) -> Option<GapPolicy> {
        let text = self.reader.text(table, "gap")?;
        let found = GapPolicy::ALL.iter().find(|(word, _)| *word == text.value);
        if found.is_none() {
            self.reader.bad_value(
                "gap",
                &text,
                "`stop`, `rescan` or `skip`",
                "`stop` leaves it to a person, as without it",
            );
        }
        found.map(|(_, policy)| *policy)
    }

    fn vehicles(&mut self, name: &str, span: Span, table: &Table) -> Option<(u64, String)> {
        let contract = self.reader.text(table, "vehicle_contract");
        let chain = self.reader.positive(table, "vehicle_chain");
        match (chain, contract) {
            (Some(chain), Some(contract)) => Some((u64::from(chain.get()), contract.value)),
            (None, Some(_)) => {
                self.lacks(
                    name,
                    span,
                    "vehicle_chain",
                    "the id of the contract's chain, such as `vehicle_chain = 137`",
                );
                None
            }
            (Some(_), None) => {
                self.lacks(name, span, "vehicle_contract", "the address of the contract whose tokens are vehicles");
                None
            }
            (None, None) => None,
        }
    }
}

/// Reads `earliest`, `head` or a snapshot.
pub fn parse_start(text: &str) -> Option<Start> {
    match text {
        "earliest" => Some(Start::Earliest),
        "head" => Some(Start::Head),
        number => {
            let snapshot = number.parse().ok().filter(|snapshot| 0 <= *snapshot)?;
            Some(Start::After(SnapshotId(snapshot)))
        }
    }
}
