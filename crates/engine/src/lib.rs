//! Pintail engine.
