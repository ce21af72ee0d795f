//! Pintail runner.
