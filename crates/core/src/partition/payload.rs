//! The partition that a payload names: `partitioned dynamic key=$.a.b`.

use serde_json::Value;
use thiserror::Error;

use super::PartitionKey;

/// The longest value that can be a partition: it is part of file paths.
const LONGEST: usize = 200;

/// Why a payload names no partition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PayloadError {
    /// The path leads nowhere.
    #[error("the payload has nothing at `{path}`{near}")]
    Nothing {
        /// The path.
        path: String,
        /// `; it has …`, or empty.
        near: String,
    },
    /// The value is a list, an object or null.
    #[error("the payload has {kind} at `{path}`: expected a text, a number or a boolean")]
    NotAValue {
        /// The path.
        path: String,
        /// What is there.
        kind: &'static str,
    },
    /// The value cannot be a partition.
    #[error("{reason}, so it cannot be a partition")]
    Unusable {
        /// Why.
        reason: String,
    },
}

/// Returns the partition that `payload` names at `path` (`$.a.b`).
pub fn payload_key(payload: &Value, path: &str) -> Result<PartitionKey, PayloadError> {
    let mut at = payload;
    for part in path.trim_start_matches("$.").split('.') {
        at = at.get(part).ok_or_else(|| PayloadError::Nothing { path: path.to_owned(), near: near(at) })?;
    }
    let kind = |kind| PayloadError::NotAValue { path: path.to_owned(), kind };
    match at {
        Value::String(text) => value_key(text),
        Value::Number(number) => value_key(&number.to_string()),
        Value::Bool(value) => value_key(&value.to_string()),
        Value::Null => Err(kind("null")),
        Value::Array(_) => Err(kind("a list")),
        Value::Object(_) => Err(kind("an object")),
    }
}

/// Returns the partition of a value that was given as text.
pub fn value_key(text: &str) -> Result<PartitionKey, PayloadError> {
    let unusable = |reason: String| Err(PayloadError::Unusable { reason });
    if text.is_empty() {
        return unusable("the value is empty".to_owned());
    }
    if let Some(control) = text.chars().find(|c| c.is_control()) {
        return unusable(format!("the value holds the control character {:?}", control));
    }
    if LONGEST < text.len() {
        return unusable(format!("the value has {} bytes, more than {LONGEST}", text.len()));
    }
    Ok(PartitionKey(text.to_owned()))
}

fn near(at: &Value) -> String {
    match at.as_object() {
        Some(object) if !object.is_empty() => {
            let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
            keys.sort_unstable();
            keys.truncate(8);
            format!("; there is {}", keys.join(", "))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_a_value_or_says_what_is_there() {
        let payload = json!({"order": {"country": "DE", "n": 7, "tags": [], "none": null}});
        let found = |path: &str| payload_key(&payload, path).map_or_else(|error| error.to_string(), |key| key.0);
        assert_eq!(found("$.order.country"), "DE");
        assert_eq!(found("$.order.n"), "7");
        assert_eq!(
            found("$.order.contry"),
            "the payload has nothing at `$.order.contry`; there is country, n, none, tags"
        );
        assert_eq!(
            found("$.order.tags"),
            "the payload has a list at `$.order.tags`: expected a text, a number or a boolean"
        );
        assert_eq!(found("$.order.country.x"), "the payload has nothing at `$.order.country.x`");
    }

    #[test]
    fn values_that_no_path_could_hold_are_refused() {
        assert_eq!(value_key("").unwrap_err().to_string(), "the value is empty, so it cannot be a partition");
        assert!(value_key("a\nb").is_err() && value_key(&"x".repeat(201)).is_err());
        assert_eq!(value_key("it's/é \"x\"").unwrap().as_str(), "it's/é \"x\"");
    }
}
