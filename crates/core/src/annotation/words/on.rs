//! `on`: what starts a run of the script.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{OptionSpec, Repeats, Runtime, Shape, Word};
use crate::annotation::spec::{Catchup, EventKind, PartitionMap, Trigger};
use crate::annotation::tokens::{Token, Value};
use crate::annotation::values::{read_choice, read_count, read_cron, read_duration, read_time_zone, read_upstream};
use crate::diagnostic::{Code, nearest};
use crate::source::{Located, Span};

pub const WORD: Word = Word {
    name: "on",
    aliases: &[],
    syntax: "on <uri> [debounce=<duration>] [map=<mapping>]\n\
             on schedule \"<cron>\" [tz=<zone>] [catchup=none|latest|all] [lag=<duration>]\n\
             on webhook [path=<path>]\n\
             on kafka topic=<topic> [group=<group>]\n\
             on mqtt topic=<topic>\n\
             on nats subject=<subject>\n\
             on postgres table=<table> [db=<datatable>]\n\
             on sqs queue=<queue>\n\
             on gcp subscription=<subscription>\n\
             on email [address=<address>]",
    doc: "What starts a run. Stands once per trigger. `on <uri>` runs the script after that asset materializes. The kinds \
          of events may stand without options, as in Windmill: their source is then configured in `pintail.toml`, where \
          the connections to brokers are as well. `amqp`, `data_upload`, `dbt://` and `res://` are accepted and have no \
          meaning here.",
    example: "on ducklake://main/orders debounce=30s\non schedule \"0 2 * * 1-5\" tz=Europe/Berlin catchup=latest\n\
              on kafka topic=orders group=pintail",
    options: &[
        OptionSpec { name: "debounce", value: "<duration>", doc: "After `<uri>`: waits until the edge is quiet." },
        OptionSpec {
            name: "map",
            value: "<mapping>",
            doc: "After `<uri>`: which of our partitions one of the upstream's concerns: `identity`, `coarsen` (hourly to \
                  daily, when all hours are present), `partial` (on each of them), `fan_out`, `lookback=<n>`, `all`, \
                  `latest`. Inferred when absent.",
        },
        OptionSpec {
            name: "tz",
            value: "<zone>",
            doc: "After `schedule`: the IANA zone of the expression; UTC when absent.",
        },
        OptionSpec {
            name: "catchup",
            value: "none|latest|all",
            doc: "After `schedule`: which of the times missed while nothing ran are made up for; `none` when absent.",
        },
        OptionSpec {
            name: "lag",
            value: "<duration>",
            doc: "After `schedule`: how far behind the scheduled time the processed partition lies.",
        },
        OptionSpec { name: "path", value: "<path>", doc: "After `webhook`: the path of its address." },
        OptionSpec { name: "topic", value: "<topic>", doc: "After `kafka` and `mqtt`." },
        OptionSpec { name: "group", value: "<group>", doc: "After `kafka`: the consumer group." },
        OptionSpec { name: "subject", value: "<subject>", doc: "After `nats`." },
        OptionSpec { name: "table", value: "<table>", doc: "After `postgres`: the table whose changes count." },
        OptionSpec { name: "db", value: "<datatable>", doc: "After `postgres`: the configured database." },
        OptionSpec { name: "queue", value: "<queue>", doc: "After `sqs`." },
        OptionSpec { name: "subscription", value: "<subscription>", doc: "After `gcp`." },
        OptionSpec { name: "address", value: "<address>", doc: "After `email`: the recipient." },
    ],
    keywords: &["schedule", "webhook", "kafka", "mqtt", "nats", "postgres", "sqs", "gcp", "email"],
    repeats: Repeats::Freely,
    runtime: Runtime::NotYet,
    shape: &[Shape::Uri],
    parse,
};

/// One kind of event: its word, the option that names its source when any option is given, and the other options.
struct EventForm {
    word: &'static str,
    kind: EventKind,
    source: Option<&'static str>,
    others: &'static [&'static str],
}

const EVENTS: [EventForm; 8] = [
    EventForm { word: "webhook", kind: EventKind::Webhook, source: None, others: &["path"] },
    EventForm { word: "kafka", kind: EventKind::Kafka, source: Some("topic"), others: &["group"] },
    EventForm { word: "mqtt", kind: EventKind::Mqtt, source: Some("topic"), others: &[] },
    EventForm { word: "nats", kind: EventKind::Nats, source: Some("subject"), others: &[] },
    EventForm { word: "postgres", kind: EventKind::Postgres, source: Some("table"), others: &["db"] },
    EventForm { word: "sqs", kind: EventKind::Sqs, source: Some("queue"), others: &[] },
    EventForm { word: "gcp", kind: EventKind::Gcp, source: Some("subscription"), others: &[] },
    EventForm { word: "email", kind: EventKind::Email, source: None, others: &["address"] },
];

