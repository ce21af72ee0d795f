//! The plain side: a file to which one thread appends whatever waits, with one fsync for all of it.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};

use super::event;

/// An event, and who waits for it to be on disk.
type Waiting = (Vec<u8>, SyncSender<()>);

/// Appends for `span` from `writers` threads at once and returns how many events were on disk a second.
pub fn appended_a_second(folder: &Path, writers: usize, span: Duration) -> anyhow::Result<f64> {
    fs::create_dir_all(folder)?;
    let path = folder.join("log");
    let mut file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    let (sender, waiting) = channel::<Waiting>();
    let started = Instant::now();
    let appended = thread::scope(|scope| {
        let writer = scope.spawn(move || append_all(&mut file, &waiting));
        let threads: Vec<_> = (0..writers)
            .map(|_| {
                let sender = sender.clone();
                scope.spawn(move || {
                    let mut appended = 0_u64;
                    let (answer, answered) = sync_channel(1);
                    while started.elapsed() < span {
                        let entry = (event(0).into_bytes(), answer.clone());
                        if sender.send(entry).is_err() || answered.recv().is_err() {
                            break;
                        }
                        appended += 1;
                    }
                    appended
                })
            })
            .collect();
        drop(sender);
        let appended: u64 = threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum();
        writer.join().unwrap_or_else(|_| Err(anyhow!("the writer panicked")))?;
        anyhow::Ok(appended)
    })?;
    let elapsed = started.elapsed();
    fs::remove_file(&path)?;
    Ok(appended as f64 / elapsed.as_secs_f64())
}

fn append_all(file: &mut File, waiting: &Receiver<Waiting>) -> anyhow::Result<()> {
    while let Ok(first) = waiting.recv() {
        let group: Vec<Waiting> = std::iter::once(first).chain(waiting.try_iter()).collect();
        let bytes: Vec<u8> = group.iter().flat_map(|(event, _)| event.iter().copied()).collect();
        file.write_all(&bytes)?;
        file.sync_data()?;
        for (_, answer) in group {
            // Who has stopped waiting needs no answer.
            let _ = answer.send(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gets_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let rate = appended_a_second(folder.path(), 4, Duration::from_millis(50)).unwrap();
        assert!(0.0 < rate, "{rate}");
    }
}
