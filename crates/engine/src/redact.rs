//! The one redactor: every engine error, log line and stored statement passes it before anyone sees it.
//!
//! It replaces known secret values in all the spellings in which they appear (raw, SQL-escaped, URL-encoded), and
//! passwords in connection strings that nobody registered.

use std::sync::Arc;

const MASK: &str = "***";

/// Replaces secrets in text; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    // The values are wrapped so that `{:?}` of a Redactor prints none.
    spellings: Arc<Vec<Spelling>>,
}

struct Spelling(String);

impl std::fmt::Debug for Spelling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(MASK)
    }
}

impl Redactor {
    /// Returns a redactor for `secrets`; empty ones are ignored.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut spellings: Vec<String> = Vec::new();
        for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
            spellings.push(secret.to_owned());
            spellings.push(secret.replace('\'', "''"));
            spellings.push(secret.replace('\\', "\\\\").replace('\'', "\\'"));
            spellings.push(secret.replace('"', "\\\""));
            spellings.push(url_encoded(secret));
        }
        // Longest first, so that a spelling that holds another is replaced whole.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.dedup();
        Self { spellings: Arc::new(spellings.into_iter().map(Spelling).collect()) }
    }

    /// Returns `text` with every known secret and every password of a connection string replaced by `***`.
    pub fn redact(&self, text: &str) -> String {
        let mut redacted = text.to_owned();
        for Spelling(spelling) in self.spellings.iter() {
            if redacted.contains(spelling.as_str()) {
                redacted = redacted.replace(spelling.as_str(), MASK);
            }
        }
        mask_url_passwords(&mask_key_values(&redacted))
    }
}

fn url_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// Masks the value of `password=…` and its kin up to the next space or quote.
fn mask_key_values(text: &str) -> String {
    const KEYS: [&str; 4] = ["password=", "passwd=", "secret=", "pwd="];
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((start, key)) =
        KEYS.iter().filter_map(|key| Some((lower[at..].find(key)? + at, *key))).min_by_key(|(start, _)| *start)
    {
        let value = start + key.len();
        let quoted = text[value..].starts_with('\'');
        let body = value + usize::from(quoted);
        let end = text[body..]
            .find(|c: char| if quoted { c == '\'' } else { c.is_whitespace() || matches!(c, '\'' | '"' | '&' | ';') })
            .map_or(text.len(), |length| body + length);
        out.push_str(&text[at..body]);
        if body < end {
            out.push_str(MASK);
        }
        at = end;
    }
    out.push_str(&text[at..]);
    out
}

/// Masks the password of `scheme://user:password@host`.
fn mask_url_passwords(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme) = rest.find("://") {
        let authority = scheme + 3;
        let end = rest[authority..]
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"'))
            .map_or(rest.len(), |length| authority + length);
        let credentials = rest[authority..end].rfind('@').and_then(|at| {
            let colon = rest[authority..authority + at].find(':')?;
            Some((authority + colon + 1, authority + at))
        });
        match credentials {
            Some((from, to)) => {
                out.push_str(&rest[..from]);
                out.push_str(MASK);
                out.push_str(&rest[to..end]);
            }
            None => out.push_str(&rest[..end]),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::Redactor;

    #[test]
    fn a_secret_never_survives_in_any_spelling() {
        let secret = "hun'ter 2/\"x\"";
        let redactor = Redactor::new([secret]);
        for text in [
            secret.to_owned(),
            format!("CREATE SECRET (KEY '{}')", secret.replace('\'', "''")),
            "s3://a?key=hun%27ter%202%2F%22x%22".to_owned(),
            format!("{redactor:?}"),
        ] {
            let redacted = redactor.redact(&text);
            assert!(!redacted.contains("ter"), "{redacted}");
        }
    }

    #[test]
    fn unregistered_passwords_of_connection_strings_are_masked() {
        let redactor = Redactor::default();
        assert_eq!(redactor.redact("host=db password=hunter2 dbname=x"), "host=db password=*** dbname=x");
        assert_eq!(redactor.redact("PASSWORD='a b' x"), "PASSWORD='***' x");
        assert_eq!(redactor.redact("postgres://u:p@h/db and http://h:80/x"), "postgres://u:***@h/db and http://h:80/x");
        assert_eq!(redactor.redact("nothing here"), "nothing here");
    }
}
