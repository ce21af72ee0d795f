//! `debounce`: waits until triggers are quiet.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::values::read_duration;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "debounce",
    aliases: &[],
    syntax: "debounce <duration>",
    doc: "Waits until no trigger came for this long, per script and partition, and then runs once. `debounce=` on an `on` line is for that edge alone.",
    example: "debounce 30s",
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
    draft.header.debounce = Some(Located { value: read_duration(&value)?, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
