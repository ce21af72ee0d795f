//! `description`: a line of the description; prose lines of the header are the rest of it.

use crate::annotation::args::Line;
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};

pub const WORD: Word = Word {
    name: "description",
    aliases: &[],
    syntax: "description <text>",
    doc: "A line of the script's description. Header lines that start with no annotation word are part of it as well, in \
          the order of the file; an empty comment line starts a paragraph.",
    example: "description Orders per day and country\nCancelled orders count as zero.",
    options: &[],
    keywords: &[],
    repeats: Repeats::Freely,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let text = line.rest_text();
    if text.is_empty() {
        return Err(line.missing("a text"));
    }
    draft.add_prose(text);
    Ok(())
}
