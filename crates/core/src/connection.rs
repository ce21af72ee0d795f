//! Connections to Postgres as text: libpq's `key=value key='quoted value'` and URLs, taken apart.
//!
//! Invariant: no message repeats a value, which may be a password. What a connection is used for is not here.

use crate::diagnostic::nearest;

/// Why a connection text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadConnection(pub String);

/// The keys of a connection, as libpq documents them.
const KEYS: [&str; 33] = [
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "passfile",
    "service",
    "connect_timeout",
    "application_name",
    "fallback_application_name",
    "client_encoding",
    "options",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslcrl",
    "sslcrldir",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "channel_binding",
    "gssencmode",
    "krbsrvname",
    "target_session_attrs",
    "load_balance_hosts",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
];

/// Takes `text` apart: `key=value …` or `postgres://user@host:port/database?key=value`. Every key is one of libpq's, and
/// stands once.
pub fn pairs(text: &str) -> Result<Vec<(String, String)>, BadConnection> {
    let found = match text.split_once("://") {
        Some((_, rest)) => url_pairs(rest),
        None => key_values(text)?,
    };
    for (position, (key, _)) in found.iter().enumerate() {
        if !KEYS.contains(&key.as_str()) {
            let near = nearest(key, KEYS).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(BadConnection(format!("`{key}` is no key of a Postgres connection{near}")));
        }
        if found[..position].iter().any(|(other, _)| other == key) {
            return Err(BadConnection(format!("`{key}` stands twice in the connection")));
        }
    }
    Ok(found)
}

/// Splits `key=value key='quoted value'` as libpq does.
fn key_values(text: &str) -> Result<Vec<(String, String)>, BadConnection> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest
            .split_once('=')
            .filter(|(key, _)| !key.trim().contains(char::is_whitespace))
            .ok_or_else(|| BadConnection("a word has no `=`: expected `key=value`".to_owned()))?;
        let (value, after) = read_value(after.trim_start());
        pairs.push((key.trim().to_owned(), value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// Reads one value, in single quotes or up to white space, with `\` escapes; returns it and what follows.
pub fn read_value(text: &str) -> (String, &str) {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if is_quoted => return (value, &text[at + 1..]),
            c if !is_quoted && c.is_whitespace() => return (value, &text[at..]),
            c => value.push(c),
        }
    }
    (value, "")
}

/// Takes `user:password@host:port/database?key=value` apart.
fn url_pairs(rest: &str) -> Vec<(String, String)> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = place.split_once('/').unwrap_or((place, ""));
    let (account, server) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    // An IPv6 address stands in brackets, and its colons are not a port's.
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (server, ""),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let named = [("user", user), ("password", password), ("host", host), ("port", port), ("dbname", database)];
    let asked = query.split('&').filter_map(|pair| pair.split_once('='));
    named
        .into_iter()
        .chain(asked)
        .filter(|(_, value)| !value.is_empty())
        .map(|(k, v)| (k.into(), percent_decoded(v)))
        .collect()
}

/// Decodes `%41`; a `%` that is not followed by two hex digits stands for itself.
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::pairs;

    fn check(text: &str, expected: &str) {
        let found = pairs(text).map(|pairs| {
            let one = |(key, value): &(String, String)| format!("{key}={value}");
            pairs.iter().map(one).collect::<Vec<_>>().join("|")
        });
        assert_eq!(found.unwrap_or_else(|error| error.to_string()), expected, "{text}");
    }

    #[test]
    fn both_forms_are_read() {
        check("host=db dbname=lake", "host=db|dbname=lake");
        check(r#"host = db user='it\'s a' password='p\' w\\ "x'"#, r#"host=db|user=it's a|password=p' w\ "x"#);
        check(
            "postgres://us%40er:p%2Fw@db:5433/lake?sslmode=require",
            "user=us@er|password=p/w|host=db|port=5433|dbname=lake|sslmode=require",
        );
        check("postgresql://[::1]:5433/lake", "host=::1|port=5433|dbname=lake");
        check("postgres://db", "host=db");
    }

    #[test]
    fn a_mistake_is_named_without_a_value() {
        check("host=db lake", "a word has no `=`: expected `key=value`");
        check("hunter2", "a word has no `=`: expected `key=value`");
        check("host=db host=other", "`host` stands twice in the connection");
        check("host=db pasword=hunter2", "`pasword` is no key of a Postgres connection; did you mean `password`?");
        check("Host=db", "`Host` is no key of a Postgres connection; did you mean `host`?");
        check(
            "postgres://db/lake?sslmod=require",
            "`sslmod` is no key of a Postgres connection; did you mean `sslmode`?",
        );
    }
}
