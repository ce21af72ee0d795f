//! `use`: loads a macro library.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::annotation::values::read_script_path;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "use",
    aliases: &[],
    syntax: "use <path>",
    doc: "Loads the macro library at `<path>` before the script runs. Stands once per library.",
    example: "use macros/money",
    options: &[],
    keywords: &[],
    repeats: Repeats::Freely,
    runtime: Runtime::NotYet,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "the path of a macro library")?;
    let path = read_script_path(&value)?;
    draft.header.uses.push(Located { value: path, span: value.span });
    args.finish(line, draft);
    Ok(())
}
