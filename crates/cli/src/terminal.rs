//! Where output goes: data to stdout, talk to stderr.
//!
//! Invariant: talk passes the project's redactor; a closed pipe is no error; without colour nothing is lost.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _, Write as _};

use pintail_engine::Redactor;
use serde::Serialize;
use tracing_subscriber::EnvFilter;

use crate::args::{ColorChoice, Globals};
use crate::environment::Environment;

/// What is known of the terminal, and the way to it.
pub struct Terminal {
    /// Whether data is JSON.
    pub is_json: bool,
    /// How often `-v` was given.
    pub verbosity: u8,
    /// Whether stderr is a terminal, on which progress may be drawn.
    pub is_live: bool,
    /// The width of stdout when it is known.
    pub width: Option<u16>,
    colors_data: bool,
    colors_talk: bool,
    redactor: RefCell<Redactor>,
}

/// A way to make a word stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// What is wrong.
    Error,
    /// What may be wrong.
    Warning,
    /// What helps.
    Hint,
    /// What went well.
    Good,
    /// What is less important.
    Dim,
    /// A heading.
    Bold,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Style::Error => "1;31",
            Style::Warning => "1;33",
            Style::Hint => "1;36",
            Style::Good => "32",
            Style::Dim => "2",
            Style::Bold => "1",
        }
    }
}

impl Terminal {
    /// Returns the terminal as the command line and the environment describe it.
    pub fn new(globals: &Globals, environment: &Environment) -> Self {
        let is_plain = environment.get("NO_COLOR").is_some() || environment.get("TERM") == Some("dumb");
        let colors = |is_terminal: bool| match globals.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !is_plain,
        };
        let (data, talk) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let columns = environment.get("COLUMNS").and_then(|text| text.parse().ok());
        Self {
            is_json: globals.json,
            verbosity: globals.verbose,
            is_live: talk && environment.get("TERM") != Some("dumb"),
            width: columns.or_else(|| comfy_table::Table::new().width().filter(|_| data)),
            colors_data: colors(data),
            colors_talk: colors(talk),
            redactor: RefCell::default(),
        }
    }

    /// Sends the log of the engine and the runner to stderr.
    pub fn listen_to_logs(&self) {
        let level = match self.verbosity {
            0 => "warn",
            1 => "info",
            _ => "debug",
        };
        tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(format!("pintail={level}")))
            .with_writer(io::stderr)
            .with_ansi(self.colors_talk)
            .without_time()
            .with_target(false)
            .init();
    }

    /// Lets `redactor` see everything that is said from now on.
    pub fn redact_with(&self, redactor: Redactor) {
        self.redactor.replace(redactor);
    }

    /// Returns `text` without secrets.
    pub fn redact(&self, text: &str) -> String {
        self.redactor.borrow().redact(text)
    }

    /// Returns whether talk has colour.
    pub fn colors_talk(&self) -> bool {
        self.colors_talk
    }

    /// Returns whether data has colour.
    pub fn colors_data(&self) -> bool {
        self.colors_data
    }

    /// Writes a piece of data, as it is.
    pub fn data(&self, text: &str) {
        // A reader that closed the pipe has seen enough.
        let _ = io::stdout().lock().write_all(text.as_bytes());
    }

    /// Writes one JSON document, laid out for people.
    pub fn json(&self, value: &impl Serialize) {
        let text = serde_json::to_string_pretty(value).expect("our own shapes are JSON");
        self.data(&format!("{text}\n"));
    }

    /// Writes one JSON document on one line.
    pub fn json_line(&self, value: &impl Serialize) {
        let text = serde_json::to_string(value).expect("our own shapes are JSON");
        self.data(&format!("{text}\n"));
        let _ = io::stdout().flush();
    }

    /// Says one line.
    pub fn talk(&self, line: &str) {
        let _ = writeln!(io::stderr().lock(), "{}", self.redact(line));
    }

    /// Says what is wrong.
    pub fn error(&self, message: &str) {
        self.talk(&format!("{} {message}", self.paint_talk(Style::Error, "error:")));
    }

    /// Says what may be wrong.
    pub fn warning(&self, message: &str) {
        self.talk(&format!("{} {message}", self.paint_talk(Style::Warning, "warning:")));
    }

    /// Says what helps.
    pub fn hint(&self, message: &str) {
        self.talk(&format!("{} {message}", self.paint_talk(Style::Hint, "hint:")));
    }

    /// Returns `text` as it stands out in talk.
    pub fn paint_talk(&self, style: Style, text: &str) -> String {
        paint(self.colors_talk, style, text)
    }

    /// Returns `text` as it stands out in data.
    pub fn paint_data(&self, style: Style, text: &str) -> String {
        paint(self.colors_data, style, text)
    }
}

fn paint(has_color: bool, style: Style, text: &str) -> String {
    match has_color {
        true => format!("\u{1b}[{}m{text}\u{1b}[0m", style.code()),
        false => text.to_owned(),
    }
}
