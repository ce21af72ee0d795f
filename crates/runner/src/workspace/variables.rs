//! `--var name=value`: another value for a declared variable, of the declared kind.

use pintail_core::diagnostic::nearest;
use thiserror::Error;

use super::config::{Config, Variable};

/// An override that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VariableError {
    /// No `=`.
    #[error("`{text}` is not `name=value`")]
    NotAPair {
        /// What was given.
        text: String,
    },
    /// No such variable.
    #[error("there is no variable `{name}`{hint}")]
    Unknown {
        /// What was named.
        name: String,
        /// `; did you mean …`, or where it is declared.
        hint: String,
    },
    /// A value of another kind.
    #[error("`{name}` is {kind}, and `{value}` is none")]
    Kind {
        /// The variable.
        name: String,
        /// Its kind.
        kind: &'static str,
        /// What was given.
        value: String,
    },
}

impl Config {
    /// Gives a variable another value; `text` is `name=value`.
    pub fn set_variable(&mut self, text: &str) -> Result<(), VariableError> {
        let (name, value) = text.split_once('=').ok_or_else(|| VariableError::NotAPair { text: text.to_owned() })?;
        let name = name.trim();
        let Some(declared) = self.vars.get_mut(name) else {
            let hint = match nearest(name, self.vars.keys().map(String::as_str)) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => format!("; declare it in pintail.toml: `[vars]` `{name} = …`"),
            };
            return Err(VariableError::Unknown { name: name.to_owned(), hint });
        };
        let wrong = |kind| VariableError::Kind { name: name.to_owned(), kind, value: value.to_owned() };
        *declared = match declared {
            Variable::Text(_) => Variable::Text(value.to_owned()),
            Variable::Integer(_) => Variable::Integer(value.parse().map_err(|_| wrong("a whole number"))?),
            Variable::Float(_) => Variable::Float(value.parse().map_err(|_| wrong("a number"))?),
            Variable::Boolean(_) => Variable::Boolean(value.parse().map_err(|_| wrong("`true` or `false`"))?),
        };
        Ok(())
    }
}

impl Variable {
    /// Returns the value as scripts get it.
    pub fn text(&self) -> String {
        match self {
            Variable::Text(text) => text.clone(),
            Variable::Integer(number) => number.to_string(),
            Variable::Float(number) => number.to_string(),
            Variable::Boolean(flag) => flag.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn an_override_has_the_kind_of_what_is_declared() {
        let mut config = Config::embedded(Path::new("/p"));
        config.vars.insert("country".into(), Variable::Text("DE".into()));
        config.vars.insert("days".into(), Variable::Integer(7));
        config.vars.insert("full".into(), Variable::Boolean(false));
        let mut set = |text: &str| config.set_variable(text).map_err(|error| error.to_string());
        assert_eq!(set("country=a=b"), Ok(()));
        assert_eq!(set("days=x").unwrap_err(), "`days` is a whole number, and `x` is none");
        assert_eq!(set("full=yes").unwrap_err(), "`full` is `true` or `false`, and `yes` is none");
        assert_eq!(set("contry=x").unwrap_err(), "there is no variable `contry`; did you mean `country`?");
        assert_eq!(set("country").unwrap_err(), "`country` is not `name=value`");
        assert_eq!(config.vars["country"], Variable::Text("a=b".into()));
    }
}
