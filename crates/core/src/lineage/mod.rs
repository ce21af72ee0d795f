//! Reads and writes found in bodies, each with its reason.
