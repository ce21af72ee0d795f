//! For tests only: project folders from one string, and the binary run in them with output that can be compared.
//!
//! It knows the binary, its output and the servers that tests use, never the engine. Nothing here sleeps: what is awaited
//! is a file, an answer, or the end of a process.

pub mod authority;
mod normal;
mod pintail;
mod project;
pub mod services;
mod small_disk;
mod waiting;

pub use normal::normalised;
pub use pintail::{Outcome, Pintail, Running, pintail};
pub use project::Project;
pub use small_disk::{SMALL_FILES, SmallDisk};
pub use waiting::wait_until;
