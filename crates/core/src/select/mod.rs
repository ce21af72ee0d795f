//! The selection language.
