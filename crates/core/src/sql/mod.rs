//! SQL text: quoting, generated statements, what a body is, the write strategies, tests, and the stamp.
//!
//! Invariant: text of ours goes into SQL only through [`Ident`], [`Literal`] and [`Relation`]; text of the user only as a
//! [`body::ParsedBody`] span that the engine's own parser delimited.

pub mod body;
pub mod changes;
pub mod stamp;

mod text;

pub use text::{Ident, Literal, Relation, Statement};
