//! `macros`: the file is a macro library.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};

pub const WORD: Word = Word {
    name: "macros",
    aliases: &[],
    syntax: "macros",
    doc: "The file is a library of DuckDB macros: its statements are `CREATE MACRO`, and scripts load it with `use`.",
    example: "macros",
    options: &[],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::NotYet,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    draft.header.macros = Some(line.span());
    Args::of(line, draft)?.finish(line, draft);
    Ok(())
}
