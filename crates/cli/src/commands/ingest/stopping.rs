//! Ctrl-C and SIGTERM for a server: the first drains, the second ends the process, which loses nothing.

use pintail_runner::with_sources;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::exit::Exit;
use crate::failure::Failure;

/// Returns what becomes true when the user asks to stop. Runs on tokio.
pub fn stop_on_signal() -> Result<watch::Sender<bool>, Failure> {
    let broken =
        |error: std::io::Error| Failure::internal(format!("could not listen for Ctrl-C: {}", with_sources(&error)));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(broken)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(broken)?;
    let stop = watch::Sender::new(false);
    let stopping = stop.clone();
    tokio::spawn(async move {
        either(&mut interrupt, &mut terminate).await;
        eprintln!("stopping: what was answered lands in the lake first; again to exit at once");
        stopping.send_replace(true);
        either(&mut interrupt, &mut terminate).await;
        eprintln!("exit at once: what was answered is in the log, and lands at the next start");
        std::process::exit(Exit::Failed as i32);
    });
    Ok(stop)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
