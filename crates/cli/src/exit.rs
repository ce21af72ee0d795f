//! The exit codes, all of them; `docs/reference/exit-codes.md` says the same.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All that was asked for was done.
    Ok = 0,
    /// A step, a test or a query failed, or the run was stopped.
    Failed = 1,
    /// The command line asks for something that cannot be.
    Usage = 2,
    /// The project has errors; nothing was run.
    CheckErrors = 3,
    /// Something that Pintail needs is missing or broken, or Pintail itself.
    Internal = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
