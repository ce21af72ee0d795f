//! Pintail testkit.
