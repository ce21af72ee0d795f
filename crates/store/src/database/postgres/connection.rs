//! Makes the store's connection options of a connection text.
//!
//! Invariant: no message repeats a value.

use pintail_core::connection::pairs;
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// Returns the options of `text` with `password`; the error says what is wrong, without a value.
pub(super) fn parse(text: &str, password: Option<&SecretString>) -> Result<PgConnectOptions, String> {
    let mut options = PgConnectOptions::new();
    for (key, value) in pairs(text).map_err(|error| error.to_string())? {
        options = with_pair(options, &key, &value)?;
    }
    Ok(match password {
        Some(password) => options.password(password.expose_secret()),
        None => options,
    })
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
        // What only libpq knows is for connections that it makes.
        _ => options,
    })
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
        check("host = db port=5433 user='a b' dbname='it\\'s'", "db 5433 a b it's");
        check("postgres://me@db:5433/pintail", "db 5433 me pintail");
        check("host=db port=5433 user=me dbname=x connect_timeout=3", "db 5433 me x");
    }

    #[test]
    fn a_mistake_is_named_without_a_value() {
        check("host=db pasword=x1", "`pasword` is no key of a Postgres connection; did you mean `password`?");
        check("host=db port=hunter2", "`port` is no port");
        check("postgres://me@db:hunter2/x", "`port` is no port");
    }
}
