//! `freshness`: how old the result may be.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::values::read_duration;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "freshness",
    aliases: &[],
    syntax: "freshness <duration>",
    doc: "How old the result may be. It drives the state `stale`, alerts, and runs that cascade downstream.",
    example: "freshness 1h",
    options: &[],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::NotYet,
    shape: &[Shape::Duration],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "a duration")?;
    draft.header.freshness = Some(Located { value: read_duration(&value)?, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
