//! `pipeline`: Windmill's marker of a pipeline script.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};

pub const WORD: Word = Word {
    name: "pipeline",
    aliases: &[],
    syntax: "pipeline",
    doc: "Marks the file as a pipeline script. Every script under `pipelines/` is one, so the marker is optional; it is \
          accepted so that Windmill scripts run unchanged.",
    example: "pipeline",
    options: &[],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    draft.header.pipeline = Some(line.span());
    Args::of(line, draft)?.finish(line, draft);
    Ok(())
}
