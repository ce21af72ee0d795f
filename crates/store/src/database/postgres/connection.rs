//! Reads a connection text: a URL, or libpq's `key=value key='quoted value'`.
//!
//! Invariant: a key that is not understood is refused with a list of those that are, and no message repeats a value.

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The keys that are understood.
const KEYS: &str = "host, hostaddr, port, user, dbname, sslmode, sslrootcert, sslcert, sslkey";

/// Returns the options of `text` with `password`; the error says what is wrong, without a value.
pub(super) fn parse(text: &str, password: Option<&SecretString>) -> Result<PgConnectOptions, String> {
    let options = match text.contains("://") {
        true => text.parse::<PgConnectOptions>().map_err(|_| "the URL cannot be read".to_owned())?,
        false => of_pairs(text)?,
    };
    Ok(match password {
        Some(password) => options.password(password.expose_secret()),
        None => options,
    })
}

fn of_pairs(text: &str) -> Result<PgConnectOptions, String> {
    let mut options = PgConnectOptions::new();
    for (key, value) in pairs(text)? {
        options = with_pair(options, &key.to_ascii_lowercase(), &value)?;
    }
    Ok(options)
}

fn with_pair(options: PgConnectOptions, key: &str, value: &str) -> Result<PgConnectOptions, String> {
    Ok(match key {
        "host" if value.starts_with('/') => options.socket(value),
        "host" | "hostaddr" => options.host(value),
        "port" => options.port(value.parse().map_err(|_| "`port` is no port".to_owned())?),
        "user" => options.username(value),
        "password" => options.password(value),
        "dbname" => options.database(value),
        "sslmode" => {
            options.ssl_mode(value.parse::<PgSslMode>().map_err(|_| {
                "`sslmode` is none of disable, allow, prefer, require, verify-ca, verify-full".to_owned()
            })?)
        }
        "sslrootcert" => options.ssl_root_cert(value),
        "sslcert" => options.ssl_client_cert(value),
        "sslkey" => options.ssl_client_key(value),
        // What they change for libpq has no meaning here.
        "connect_timeout" | "application_name" | "target_session_attrs" => options,
        other => return Err(format!("`{other}` is not understood; the keys are {KEYS}")),
    })
}

/// Splits the text as libpq does.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or("a key has no `=`: expected `key=value`")?;
        let (value, after) = read_value(after.trim_start())?;
        pairs.push((key.trim().to_owned(), value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// Reads one value, in single quotes or up to white space, with `\\` escapes; returns it and what follows.
fn read_value(text: &str) -> Result<(String, &str), String> {
    let is_quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if is_quoted => return Ok((value, &text[at + 1..])),
            c if !is_quoted && c.is_whitespace() => return Ok((value, &text[at..])),
            c => value.push(c),
        }
    }
    match is_quoted {
        true => Err("a quoted value has no end".to_owned()),
        false => Ok((value, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn check(text: &str, expected: &str) {
        let found = parse(text, None).map(|options| {
            format!(
                "{} {} {} {}",
                options.get_host(),
                options.get_port(),
                options.get_username(),
                options.get_database().unwrap_or("-")
            )
        });
        assert_eq!(found.unwrap_or_else(|error| error), expected, "{text}");
    }

    #[test]
    fn both_forms_are_read() {
        check("host=db port=5433 user=me dbname=pintail", "db 5433 me pintail");
        check("HOST = db port=5433 user='a b' dbname='it\\'s'", "db 5433 a b it's");
        check("postgres://me@db:5433/pintail", "db 5433 me pintail");
        check("host=db port=5433 user=me dbname=x connect_timeout=3", "db 5433 me x");
    }

    #[test]
    fn a_mistake_is_named_without_a_value() {
        check("host=db pasword=hunter2", &format!("`pasword` is not understood; the keys are {}", super::KEYS));
        check("host=db port=hunter2", "`port` is no port");
        check("host", "a key has no `=`: expected `key=value`");
        check("host='db", "a quoted value has no end");
        check("postgres://me@db:hunter2/x", "the URL cannot be read");
    }
}
