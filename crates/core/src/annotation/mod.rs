//! The header of a script: annotation words, their options, and the typed result.
//!
//! One registry holds every word: name, syntax, doc, parser and example come from one definition per word, and the
//! reference page is generated from it. The path of one header, in reading order: `block` finds the comment lines,
//! `header` sends each to its word, `tokens` and `args` split it, `words/*` give it meaning, `values/*` read single
//! values, `fold` joins what several lines say about the write, `rules` checks lines against each other.
//!
//! Invariant: no header line is lost. It is an annotation, or prose, or a diagnostic.

mod args;
mod block;
mod draft;
mod fold;
mod header;
mod looks_like;
mod reference;
mod registry;
mod rules;
mod spec;
mod tokens;
mod type_text;
mod values;
mod words;

#[cfg(test)]
mod tests;

pub use header::{ParsedHeader, parse_header};
pub use reference::reference_markdown;
pub use registry::{OptionSpec, Runtime, WORDS, Word, syntax_of};
pub use spec::*;
pub use values::parse_duration_text;
