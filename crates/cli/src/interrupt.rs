//! Ctrl-C and SIGTERM: the first stops the run cleanly, the second ends the process at once.

use std::io::Write as _;
use std::thread;

use indicatif::MultiProgress;
use pintail_runner::executors::Cancel;
use pintail_runner::with_sources;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;
use crate::failure::Failure;

/// Lets the user stop what `cancel` reaches, from now on; what it says stands above `drawing`.
pub fn listen(cancel: Cancel, drawing: Option<MultiProgress>) -> Result<(), Failure> {
    let broken =
        |error: std::io::Error| Failure::internal(format!("could not listen for Ctrl-C: {}", with_sources(&error)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let signals = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(broken)?, signal(SignalKind::terminate()).map_err(broken)?)
    };
    thread::spawn(move || runtime.block_on(obey(cancel, drawing, signals)));
    Ok(())
}

async fn obey(cancel: Cancel, drawing: Option<MultiProgress>, (mut interrupt, mut terminate): (Signal, Signal)) {
    let say = |line| match &drawing {
        Some(drawing) => drawing.suspend(|| say(line)),
        None => say(line),
    };
    wait(&mut interrupt, &mut terminate).await;
    say("stopping: what is not committed is rolled back; again to exit at once");
    cancel.cancel();
    wait(&mut interrupt, &mut terminate).await;
    say("exit at once: what was not committed is rolled back by the lake, `pintail run` continues");
    std::process::exit(Exit::Failed as i32);
}

async fn wait(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
