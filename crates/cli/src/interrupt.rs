//! Ctrl-C and SIGTERM: the first stops the run cleanly, the second ends the process at once.

use std::io::Write as _;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use indicatif::MultiProgress;
use pintail_runner::executors::Cancel;
use pintail_runner::with_sources;
use pintail_streams::service::Stop;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;
use crate::failure::Failure;

/// Lets the user stop what `cancel` reaches, from now on; what it says stands above `drawing`.
pub fn listen(cancel: Cancel, drawing: Option<MultiProgress>) -> Result<(), Failure> {
    let (runtime, signals) = signals()?;
    thread::spawn(move || runtime.block_on(obey(cancel, drawing, signals)));
    Ok(())
}

/// Lets the user end work that is done again and again: the first signal ends the round that is in progress, by `cancel`,
/// and the receiver hears of it; the second ends the process at once.
pub fn listen_between_rounds(cancel: Cancel) -> Result<Receiver<()>, Failure> {
    let (runtime, (mut interrupt, mut terminate)) = signals()?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        runtime.block_on(async {
            wait(&mut interrupt, &mut terminate).await;
            say("stopping: what is not committed is done the next time; again to exit at once");
            cancel.cancel();
            let _ = sender.send(());
            wait(&mut interrupt, &mut terminate).await;
            std::process::exit(Exit::Failed as i32);
        });
    });
    Ok(receiver)
}

/// Lets the user end consumers: the first signal ends them between two windows, the second ends the process at once.
pub fn listen_to_stop(stop: Stop, cancel: Cancel) -> Result<(), Failure> {
    let (runtime, (mut interrupt, mut terminate)) = signals()?;
    thread::spawn(move || {
        runtime.block_on(async {
            wait(&mut interrupt, &mut terminate).await;
            say("stopping: what is not committed is read again the next time; again to exit at once");
            stop.stop();
            cancel.cancel();
            wait(&mut interrupt, &mut terminate).await;
            std::process::exit(Exit::Failed as i32);
        });
    });
    Ok(())
}

fn signals() -> Result<(Runtime, (Signal, Signal)), Failure> {
    let broken =
        |error: std::io::Error| Failure::internal(format!("could not listen for Ctrl-C: {}", with_sources(&error)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let signals = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(broken)?, signal(SignalKind::terminate()).map_err(broken)?)
    };
    Ok((runtime, signals))
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
