//! What an annotation word is, and the list of all of them.
//!
//! A word is added by one file in `words/` and one line in [`WORDS`]; the parser, near-name search, help and the
//! reference page follow from it.

use super::args::Line;
use super::draft::{Draft, Problem};
use super::words::{
    append, column, contract, debounce, description, dimension, freshness, hooks, macros, materialize, measure, mute,
    on, on_schema_change, owner, partitioned, pipeline, retention, retry, stream, tag, test, timeout, trigger,
    unique_key, uses,
};

/// One annotation word.
pub struct Word {
    /// The word as it is written.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// The forms, one per line.
    pub syntax: &'static str,
    /// One paragraph of Markdown.
    pub doc: &'static str,
    /// Header lines without comment markers.
    pub example: &'static str,
    /// The `key=value` options.
    pub options: &'static [OptionSpec],
    /// Words that may follow it: the first argument or flags.
    pub keywords: &'static [&'static str],
    /// Whether it may stand more than once.
    pub repeats: Repeats,
    /// Whether this version acts on it.
    pub runtime: Runtime,
    /// What its arguments look like; by it a line with a mistyped word is told from prose.
    pub(super) shape: &'static [Shape],
    /// Reads the line into the draft.
    pub(super) parse: fn(&Line<'_>, &mut Draft<'_>) -> Result<(), Problem>,
}

/// One `key=value` option of a word.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The key.
    pub name: &'static str,
    /// What the value looks like, such as `a,b`.
    pub value: &'static str,
    /// One sentence of Markdown.
    pub doc: &'static str,
}

/// How often a word may stand in one header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// At most once.
    Once,
    /// As often as needed.
    Freely,
}

/// Whether this version acts on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// It does.
    Here,
    /// It does, except for the forms named.
    Partly(&'static str),
    /// It only parses and checks it.
    NotYet,
}

/// One thing that the arguments of a word may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An asset URI stands somewhere.
    Uri,
    /// The first argument is a duration.
    Duration,
    /// The first argument is a number.
    Number,
    /// The second argument is `=`.
    Assignment,
}

/// Every annotation word, in the order of the reference page.
pub const WORDS: &[&Word] = &[
    &materialize::WORD,
    &partitioned::WORD,
    &retention::WORD,
    &unique_key::WORD,
    &append::WORD,
    &on_schema_change::WORD,
    &column::WORD,
    &contract::WORD,
    &test::WORD,
    &on::WORD,
    &trigger::WORD,
    &mute::WORD,
    &debounce::WORD,
    &freshness::WORD,
    &retry::WORD,
    &timeout::WORD,
    &tag::WORD,
    &owner::WORD,
    &description::WORD,
    &pipeline::WORD,
    &hooks::PRE_RUN,
    &hooks::ON_SUCCESS,
    &hooks::ON_FAILURE,
    &measure::WORD,
    &dimension::WORD,
    &macros::WORD,
    &uses::WORD,
    &stream::WORD,
];

/// Returns the word spelled `text`; words are lower case.
pub(super) fn find(text: &str) -> Option<&'static Word> {
    WORDS.iter().copied().find(|word| word.name == text || word.aliases.contains(&text))
}

/// Returns every spelling with its word.
pub(super) fn spellings() -> impl Iterator<Item = (&'static str, &'static Word)> {
    WORDS.iter().flat_map(|word| {
        std::iter::once(word.name).chain(word.aliases.iter().copied()).map(|spelling| (spelling, *word))
    })
}

/// Returns the forms of the annotation `word`, one per line, for help; `None` when there is no such annotation.
pub fn syntax_of(word: &str) -> Option<&'static str> {
    find(word).map(|word| word.syntax)
}
