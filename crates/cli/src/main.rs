//! The pintail command line.
fn main() {}
