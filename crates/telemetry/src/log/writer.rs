//! The one that writes the file: whatever waits when it comes round goes into one transaction, with one fsync.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, oneshot, watch};

use super::database::Database;
use super::index::Index;
use super::{AppendError, LogPosition};

/// A transaction takes so many entries, and no more after so many bytes.
const GROUP: usize = 1_024;
const GROUP_BYTES: u64 = 8 << 20;

/// What SQLite calls a disk without room.
const DISK_FULL: &str = "13";

/// An entry that waits.
#[derive(Debug)]
pub(super) struct NewEntry {
    pub(super) body: Vec<u8>,
    pub(super) records: u64,
    /// What it takes of the limit.
    pub(super) bytes: u64,
    pub(super) answer: oneshot::Sender<Result<LogPosition, AppendError>>,
}

/// What the writer is asked for.
#[derive(Debug)]
pub(super) enum Request {
    Append(NewEntry),
    Forget(LogPosition),
    /// Answered when all that came before is on disk and the file is closed.
    Close(oneshot::Sender<()>),
}

pub(super) struct Writer {
    database: Database,
    index: Arc<Mutex<Index>>,
    held: Arc<AtomicU64>,
    head: watch::Sender<LogPosition>,
    /// Entries up to here may go.
    forgettable: LogPosition,
    /// Who waits for the end.
    closing: Option<oneshot::Sender<()>>,
    /// Kept until nothing is written any more.
    lock: Arc<File>,
}

impl Writer {
    pub(super) fn new(
        database: Database,
        index: Arc<Mutex<Index>>,
        held: Arc<AtomicU64>,
        head: watch::Sender<LogPosition>,
        lock: Arc<File>,
    ) -> Self {
        Self { database, index, held, head, forgettable: LogPosition(0), closing: None, lock }
    }

    /// Serves requests until nobody can send one.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Request>) {
        let mut is_forgetting = false;
        loop {
            // What may go, goes in pieces between the groups.
            let first = match is_forgetting {
                true => queue.try_recv().ok(),
                false => match queue.recv().await {
                    Some(request) => Some(request),
                    None if self.closing.is_some() => None,
                    None => return,
                },
            };
            let group = self.gather(first, &mut queue, &mut is_forgetting);
            if !group.is_empty() {
                self.append(group).await;
            }
            if is_forgetting {
                is_forgetting = !self.forget_some().await;
            } else if let Some(closing) = self.closing.take() {
                self.database.close().await;
                drop(self.lock);
                // Who does not wait any more need not know.
                let _ = closing.send(());
                return;
            }
        }
    }

    fn gather(
        &mut self,
        first: Option<Request>,
        queue: &mut mpsc::Receiver<Request>,
        is_forgetting: &mut bool,
    ) -> Vec<NewEntry> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        let mut next = first;
        while let Some(request) = next {
            match request {
                Request::Append(entry) => {
                    bytes += entry.bytes;
                    group.push(entry);
                }
                Request::Forget(upto) => {
                    self.forgettable = self.forgettable.max(upto);
                    *is_forgetting = true;
                }
                Request::Close(answer) => {
                    self.closing = Some(answer);
                    queue.close();
                }
            }
            next = if group.len() < GROUP && bytes < GROUP_BYTES { queue.try_recv().ok() } else { None };
        }
        group
    }

    async fn append(&self, group: Vec<NewEntry>) {
        let started = Instant::now();
        let at_micros = now_micros();
        match self.database.append(&group, at_micros).await {
            Ok(first) => {
                let positions = (first.0..).map(LogPosition);
                let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
                for (entry, position) in group.iter().zip(positions.clone()) {
                    index.push(position, entry.records, entry.bytes, at_micros);
                }
                let head = index.head();
                drop(index);
                metrics::histogram!("pintail_ingest_log_commit_seconds").record(started.elapsed().as_secs_f64());
                metrics::counter!("pintail_ingest_log_commits_total").increment(1);
                metrics::gauge!("pintail_ingest_log_bytes").set(self.held.load(Ordering::Relaxed) as f64);
                for (entry, position) in group.into_iter().zip(positions) {
                    // Who has gone away needs no answer.
                    let _ = entry.answer.send(Ok(position));
                }
                self.head.send_replace(head);
            }
            Err(error) => {
                tracing::error!(%error, entries = group.len(), "the log could not be written; nothing was acknowledged");
                metrics::counter!("pintail_ingest_log_errors_total").increment(1);
                let error = match error.as_database_error().and_then(|error| error.code()) {
                    Some(code) if code == DISK_FULL => AppendError::DiskFull,
                    _ => AppendError::Broken(Arc::new(error)),
                };
                for entry in group {
                    self.held.fetch_sub(entry.bytes, Ordering::Relaxed);
                    let _ = entry.answer.send(Err(error.clone()));
                }
            }
        }
    }

    /// Removes a piece of what may go; returns whether there is no more. Room in memory is given back only with the entry.
    async fn forget_some(&self) -> bool {
        let mut is_done = true;
        match self.database.forget_some(self.forgettable).await {
            Ok(is_all) => is_done = is_all,
            // They stay, are known to be in the lake by the position there, and are asked for again by the next flush.
            Err(error) => tracing::warn!(%error, "entries that are in the lake could not be removed from the log"),
        }
        if is_done {
            let freed = self.index.lock().unwrap_or_else(PoisonError::into_inner).forget(self.forgettable);
            let held = self.held.fetch_sub(freed, Ordering::Relaxed) - freed;
            metrics::gauge!("pintail_ingest_log_bytes").set(held as f64);
        }
        is_done
    }
}

fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
