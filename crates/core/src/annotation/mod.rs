//! The header of a script: annotation words, their options, and the typed result.
//!
//! One registry holds every word: name, syntax, doc, parser and example come from one definition per word, and the
//! reference page is generated from it.

mod spec;

pub use spec::*;
