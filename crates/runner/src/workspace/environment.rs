//! The environment that `${NAME}` refers to, as the caller read it.

use std::collections::BTreeMap;
use std::fmt;

/// Environment variables by name; Debug prints their number only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Returns the value of the variable `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the names of all variables.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(variables: T) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({} variables)", self.0.len())
    }
}

/// A part of a text that may hold `${NAME}`; offsets are bytes of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// Text that stands for itself.
    Text(&'t str),
    /// `$${`, which stands for `${`.
    Escape,
    /// `${NAME}`.
    Variable { name: &'t str, at: usize, length: usize },
    /// `${` that is not followed by a name and `}`.
    Malformed { at: usize, length: usize },
}

/// Splits `text` at its variables. Every byte of the text is in exactly one part.
pub(super) fn split_variables(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${").map(|offset| at + offset) {
        if at < found && text.as_bytes()[found - 1] == b'$' {
            push_text(&mut parts, &text[at..found - 1]);
            parts.push(Part::Escape);
            at = found + 2;
            continue;
        }
        push_text(&mut parts, &text[at..found]);
        let inside = &text[found + 2..];
        let name_length = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inside.len());
        let name = &inside[..name_length];
        let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        if is_name && inside[name_length..].starts_with('}') {
            let length = name_length + 3;
            parts.push(Part::Variable { name, at: found, length });
            at = found + length;
        } else {
            parts.push(Part::Malformed { at: found, length: 2 + name_length });
            at = found + 2 + name_length;
        }
    }
    push_text(&mut parts, &text[at..]);
    parts
}

fn push_text<'t>(parts: &mut Vec<Part<'t>>, text: &'t str) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Part::{Escape, Malformed, Text, Variable};
    use super::split_variables;

    proptest! {
        #[test]
        fn the_parts_of_any_text_make_up_the_text(text in r"([$]{0,3}[{]?[A-Z_1é]{0,2}[}]?){0,4}") {
            let written = split_variables(&text).into_iter().map(|part| match part {
                Text(text) => text.to_owned(),
                Escape => "$${".to_owned(),
                Variable { at, length, .. } | Malformed { at, length } => text[at..at + length].to_owned(),
            });
            prop_assert_eq!(written.collect::<String>(), text);
        }

        #[test]
        fn escaped_text_stands_for_itself(text in r"([^$]|[$][^${])*") {
            let read: String = split_variables(&text.replace("${", "$${")).into_iter().map(|part| match part {
                Text(text) => text,
                Escape => "${",
                Variable { .. } | Malformed { .. } => "not text",
            }).collect();
            prop_assert_eq!(read, text);
        }
    }

    #[test]
    fn variables_escapes_and_slips_are_told_apart() {
        let home = Variable { name: "HOME", at: 2, length: 7 };
        assert_eq!(split_variables("a/${HOME}/b"), [Text("a/"), home, Text("/b")]);
        assert_eq!(split_variables("$${HOME}"), [Escape, Text("HOME}")]);
        assert_eq!(split_variables("cost $5 {x} $x"), [Text("cost $5 {x} $x")]);
        assert_eq!(split_variables("x${"), [Text("x"), Malformed { at: 1, length: 2 }]);
        assert_eq!(split_variables("${A-B}"), [Malformed { at: 0, length: 3 }, Text("-B}")]);
        assert_eq!(split_variables("${1A}"), [Malformed { at: 0, length: 4 }, Text("}")]);
        let (a, b) = (Variable { name: "A", at: 0, length: 4 }, Variable { name: "B", at: 4, length: 4 });
        assert_eq!(split_variables("${A}${B}"), [a, b]);
        assert_eq!(split_variables(""), []);
    }
}
