//! S3: a SeaweedFS server in a folder of its own, and a prefix per test.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::server::{Server, free_ports};
use super::{fresh_name, value_of};

/// Names the shared server: `endpoint=… key=… secret=… bucket=…`.
pub const S3: &str = "PINTAIL_TEST_S3";

const BUCKET: &str = "pintail";
const KEY: &str = "pintail-key";

/// Longer than any start on a busy machine.
const START: Duration = Duration::from_secs(90);

/// A running S3 server with one bucket.
#[derive(Debug)]
pub struct S3Server {
    endpoint: String,
    secret: String,
    _server: Server,
}

/// A prefix of a bucket that nobody else uses.
#[derive(Clone, Debug)]
pub struct ObjectPrefix {
    /// `host:port`, reached without TLS, with path-style addresses.
    pub endpoint: String,
    /// The access key.
    pub key: String,
    /// Its secret.
    pub secret: String,
    /// `s3://bucket/prefix`, without a slash at its end.
    pub url: String,
}

impl S3Server {
    /// Starts the server `weed` with its data in `folder`, which must not exist.
    pub fn start(weed: &Path, folder: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(folder.join("data")).with_context(|| format!("cannot make {}", folder.display()))?;
        let secret = format!("secret{}", fresh_name());
        let accounts = folder.join("accounts.json");
        fs::write(
            &accounts,
            format!(
                r#"{{"identities": [{{"name": "test", "credentials": [{{"accessKey": "{KEY}", "secretKey": "{secret}"}}],
                   "actions": ["Admin", "Read", "Write", "List", "Tagging"]}}]}}"#
            ),
        )?;
        let ports = free_ports(8)?;
        let log = folder.join("log");
        // Its data are of no value, and its own way of ending takes ten seconds.
        let server = Server::start(weed, &arguments(folder, &accounts, &ports), "KILL", &log)?;
        let master = format!("127.0.0.1:{}.{}", ports[0], ports[1]);
        let mut started = Self { endpoint: format!("127.0.0.1:{}", ports[6]), secret, _server: server };
        started.make_bucket(weed, &master, &log)?;
        Ok(started)
    }

    /// Returns what [`S3`] names it by.
    pub fn connection(&self) -> String {
        format!("endpoint={} key={KEY} secret={} bucket={BUCKET}", self.endpoint, self.secret)
    }

    /// Makes the bucket as soon as the server answers, which shows that all its parts have started.
    fn make_bucket(&mut self, weed: &Path, master: &str, log: &Path) -> anyhow::Result<()> {
        let started = Instant::now();
        while !is_listening(&self.endpoint) || !made_bucket(weed, master)? {
            if self._server.has_ended() || START < started.elapsed() {
                let log = fs::read_to_string(log).unwrap_or_default();
                let from = log.char_indices().rev().nth(4_000).map_or(0, |(at, _)| at);
                bail!("the S3 server did not start; it said:\n{}", &log[from..]);
            }
            thread::park_timeout(Duration::from_millis(100));
        }
        Ok(())
    }
}

fn arguments(folder: &Path, accounts: &Path, ports: &[u16]) -> Vec<String> {
    const PORTS: [&str; 8] = [
        "master.port",
        "master.port.grpc",
        "volume.port",
        "volume.port.grpc",
        "filer.port",
        "filer.port.grpc",
        "s3.port",
        "s3.port.grpc",
    ];
    let mut arguments: Vec<String> = [
        "server",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=200",
        "-s3",
        "-s3.iam=false",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]
    .map(str::to_owned)
    .to_vec();
    let path = |name: &str, path: PathBuf| format!("-{name}={}", path.display());
    arguments.push(path("dir", folder.join("data")));
    arguments.push(path("s3.config", accounts.to_owned()));
    arguments.push(path("s3.localSocket", folder.join("s3.sock")));
    arguments.push(path("filer.localSocket", folder.join("filer.sock")));
    arguments.extend(PORTS.iter().zip(ports).map(|(name, port)| format!("-{name}={port}")));
    arguments
}

fn is_listening(endpoint: &str) -> bool {
    std::net::TcpStream::connect(endpoint).is_ok()
}

fn made_bucket(weed: &Path, master: &str) -> anyhow::Result<bool> {
    let mut shell = Command::new(weed);
    shell.arg("shell").arg(format!("-master={master}"));
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = shell.spawn().context("cannot start the shell of the S3 server")?;
    let line = format!("s3.bucket.create -name {BUCKET}\n");
    shell.stdin.take().context("the shell reads its input")?.write_all(line.as_bytes())?;
    let output = shell.wait_with_output()?;
    Ok(String::from_utf8_lossy(&output.stdout).contains("created bucket"))
}

impl ObjectPrefix {
    pub(super) fn fresh(server: &str) -> Self {
        let part = |key: &str| value_of(server, key).unwrap_or_else(|| panic!("{S3} names no {key}"));
        Self {
            endpoint: part("endpoint"),
            key: part("key"),
            secret: part("secret"),
            url: format!("s3://{}/{}", part("bucket"), fresh_name()),
        }
    }
}
