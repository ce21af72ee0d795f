//! `timeout`: how long one attempt may take.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::values::read_duration;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "timeout",
    aliases: &[],
    syntax: "timeout <duration>",
    doc: "Cancels an attempt that runs longer, rolls it back, and fails the step.",
    example: "timeout 10m",
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
    draft.header.timeout = Some(Located { value: read_duration(&value)?, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
