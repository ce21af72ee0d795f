//! Asking a person before something is done that is not undone by itself.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::app::App;
use crate::failure::Failure;

/// What is asked.
pub struct Question<'a> {
    /// What asks, such as `a rollback`.
    pub what: &'a str,
    /// The question, such as `roll it back?`.
    pub question: &'a str,
    /// What can be done where nobody can be asked.
    pub otherwise: &'a str,
}

/// Asks whether to go on; it is a failure when there is nobody to ask.
pub fn is_agreed(asked: &Question<'_>, app: &App) -> Result<bool, Failure> {
    if app.terminal.is_json || !std::io::stdin().is_terminal() {
        let message = format!("{} asks before it writes, and there is nobody to ask", asked.what);
        return Err(Failure::usage(message).with_hint(asked.otherwise));
    }
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{} [y/N] ", asked.question);
    let _ = stderr.flush();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::usage(format!("could not read the answer: {error}")))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
