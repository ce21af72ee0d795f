//! `owner`: who is told when the script fails.

use crate::annotation::args::Line;
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::source::Located;

pub const WORD: Word = Word {
    name: "owner",
    aliases: &[],
    syntax: "owner <text>",
    doc: "Who answers for the script: a team, a person, an address. Shown on failures and in the documentation, and \
          selected with `owner:`.",
    example: "owner data-platform@example.com",
    options: &[],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let text = line.rest_text();
    if text.is_empty() {
        return Err(line.missing("a name"));
    }
    draft.header.owner = Some(Located { value: text.to_owned(), span: line.span() });
    Ok(())
}
