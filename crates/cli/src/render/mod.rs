//! How things look: diagnostics with carets, tables, plans, runs, and small texts.
//!
//! Renderers take values and return text; where it goes is the command's business.

pub mod backfill;
pub mod diagnostics;
pub mod diff;
pub mod findings;
pub mod plan;
pub mod result;
pub mod run;
pub mod status;
pub mod table;
pub mod text;
