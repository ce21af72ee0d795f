//! Typed reads of a configuration tree, with a positioned diagnostic for everything that is not as it should be.
//!
//! Invariant: a read returns a value only when it is right and complete; in every other case the diagnostic is already
//! noted, and the caller goes on with its default.

use std::num::NonZeroU32;

use pintail_core::diagnostic::{Code, Diagnostic, nearest};
use pintail_core::source::Span;
use secrecy::SecretString;

use super::decode::CONFIG_FILE;
use super::environment::{Environment, Part, split_variables};
use super::secrets::Secrets;
use super::toml_tree::{Node, Table, Value};

/// Whether an unset variable matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The values are used.
    Resolve,
    /// Only shape and values are checked: the table belongs to a profile that is not selected, or is overridden.
    Check,
}

/// Text with its variables replaced.
#[derive(Debug)]
pub(super) struct Resolved {
    pub(super) value: String,
    /// The text as it stands in the file.
    pub(super) written: String,
    pub(super) from_environment: bool,
    pub(super) span: Span,
}

/// Reads values and collects diagnostics and secrets.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    text: &'a str,
    environment: &'a Environment,
    pub(super) mode: Mode,
    pub(super) secrets: Secrets,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, environment: &'a Environment) -> Self {
        Self { text, environment, mode: Mode::Resolve, secrets: Secrets::default(), diagnostics: Vec::new() }
    }

    /// Notes a finding at `span`.
    pub(super) fn report(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let diagnostic = Diagnostic::new(code, CONFIG_FILE, span, message);
        let help: String = help.into();
        self.diagnostics.push(if help.is_empty() { diagnostic } else { diagnostic.with_help(help) });
    }

    /// Notes a finding that was made elsewhere, such as one about the whole file.
    pub(super) fn note(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Returns the findings so far, and forgets them.
    pub(super) fn take_findings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.diagnostics)
    }

    /// Returns the findings in the order of the file, each once.
    pub(super) fn finish(self) -> (Secrets, Vec<Diagnostic>) {
        let mut diagnostics = self.diagnostics;
        diagnostics.sort_by_key(|found| (found.span, found.code.info().code));
        diagnostics.dedup();
        (self.secrets, diagnostics)
    }

    /// Notes every key of `table` that is not among `known`; `place` names the table, such as `[run]`.
    pub(super) fn deny_unknown(&mut self, table: &Table, place: &str, known: &[&str]) {
        for (key, node) in table.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let near = nearest(key, known.iter().copied());
            if [Some(key.as_str()), near].into_iter().flatten().any(names_a_secret) {
                self.keep_back(node);
            }
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it knows {}", quoted_list(known)),
            };
            self.report(Code::UNKNOWN_KEY, node.key, format!("unknown key `{key}` in {place}"), help);
        }
    }

    fn wrong_type(&mut self, node: &Node, key: &str, expected: &str) {
        let message = format!("`{key}` must be {expected}, found {}", node.value.kind());
        self.report(Code::WRONG_TYPE, node.span, message, "");
    }

    /// Notes that the value at `span` is not what `key` takes.
    pub(super) fn bad_value(&mut self, key: &str, found: &Resolved, expected: &str, help: &str) {
        // A value from the environment may be secret; its name in the file says enough.
        let value = if found.from_environment { String::new() } else { format!(", found `{}`", found.value) };
        self.report(Code::BAD_SETTING, found.span, format!("`{key}` must be {expected}{value}"), help);
    }

    /// Returns the table under `key`; an absent one is `None` without a word.
    pub(super) fn table<'t>(&mut self, table: &'t Table, key: &str) -> Option<&'t Table> {
        let node = table.get(key)?;
        let Value::Table(found) = &node.value else {
            self.wrong_type(node, key, "a table");
            return None;
        };
        Some(found)
    }

    /// Returns the named tables under `key`, such as the lakes under `lake`, with each name's place.
    pub(super) fn named_tables<'t>(&mut self, table: &'t Table, key: &str) -> Vec<(&'t str, Span, &'t Table)> {
        let Some(named) = self.table(table, key) else { return Vec::new() };
        let mut tables = Vec::new();
        for (name, node) in named {
            match &node.value {
                Value::Table(found) => tables.push((name.as_str(), node.key, found)),
                _ => self.wrong_type(node, &format!("{key}.{name}"), "a table"),
            }
        }
        tables
    }

    pub(super) fn boolean(&mut self, table: &Table, key: &str) -> Option<bool> {
        let node = table.get(key)?;
        let Value::Boolean(found) = node.value else {
            self.wrong_type(node, key, "a boolean");
            return None;
        };
        Some(found)
    }

    /// Returns a count from 0.
    pub(super) fn count(&mut self, table: &Table, key: &str) -> Option<u32> {
        let node = table.get(key)?;
        let Value::Integer(found) = node.value else {
            self.wrong_type(node, key, "an integer");
            return None;
        };
        let count = u32::try_from(found).ok();
        if count.is_none() {
            self.report(Code::BAD_SETTING, node.span, format!("`{key}` must be a count from 0, found `{found}`"), "");
        }
        count
    }

    /// Returns a count from 1.
    pub(super) fn positive(&mut self, table: &Table, key: &str) -> Option<NonZeroU32> {
        let count = NonZeroU32::new(self.count(table, key)?);
        if count.is_none() {
            let span = table.get(key)?.span;
            self.report(Code::BAD_SETTING, span, format!("`{key}` must be at least 1, found `0`"), "");
        }
        count
    }

    /// Returns text with its variables replaced.
    pub(super) fn text(&mut self, table: &Table, key: &str) -> Option<Resolved> {
        self.text_of(table.get(key)?, key)
    }

    pub(super) fn text_of(&mut self, node: &Node, key: &str) -> Option<Resolved> {
        let Value::Text(text) = &node.value else {
            self.wrong_type(node, key, "a string");
            return None;
        };
        self.resolve(text, node.span)
    }

    /// Returns one text or several.
    pub(super) fn texts(&mut self, table: &Table, key: &str) -> Option<Vec<Resolved>> {
        let node = table.get(key)?;
        let Value::Array(items) = &node.value else {
            return self.text_of(node, key).map(|one| vec![one]);
        };
        items.iter().map(|item| self.text_of(item, key)).collect()
    }

    /// Keeps what stands in the file out of every output, where it is meant as a secret.
    fn keep_back(&mut self, node: &Node) {
        match &node.value {
            Value::Text(text) => self.secrets.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.keep_back(item)),
            // What is written without quotes is shown as it is written.
            _ => self.secrets.add(self.text.get(node.span.start..node.span.end).unwrap_or_default()),
        }
    }

    /// Returns a secret; text that stands in the file is refused.
    pub(super) fn secret(&mut self, table: &Table, key: &str) -> Option<SecretString> {
        if let Some(node) = table.get(key).filter(|node| !matches!(node.value, Value::Text(_))) {
            self.keep_back(node);
        }
        let found = self.text(table, key)?;
        if !found.from_environment {
            self.literal_secret(key, found.span);
        }
        Some(self.secrets.wrap(&found.value))
    }

    pub(super) fn literal_secret(&mut self, key: &str, span: Span) {
        let help = "write `${NAME}` and set the environment variable `NAME`";
        self.report(
            Code::BAD_SETTING,
            span,
            format!("`{key}` holds a secret, which must come from the environment"),
            help,
        );
    }

    /// Replaces `${NAME}` and `$${`. `None` when a variable is unset (a finding only where the value is used) or when one
    /// is malformed.
    fn resolve(&mut self, text: &str, span: Span) -> Option<Resolved> {
        let mut value = String::new();
        let mut from_environment = false;
        let mut complete = true;
        for part in split_variables(text) {
            match part {
                Part::Text(part) => value.push_str(part),
                Part::Escape => value.push_str("${"),
                Part::Variable { name, at, length } => {
                    from_environment = true;
                    let found = self.variable(name, self.inside(text, span, at, length));
                    complete &= found.is_some();
                    value.push_str(found.unwrap_or_default());
                }
                Part::Malformed { at, length } => {
                    let place = self.inside(text, span, at, length);
                    let help = "a variable is `${NAME}`; write `$${` for the text itself";
                    self.report(Code::BAD_SETTING, place, "malformed reference to an environment variable", help);
                    complete = false;
                }
            }
        }
        complete.then(|| Resolved { value, written: text.to_owned(), from_environment, span })
    }

    fn variable(&mut self, name: &str, span: Span) -> Option<&'a str> {
        let environment = self.environment;
        let found = environment.get(name);
        if found.is_none() && self.mode == Mode::Resolve {
            let help = match nearest(name, environment.names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("set it, or write `$${{{name}}}` for the text itself"),
            };
            self.report(Code::VARIABLE_NOT_SET, span, format!("environment variable `{name}` is not set"), help);
        }
        found
    }

    /// Returns the place of a part of a string value; the whole value where escapes moved it.
    fn inside(&self, value: &str, span: Span, at: usize, length: usize) -> Span {
        let written = self.text.get(span.start..span.end).unwrap_or_default();
        let plain = written.get(1..written.len().saturating_sub(1)) == Some(value);
        if plain { Span::new(span.start + 1 + at, span.start + 1 + at + length) } else { span }
    }
}

/// Returns whether a key, perhaps a misspelt one, says that its value is a secret.
fn names_a_secret(key: &str) -> bool {
    ["password", "secret", "token"].iter().any(|word| key.to_lowercase().contains(word))
}

/// Returns the names in backticks, separated by commas.
pub(super) fn quoted_list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
