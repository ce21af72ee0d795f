//! Brokers: NATS with JetStream, and tansu, which speaks the protocol of Kafka and keeps its messages in memory.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::server::{Server, free_ports};

/// Names the shared NATS server by its URL.
pub const NATS: &str = "PINTAIL_TEST_NATS";

/// Names the shared broker of Kafka by `host:port`.
pub const KAFKA: &str = "PINTAIL_TEST_KAFKA";

/// Names the program of a NATS server, for tests that need one of their own.
pub const NATS_PROGRAM: &str = "PINTAIL_TEST_NATS_PROGRAM";

/// Names the program of a broker of Kafka.
pub const KAFKA_PROGRAM: &str = "PINTAIL_TEST_KAFKA_PROGRAM";

/// Longer than any start on a busy machine.
const START: Duration = Duration::from_secs(60);

/// A running NATS server with JetStream.
#[derive(Debug)]
pub struct NatsServer {
    address: String,
    _server: Server,
}

impl NatsServer {
    /// Starts the server `program` with its streams in `folder`, which must not exist.
    pub fn start(program: &Path, folder: &Path) -> anyhow::Result<Self> {
        Self::start_at(program, folder, &free_address()?, &[])
    }

    /// Starts it at `address`, with more arguments. Streams that an earlier one left in `folder` are there again.
    pub fn start_at(program: &Path, folder: &Path, address: &str, more: &[String]) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (_, port) = address.rsplit_once(':').context("an address has a port")?;
        let store = folder.join("streams").display().to_string();
        let arguments = ["-a", "127.0.0.1", "-p", port, "-js", "-sd", &store].map(str::to_owned);
        let arguments: Vec<String> = arguments.into_iter().chain(more.iter().cloned()).collect();
        let mut server = Server::start(program, &arguments, "KILL", &folder.join("log"))?;
        wait_for(&mut server, address, &folder.join("log"))?;
        Ok(Self { address: address.to_owned(), _server: server })
    }

    /// Returns what [`NATS`] names it by.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }
}

/// A running broker of Kafka.
#[derive(Debug)]
pub struct KafkaServer {
    address: String,
    _server: Server,
}

impl KafkaServer {
    /// Starts the broker `tansu`, whose log goes to `folder`, which must not exist.
    pub fn start(tansu: &Path, folder: &Path) -> anyhow::Result<Self> {
        let address = free_address()?;
        Self::start_at(tansu, folder, &address, &address)
    }

    /// Starts it at `address`; clients are told that its partitions are at `advertised`.
    pub fn start_at(tansu: &Path, folder: &Path, address: &str, advertised: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let arguments = [
            "broker",
            "--silent",
            "--listener-url",
            &format!("tcp://{address}"),
            "--advertised-listener-url",
            &format!("tcp://{advertised}"),
            "--storage-engine",
            "memory://tansu/",
        ];
        let mut server = Server::start(tansu, &arguments.map(str::to_owned), "KILL", &folder.join("log"))?;
        wait_for(&mut server, address, &folder.join("log"))?;
        Ok(Self { address: address.to_owned(), _server: server })
    }

    /// Returns what [`KAFKA`] names it by.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Returns an address of this machine at which nobody listens.
pub(super) fn free_address() -> anyhow::Result<String> {
    let ports = free_ports(1)?;
    Ok(format!("127.0.0.1:{}", ports[0]))
}

fn wait_for(server: &mut Server, address: &str, log: &Path) -> anyhow::Result<()> {
    let started = Instant::now();
    while TcpStream::connect(address).is_err() {
        if server.has_ended() || START < started.elapsed() {
            bail!("the broker did not start; it said:\n{}", fs::read_to_string(log).unwrap_or_default());
        }
        thread::park_timeout(Duration::from_millis(20));
    }
    Ok(())
}
