//! `mute`: reads that do not start a run.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::spec::Mute;
use crate::annotation::values::read_upstream;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "mute",
    aliases: &[],
    syntax: "mute <uri>\nmute all",
    doc: "Lake and object reads found in the body start a run when they materialize, without an `on` line. `mute <uri>` \
          takes that from one read, `mute all` from every read of the script. Datatable reads never start one.",
    example: "mute ducklake://main/currencies",
    options: &[],
    keywords: &["all"],
    repeats: Repeats::Freely,
    runtime: Runtime::NotYet,
    shape: &[Shape::Uri],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "a URI or `all`")?;
    let mute = match &*value.text {
        "all" => Mute::All,
        _ => Mute::Asset(read_upstream(&value)?),
    };
    draft.header.mutes.push(Located { value: mute, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
