//! `trigger`: whether any or every upstream starts a run.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::annotation::spec::TriggerMode;
use crate::annotation::values::read_choice;

pub const WORD: Word = Word {
    name: "trigger",
    aliases: &[],
    syntax: "trigger any\ntrigger all",
    doc: "With `any`, the default, each upstream that materializes starts a run. With `all`, a run starts when every \
          upstream has materialized the same partition.",
    example: "trigger all",
    options: &[],
    keywords: &["any", "all"],
    repeats: Repeats::Once,
    runtime: Runtime::NotYet,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "`any` or `all`")?;
    let modes = [("any", TriggerMode::Any), ("all", TriggerMode::All)];
    draft.header.trigger_mode = read_choice(&value, "a trigger mode", &modes)?;
    args.finish(line, draft);
    Ok(())
}
