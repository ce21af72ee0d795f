//! `stream`: the script consumes a table's change feed.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{OptionSpec, Repeats, Runtime, Shape, Word};
use crate::annotation::spec::{Stream, StreamStart};
use crate::annotation::tokens::Value;
use crate::annotation::values::{read_asset, read_bytes, read_choice, read_count};
use crate::asset::Asset;
use crate::diagnostic::Code;
use crate::source::Located;
use crate::stream::GapPolicy;

pub const WORD: Word = Word {
    name: "stream",
    aliases: &[],
    syntax: "stream <uri> [batch_rows=<n>] [batch_bytes=<n>] [start=head|earliest|<snapshot>] [changes=inserts|all] \
             [gap=stop|rescan|skip]",
    doc: "The script consumes the change feed of a lake table exactly once: its query selects from `changes`, and its rows \
          and its cursor move in one transaction. `materialize … key=` takes the last change per key, `append` takes the \
          inserts.",
    example: "stream ducklake://main/raw_events batch_rows=100000 start=earliest\nmaterialize ducklake://main/events append",
    options: &[
        OptionSpec { name: "batch_rows", value: "<n>", doc: "The most rows of one window." },
        OptionSpec { name: "batch_bytes", value: "<n>", doc: "The most bytes of one window, such as `64MB`." },
        OptionSpec {
            name: "start",
            value: "head|earliest|<snapshot>",
            doc: "Where a new consumer starts: with the next change (`head`, the default), the oldest kept one, or after \
                  a snapshot.",
        },
        OptionSpec {
            name: "changes",
            value: "inserts|all",
            doc: "Which changes `changes` has: the rows that came (`inserts`, the default), or updates and deletes too. \
                  `on_delete=delete` asks for all.",
        },
        OptionSpec {
            name: "gap",
            value: "stop|rescan|skip",
            doc: "What is done when changes expired before they were taken: the run fails (`stop`, the default), what the \
                  table holds of them is read again (`rescan`), or they are left out on record (`skip`).",
        },
    ],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[Shape::Uri],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let batch_rows = args.option_as("batch_rows", draft, |value| read_count(value, "a number of rows"));
    let batch_bytes = args.option_as("batch_bytes", draft, read_bytes);
    let start = args.option_as("start", draft, read_start).unwrap_or_default();
    let kinds = [("inserts", false), ("all", true)];
    let all_changes =
        args.option_as("changes", draft, |value| read_choice(value, "a kind of changes", &kinds)).unwrap_or(false);
    let gap = args.option_as("gap", draft, |value| read_choice(value, "a way over a gap", &GapPolicy::ALL));
    let value = args.require(line, "the URI of a lake table")?;
    let asset = read_asset(&value)?;
    if !matches!(asset, Asset::Lake { .. }) {
        return Err(Problem::new(Code::BAD_VALUE, value.span, "only lake tables have a change feed")
            .with_help("name a `ducklake://` table"));
    }
    let gap = gap.unwrap_or_default();
    let stream = Stream { asset, batch_rows, batch_bytes, start, all_changes, gap };
    draft.header.stream = Some(Located { value: stream, span: line.span() });
    args.finish(line, draft);
    Ok(())
}

fn read_start(value: &Value<'_>) -> Result<StreamStart, Problem> {
    if let Ok(snapshot) = value.text.parse::<i64>()
        && snapshot >= 0
    {
        return Ok(StreamStart::Snapshot(snapshot));
    }
    let starts = [("head", StreamStart::Head), ("earliest", StreamStart::Earliest)];
    read_choice(value, "a start (or a snapshot's number)", &starts)
}
