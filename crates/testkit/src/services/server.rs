//! A server that ends with whoever started it, however that ends.
//!
//! A small shell holds the other end of a pipe and stops the server when the pipe closes: the kernel closes it also
//! when the starter is killed, so nothing is left behind.

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

/// Runs the server, and stops it when the shell's input ends.
const WATCH: &str = r#"
    trap '' INT
    signal=$1; shift
    exec 3<&0
    "$@" </dev/null 3<&- &
    server=$!
    { cat <&3 >/dev/null; kill -"$signal" "$server"; } 2>/dev/null &
    wait "$server"
"#;

/// A running server; stopped when it is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
}

/// The user and group for programs that refuse to run as root.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unprivileged {
    user: u32,
    group: u32,
}

impl Server {
    /// Starts `program` with `arguments`, its output in the file `log`; `signal` is what stops it.
    pub fn start(program: &Path, arguments: &[String], signal: &str, log: &Path) -> anyhow::Result<Self> {
        Self::start_as(None, program, arguments, signal, log)
    }

    pub(super) fn start_as(
        user: Option<Unprivileged>,
        program: &Path,
        arguments: &[String],
        signal: &str,
        log: &Path,
    ) -> anyhow::Result<Self> {
        let output = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WATCH, "watch", signal]).arg(program).args(arguments);
        command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        become_unprivileged(&mut command, user);
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child })
    }

    /// Returns whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops it and waits for its end.
    pub fn stop(&mut self) {
        drop(self.child.stdin.take());
        // A server that is gone already has nothing to say.
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns whom to become when this process is root's: `postgres`, or else `nobody`.
pub(super) fn unprivileged() -> anyhow::Result<Option<Unprivileged>> {
    use std::os::unix::fs::MetadataExt as _;
    if std::fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let of_user = |name: &str| {
        let fields: Vec<&str> = users.lines().find(|line| line.split(':').next() == Some(name))?.split(':').collect();
        Some(Unprivileged { user: fields.get(2)?.parse().ok()?, group: fields.get(3)?.parse().ok()? })
    };
    let found = ["postgres", "nobody"].into_iter().find_map(of_user);
    found.map(Some).context("Postgres refuses to run as root, and there is neither a user postgres nor nobody")
}

/// Makes `command` run as `user`.
pub(super) fn become_unprivileged(command: &mut Command, user: Option<Unprivileged>) {
    if let Some(Unprivileged { user, group }) = user {
        command.uid(user).gid(group);
    }
}

/// Gives `path` to `user`.
pub(super) fn give(path: &Path, user: Option<Unprivileged>) -> anyhow::Result<()> {
    if let Some(Unprivileged { user, group }) = user {
        chown(path, Some(user), Some(group)).with_context(|| format!("cannot give {} away", path.display()))?;
    }
    Ok(())
}

/// Returns `count` ports of this machine that nobody uses now.
pub fn free_ports(count: usize) -> anyhow::Result<Vec<u16>> {
    // All at once, so that they differ.
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>().context("no port is free")?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}
