//! `append`: the same as `append` on the `materialize` line.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};

pub const WORD: Word = Word {
    name: "append",
    aliases: &[],
    syntax: "append",
    doc: "Inserts the rows of the query and deletes none, once per run input and partition: a repeated attempt does not \
          append twice. The same as `append` on the `materialize` line. When the script also has a key, append wins, \
          with a warning.",
    example: "materialize ducklake://main/events\nappend",
    options: &[],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    draft.append = Some(line.span());
    Args::of(line, draft)?.finish(line, draft);
    Ok(())
}
