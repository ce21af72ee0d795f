//! SQL text: quoting, generated statements, what a body is, the write strategies, tests, and the stamp.
//!
//! Invariant: text of ours goes into SQL only through [`Ident`], [`Literal`] and [`Relation`]; text of the user only as a
//! [`body::ParsedBody`] span that the engine's own parser delimited, or as a [`Fragment`] that is closed in itself.

pub mod body;
pub mod changes;
pub mod classify;
pub mod data_test;
pub mod diff;
pub mod postgres;
pub mod restore;
pub mod rewrite;
pub mod stamp;
pub mod strategy;
pub mod window_columns;

#[cfg(test)]
pub(crate) mod fixture;
mod fragment;
pub(crate) mod scan;
mod text;

pub use fragment::{Fragment, FragmentError};
pub use text::{Ident, Literal, Relation, Statement};
