//! Real servers for tests: a fresh Postgres database, a fresh S3 prefix, brokers of NATS and Kafka, and a Postgres of one's
//! own to stop and start.
//!
//! `cargo xtask test` starts one server of each kind and names them in the environment; a test takes a database
//! or a prefix of its own from them. A test that needs a server fails loudly without one: nothing is skipped.

mod brokers;
mod flaky;
mod postgres;
mod s3;
mod server;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

pub use brokers::{KAFKA, KAFKA_PROGRAM, KafkaServer, NATS, NATS_PROGRAM, NatsServer};
pub use flaky::{Fault, Flaky};
pub use postgres::{Database, POSTGRES, POSTGRES_BIN, PostgresServer, postgres_programs, quoted};
pub use s3::{ObjectPrefix, S3, S3Server};
pub use server::{Server, free_ports};

/// Returns a fresh database of the shared Postgres; it is dropped with the value.
pub fn database() -> Database {
    Database::create(&variable(POSTGRES))
}

/// Starts a Postgres for this test alone, which it may stop, kill and start.
pub fn private_postgres() -> PostgresServer {
    let programs = postgres_programs().unwrap_or_else(|| panic!("{}", advice(POSTGRES_BIN)));
    let folder = tempfile::Builder::new().prefix("pintail-postgres").tempdir().expect("a folder can be made");
    PostgresServer::start_in_own(programs, folder).expect("a Postgres can be started")
}

/// Returns a prefix of the shared S3 bucket that nobody else uses.
pub fn object_prefix() -> ObjectPrefix {
    ObjectPrefix::fresh(&variable(S3))
}

/// Returns the URL of the shared NATS server; streams and subjects of a test have names that nobody else has.
pub fn nats() -> String {
    variable(NATS)
}

/// Returns the address of the shared broker of Kafka; topics of a test have names that nobody else has.
pub fn kafka() -> String {
    variable(KAFKA)
}

/// Returns an address of this machine at which nobody listens, for a server that is started later.
pub fn free_address() -> String {
    brokers::free_address().expect("a port is free")
}

/// Starts a NATS server for this test alone at `address`, which it may stop and start again; `more` are arguments of it.
pub fn private_nats(folder: &Path, address: &str, more: &[String]) -> NatsServer {
    let program = PathBuf::from(variable(NATS_PROGRAM));
    NatsServer::start_at(&program, folder, address, more).expect("a NATS server can be started")
}

/// Starts a broker of Kafka for this test alone at `address`; clients are told that its partitions are at `advertised`.
pub fn private_kafka(folder: &Path, address: &str, advertised: &str) -> KafkaServer {
    let program = PathBuf::from(variable(KAFKA_PROGRAM));
    KafkaServer::start_at(&program, folder, address, advertised).expect("a broker of Kafka can be started")
}

/// Returns a name that no other test uses, also not in another process or an earlier run.
pub fn unique_name() -> String {
    fresh_name()
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{}", advice(name)))
}

fn advice(name: &str) -> String {
    format!("{name} is not set: run this test by `cargo xtask test <part of its name>`, which starts what it needs")
}

/// Returns a name that no other test uses, also not in another process or an earlier run.
fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    format!("pt_{since}_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Returns the value of `key` in a text of `key=value` pairs, whose values are plain or in single quotes.
fn value_of(text: &str, key: &str) -> Option<String> {
    let mut rest = text.trim_start();
    while let Some((name, after)) = rest.split_once('=') {
        let mut value = String::new();
        let is_quoted = after.starts_with('\'');
        let mut end = after.len();
        let mut chars = after.char_indices().skip(usize::from(is_quoted));
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => value.extend(chars.next().map(|(_, c)| c)),
                '\'' if is_quoted => {
                    end = at + 1;
                    break;
                }
                c if !is_quoted && c.is_whitespace() => {
                    end = at;
                    break;
                }
                c => value.push(c),
            }
        }
        if name.trim() == key {
            return Some(value);
        }
        rest = after[end..].trim_start();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{quoted, value_of};

    #[test]
    fn a_quoted_value_is_read_back() {
        let secret = r"it's \ my 'word'";
        let text = format!("host=db password={} dbname=x", quoted(secret));
        assert_eq!(value_of(&text, "password").as_deref(), Some(secret));
        assert_eq!(value_of(&text, "dbname").as_deref(), Some("x"));
        assert_eq!(value_of(&text, "port"), None);
    }
}
