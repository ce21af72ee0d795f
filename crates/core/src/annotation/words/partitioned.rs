//! `partitioned`: the unit of work of the script.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{OptionSpec, Repeats, Runtime, Word};
use crate::annotation::tokens::Value;
use crate::annotation::values::{read_choice, read_column, read_date, read_duration, read_time_zone};
use crate::diagnostic::Code;
use crate::partition::{PartitionSpec, TimeSpec, TimeUnit};
use crate::source::Located;

pub const WORD: Word = Word {
    name: "partitioned",
    aliases: &[],
    syntax: "partitioned daily|hourly|weekly|monthly [by=<column>] [tz=<zone>] [start=YYYY-MM-DD]\n\
             partitioned dynamic key=<$.path|column> [tolerance=1h]",
    doc: "The script works on one partition at a time, and each run replaces the rows of its partition alone. Time \
          partitions have an identity (`2026-05-16`, `2026-05-16T09`, `2026-W20`, `2026-05`) and a window; a dynamic \
          partition has a value of the trigger's payload (`$.a.b`) or everything after the last consumed value of a \
          column. Windmill's `format=` is accepted and has no meaning, since each kind has one form of identity.",
    example: "partitioned daily by=ordered_at tz=Europe/Berlin start=2026-01-01",
    options: &[
        OptionSpec {
            name: "by",
            value: "<column>",
            doc: "The time column that the window is on. Rows outside the window fail the write.",
        },
        OptionSpec { name: "tz", value: "<zone>", doc: "The IANA zone of the calendar; UTC when absent." },
        OptionSpec {
            name: "start",
            value: "YYYY-MM-DD",
            doc: "The first day that is expected to exist; earlier partitions are never missing.",
        },
        OptionSpec {
            name: "key",
            value: "<$.path|column>",
            doc: "For `dynamic`: the path into the trigger's payload, or the column.",
        },
        OptionSpec {
            name: "tolerance",
            value: "<duration>",
            doc: "For `dynamic key=<column>`: how far beyond now a time may lie and still be taken; later ones wait. One \
                  hour when absent.",
        },
        OptionSpec { name: "format", value: "<format>", doc: "Windmill's; no meaning." },
    ],
    keywords: &["daily", "hourly", "weekly", "monthly", "dynamic"],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

#[derive(Clone, Copy)]
enum Kind {
    Time(TimeUnit),
    Dynamic,
}

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    if let Some(format) = args.option("format") {
        let message = "`format=` has no meaning: each kind of partition has one form of identity";
        draft.report(Problem::new(Code::WINDMILL_IGNORED, format.span, message));
    }
    let value = args.require(line, "a kind")?;
    let kinds = [
        ("daily", Kind::Time(TimeUnit::Day)),
        ("hourly", Kind::Time(TimeUnit::Hour)),
        ("weekly", Kind::Time(TimeUnit::Week)),
        ("monthly", Kind::Time(TimeUnit::Month)),
        ("dynamic", Kind::Dynamic),
    ];
    let spec = match read_choice(&value, "a kind of partition", &kinds)? {
        Kind::Time(unit) => time_spec(unit, &mut args, draft),
        Kind::Dynamic => dynamic_spec(line, &mut args, draft)?,
    };
    draft.header.partitioned = Some(Located { value: spec, span: line.span() });
    args.finish(line, draft);
    Ok(())
}

fn time_spec(unit: TimeUnit, args: &mut Args<'_>, draft: &mut Draft<'_>) -> PartitionSpec {
    if let Some(key) = args.option("key") {
        draft.report(not_applicable(&key, "key", "a time partition has no key; the column is `by=`"));
    }
    if let Some(tolerance) = args.option("tolerance") {
        draft.report(not_applicable(&tolerance, "tolerance", "a time partition ends when its period does"));
    }
    let by = args.option_as("by", draft, read_column);
    draft.column_uses.extend(by.clone());
    PartitionSpec::Time(TimeSpec {
        unit,
        by: by.map(|column| column.value),
        tz: args.option_as("tz", draft, read_time_zone),
        start: args.option_as("start", draft, read_date),
        // From its own line, when all lines are known.
        retention: None,
    })
}

fn dynamic_spec(line: &Line<'_>, args: &mut Args<'_>, draft: &mut Draft<'_>) -> Result<PartitionSpec, Problem> {
    for (name, why) in [
        ("by", "a dynamic partition has no window; its column is `key=`"),
        ("tz", "a dynamic partition has no calendar"),
        ("start", "a dynamic partition has no calendar"),
    ] {
        if let Some(value) = args.option(name) {
            draft.report(not_applicable(&value, name, why));
        }
    }
    let value = args.option("key").ok_or_else(|| line.missing("`key=` when it is dynamic"))?;
    let is_payload = value.text.starts_with('$');
    let key = match is_payload {
        true => read_payload_path(&value)?,
        false => read_column(&value)?.value,
    };
    if let Some(tolerance) = args.option("tolerance").filter(|_| is_payload) {
        draft.report(not_applicable(&tolerance, "tolerance", "a value of a payload has no time"));
        return Ok(PartitionSpec::Dynamic { key, tolerance: None });
    }
    let tolerance = args.option_as("tolerance", draft, read_duration);
    Ok(PartitionSpec::Dynamic { key, tolerance })
}

fn read_payload_path(value: &Value<'_>) -> Result<String, Problem> {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let is_path = value.text.strip_prefix("$.").is_some_and(|path| path.split('.').all(is_name));
    if !is_path {
        return Err(Problem::new(
            Code::BAD_VALUE,
            value.span,
            format!("`{}` is not a path into a payload", value.text),
        )
        .with_help("write `$.` and names separated by dots, such as `$.order.country`"));
    }
    Ok(value.text.clone().into_owned())
}

fn not_applicable(value: &Value<'_>, name: &str, why: &str) -> Problem {
    Problem::new(Code::OPTION_NOT_APPLICABLE, value.span, format!("`{name}=` does not apply here: {why}"))
        .with_help(format!("remove `{name}={}`", value.raw))
}
