//! `retention`: how long slices stay in their table.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::values::read_duration;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "retention",
    aliases: &[],
    syntax: "retention <duration>",
    doc: "Slices that ended longer ago than this are deleted by `pintail maintain` and no longer expected. What reads \
          the asset does not become stale by it.",
    example: "partitioned daily\nretention 400d\nmaterialize ducklake://main/events",
    options: &[],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[Shape::Duration],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "a duration")?;
    draft.header.retention = Some(Located { value: read_duration(&value)?, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
