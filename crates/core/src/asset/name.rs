//! Canonical names and paths, and the escapes that let any name stand in a URI.
//!
//! Invariant: `canonical_name` is idempotent, and `unescape(escape(name)) == name`.

use std::fmt::{self, Write as _};

use unicode_normalization::UnicodeNormalization as _;

use super::AssetError;

/// Returns `name` in NFC with ASCII letters in lower case, as DuckDB compares names.
///
/// Folding can make a letter and its combining mark composable (`H` with a line below has no composed form, `h` has),
/// and composing can make an ASCII letter (the Kelvin sign is `K`), hence the loop.
pub(super) fn canonical_name(name: &str) -> String {
    let mut current = name.to_ascii_lowercase();
    loop {
        let next = current.nfc().collect::<String>().to_ascii_lowercase();
        if next == current {
            return current;
        }
        current = next;
    }
}

/// Returns `path` without empty and `.` parts.
pub(super) fn canonical_path(path: &str) -> Result<String, AssetError> {
    let mut parts = Vec::new();
    let mut offset = 0;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                return Err(AssetError::malformed(offset, "a path cannot leave its volume with `..`"));
            }
            _ if part.chars().any(char::is_control) => {
                return Err(AssetError::malformed(offset, "a path cannot hold control characters"));
            }
            _ => parts.push(part),
        }
        offset += part.len() + 1;
    }
    if parts.is_empty() {
        return Err(AssetError::malformed(path.len(), "the path is missing"));
    }
    Ok(parts.join("/"))
}

/// A name as it stands in a URI: `%XX` for everything that would end or split it there.
pub(super) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if needs_escape(c) {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    write!(f, "%{byte:02X}")?;
                }
            } else {
                f.write_char(c)?;
            }
        }
        Ok(())
    }
}

fn needs_escape(c: char) -> bool {
    matches!(c, '/' | '.' | '?' | '#' | '%' | '"' | '\'' | '`' | ',' | '*' | '[' | ']' | '\\')
        || c.is_whitespace()
        || c.is_control()
}

/// Decodes `%XX` in `text`; the error's offset is inside `text`.
pub(super) fn unescape(text: &str) -> Result<String, AssetError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let offset = text.len() - rest.len() + at;
        let byte = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte else {
            return Err(AssetError::malformed(offset, "`%` must be followed by two hexadecimal digits")
                .with_help("write `%25` for a percent sign"));
        };
        bytes.push(byte);
        rest = &rest[at + 3..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).map_err(|_| AssetError::malformed(0, "the escapes are not UTF-8"))
}
