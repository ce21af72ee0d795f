//! The secret values of a configuration, for the one redactor that every output passes.

use std::collections::BTreeSet;
use std::fmt;

use secrecy::SecretString;

/// Every secret value that was read; Debug prints their number only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Returns the values, for a redactor only.
    pub fn expose(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds a value and returns it wrapped; an empty one is not a secret.
    pub(super) fn wrap(&mut self, value: &str) -> SecretString {
        self.add(value);
        SecretString::from(value)
    }

    pub(super) fn add(&mut self, value: &str) {
        if !value.is_empty() {
            self.0.insert(value.to_owned());
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({} values)", self.0.len())
    }
}