/// Triggers of Windmill that have no counterpart.
const WINDMILL_ONLY: [&str; 2] = ["amqp", "data_upload"];

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let tokens = line.tokens()?;
    let Some((first, rest)) = tokens.split_first() else {
        return Err(line.missing("a URI or a kind of event"));
    };
    let value = first.value();
    let trigger = match &*value.text {
        "schedule" => parse_schedule(line, rest, draft)?,
        text if text.contains("://") || text.starts_with("$res:") => parse_asset(line, &value, rest, draft)?,
        text if WINDMILL_ONLY.contains(&text) => {
            return Err(Problem::new(
                Code::WINDMILL_IGNORED,
                value.span,
                format!("`on {text}` never starts a run here"),
            ));
        }
        text => match EVENTS.iter().find(|form| form.word == text) {
            Some(form) => parse_event(line, form, rest, draft),
            None => return Err(unknown_trigger(line, &value)),
        },
    };
    draft.header.triggers.push(Located { value: trigger, span: line.span() });
    Ok(())
}

fn unknown_trigger(line: &Line<'_>, value: &Value<'_>) -> Problem {
    let problem = Problem::new(Code::BAD_VALUE, value.span, format!("`{}` is not a trigger", value.raw));
    match nearest(&value.text, line.word.keywords.iter().copied()) {
        Some(near) => problem.with_help(format!("did you mean `on {near}`?")),
        None => problem.with_help(format!(
            "after `on` stands a URI, or {}; a line of prose must not start with `on`",
            line.word.keywords.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        )),
    }
}

/// Returns the options of the word that are named.
fn options_named(names: &[&str]) -> Vec<OptionSpec> {
    WORD.options.iter().filter(|option| names.contains(&option.name)).copied().collect()
}

fn parse_asset(
    line: &Line<'_>,
    value: &Value<'_>,
    rest: &[Token<'_>],
    draft: &mut Draft<'_>,
) -> Result<Trigger, Problem> {
    let mut args = Args::from_tokens(line, rest, &options_named(&["debounce", "map"]), draft);
    let debounce = args.option_as("debounce", draft, read_duration);
    let map = args.option_as("map", draft, read_map);
    args.finish(line, draft);
    Ok(Trigger::Asset { asset: read_upstream(value)?, debounce, map })
}

fn read_map(value: &Value<'_>) -> Result<PartitionMap, Problem> {
    if let Some(count) = value.text.strip_prefix("lookback=") {
        let count_value = Value::new(&value.raw[value.raw.len() - count.len()..], value.span.end - count.len());
        let count = read_count(&count_value, "a number of partitions")?;
        return u32::try_from(count).map(PartitionMap::Lookback).map_err(|_| {
            Problem::new(Code::BAD_VALUE, count_value.span, format!("{count} partitions are too many to look back"))
        });
    }
    if value.text == "lookback" {
        return Err(Problem::new(Code::BAD_VALUE, value.span, "`lookback` needs a number of partitions")
            .with_help("write `map=lookback=7`"));
    }
    let maps = [
        ("identity", PartitionMap::Identity),
        ("coarsen", PartitionMap::Coarsen),
        ("partial", PartitionMap::Partial),
        ("fan_out", PartitionMap::FanOut),
        ("all", PartitionMap::All),
        ("latest", PartitionMap::Latest),
    ];
    read_choice(value, "a mapping (or `lookback=<n>`)", &maps)
}

fn parse_schedule(line: &Line<'_>, rest: &[Token<'_>], draft: &mut Draft<'_>) -> Result<Trigger, Problem> {
    let mut args = Args::from_tokens(line, rest, &options_named(&["tz", "catchup", "lag"]), draft);
    let catchups = [("none", Catchup::None), ("latest", Catchup::Latest), ("all", Catchup::All)];
    let tz = args.option_as("tz", draft, read_time_zone);
    let catchup = args.option_as("catchup", draft, |value| read_choice(value, "a catch-up policy", &catchups));
    let lag = args.option_as("lag", draft, read_duration);
    let fields: Vec<Value<'_>> = args.rest().collect();
    let cron = match fields.as_slice() {
        [] => None,
        [cron] => draft.keep(read_cron(cron)),
        [first, .., last] => {
            let span = Span::new(first.span.start, last.span.end);
            let text = fields.iter().map(|field| &*field.text).collect::<Vec<_>>().join(" ");
            return Err(Problem::new(Code::BAD_CRON, span, "the cron expression must stand in quotes")
                .with_help(format!("write `on schedule \"{text}\"`")));
        }
    };
    Ok(Trigger::Schedule { cron, tz, catchup: catchup.unwrap_or_default(), lag })
}

fn parse_event(line: &Line<'_>, form: &EventForm, rest: &[Token<'_>], draft: &mut Draft<'_>) -> Trigger {
    let names: Vec<&str> = form.source.into_iter().chain(form.others.iter().copied()).collect();
    let mut args = Args::from_tokens(line, rest, &options_named(&names), draft);
    let options: Vec<(String, String)> =
        names.iter().filter_map(|name| Some(((*name).to_owned(), args.option(name)?.text.into_owned()))).collect();
    args.finish(line, draft);
    if let Some(source) = form.source
        && !options.is_empty()
        && !options.iter().any(|(name, _)| name == source)
    {
        let message = format!("`on {}` with options needs `{source}=`", form.word);
        draft.report(Problem::new(Code::MISSING_ARGUMENT, line.span(), message).with_help(format!(
            "add `{source}=…`, or configure the source in pintail.toml and write `on {}`",
            form.word
        )));
    }
    Trigger::Event { kind: form.kind, options }
}
