//! JSON of payloads, one level at a time, with the text of every part kept as it came.
//!
//! Where a key stands twice in an object, the first one counts. Numbers are never read before their meaning is known, so
//! no digit is lost on the way, and what cannot be used is kept byte for byte.

use std::borrow::Cow;
use std::fmt;

use pintail_core::diagnostic::nearest;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// How many characters of a value a reason repeats.
const SHOWN: usize = 60;

/// The text of a key or a string, borrowed unless it has escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The keys and values of one object.
pub struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Returns the value of `key`; the first one, when there are several.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// Returns the value of `key`, unless it is null.
    pub fn value(&self, key: &str) -> Option<&'a RawValue> {
        self.get(key).filter(|value| value.get() != "null")
    }

    /// Returns words that name the key which was perhaps meant to be `key`; none when no key is like it.
    pub fn near(&self, key: &str) -> String {
        let others = self.0.iter().map(|(other, _)| &**other).filter(|other| *other != key);
        nearest(key, others).map(|near| format!("; is it `{near}`?")).unwrap_or_default()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(4));
                while let Some(Text(key)) = map.next_key()? {
                    entries.push((key, map.next_value()?));
                }
                Ok(Object(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

/// Reads an object.
pub fn object(text: &str) -> serde_json::Result<Object<'_>> {
    serde_json::from_str(text)
}

/// Reads the elements of an array; `None` when `value` is none.
pub fn array(value: &RawValue) -> Option<Vec<&RawValue>> {
    match value.get().starts_with('[') {
        true => serde_json::from_str(value.get()).ok(),
        false => None,
    }
}

/// Reads a string; `None` when `value` is none, or one that no text can hold.
pub fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    match value.get().starts_with('"') {
        true => serde_json::from_str(value.get()).ok().map(|Text(text)| text),
        false => None,
    }
}

/// Returns whether `value` is a number.
pub fn is_number(value: &RawValue) -> bool {
    value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Returns what stands in the place of a value, for people: `none`, `null`, `true`, `the number 5`, `the text "x"`.
pub fn found(value: Option<&RawValue>) -> String {
    let Some(value) = value else { return "none".to_owned() };
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => "an object".to_owned(),
        Some(b'[') => "an array".to_owned(),
        Some(b'"') => format!("the text {}", shortened(text)),
        Some(b't' | b'f' | b'n') => text.to_owned(),
        _ => format!("the number {}", shortened(text)),
    }
}

/// Returns the first characters of a text that may be long.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_equal_keys_counts() {
        let object = object(r#"{"a": 1, "\u0061": 2, "b": 1.10}"#).unwrap();
        assert_eq!(object.get("a").map(RawValue::get), Some("1"));
        assert_eq!(object.get("b").map(RawValue::get), Some("1.10"));
        assert_eq!(object.get("A").map(RawValue::get), None);
    }

    #[test]
    fn what_was_found_is_said_in_words() {
        let object = object(r#"{"n": -1.5e3, "s": "x", "t": true, "z": null, "o": {}, "a": []}"#).unwrap();
        let found: Vec<String> = ["n", "s", "t", "z", "o", "a", "?"].map(|key| found(object.get(key))).into();
        assert_eq!(
            found,
            ["the number -1.5e3", "the text \"x\"", "true", "null", "an object", "an array", "none"].map(str::to_owned)
        );
        assert!(object.value("z").is_none());
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = "é".repeat(SHOWN + 1);
        assert_eq!(shortened(&text), format!("{}…", "é".repeat(SHOWN)));
        assert_eq!(shortened("short"), "short");
    }
}
