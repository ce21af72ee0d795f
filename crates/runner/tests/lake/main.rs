//! The runner on real lakes: every case opens a project in a folder of its own and runs it as a face would.

mod harness;
mod processes;

mod basics;
mod crashes;
mod failures;
mod races;
