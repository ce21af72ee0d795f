//! `tag`: labels for selection and worker groups.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::annotation::values::read_word;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "tag",
    aliases: &[],
    syntax: "tag <name>",
    doc: "A label: `tag:nightly` selects every script that has it. Stands once per label.",
    example: "tag nightly\ntag finance",
    options: &[],
    keywords: &[],
    repeats: Repeats::Freely,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "a name")?;
    let tag = read_word(&value, "a tag")?;
    draft.header.tags.push(Located { value: tag, span: value.span });
    args.finish(line, draft);
    Ok(())
}
