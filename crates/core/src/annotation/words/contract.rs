//! `contract enforced`: the output must match the declared columns exactly.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::annotation::values::read_choice;

pub const WORD: Word = Word {
    name: "contract",
    aliases: &[],
    syntax: "contract enforced",
    doc: "The query's columns must be the declared `column` lines exactly: the same names and types, none missing, none \
          more. Any difference is an error at check and at write.",
    example: "contract enforced\ncolumn id BIGINT not_null\ncolumn amount DECIMAL(10,2)",
    options: &[],
    keywords: &["enforced"],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "`enforced`")?;
    read_choice(&value, "a contract", &[("enforced", ())])?;
    draft.header.contract_enforced = Some(line.span());
    args.finish(line, draft);
    Ok(())
}
