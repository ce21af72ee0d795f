//! Makes plans real: loads the project, dispatches steps, executes them, heals what a crash left.

pub mod workspace;
