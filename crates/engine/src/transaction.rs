//! One write transaction on one lake: begun in the lane, checked, written, stamped, committed and proved.
//!
//! Only the look-up of the stamp counts as success: a COMMIT after an aborted statement returns Ok and stores nothing.
//! Dropping an uncommitted transaction rolls it back.

use backon::BlockingRetryable as _;
use pintail_core::id::{AttemptId, SnapshotId};
use pintail_core::sql::{Ident, Literal, Statement};

use crate::classify::ErrorClass;
use crate::error::EngineError;
use crate::lake::{self, Commit, Concern, Settled};
use crate::postgres;
use crate::session::Session;

/// An open transaction.
pub struct WriteTransaction<'a> {
    session: &'a Session,
    alias: String,
    snapshot: SnapshotId,
    open: bool,
}

/// What a commit says about itself.
#[derive(Clone, Debug)]
pub struct CommitWords<'a> {
    /// The attempt that the look-up searches for; part of `extra_info`.
    pub attempt: &'a AttemptId,
    /// For people.
    pub message: &'a str,
    /// The stamp's JSON.
    pub extra_info: &'a str,
}

impl<'a> WriteTransaction<'a> {
    /// Begins a transaction on the lake attached as `alias` and fixes the snapshot that it sees. The caller holds the lane.
    pub fn begin(session: &'a Session, alias: &str) -> Result<Self, EngineError> {
        let alias = alias.to_owned();
        session.batch("begin", "BEGIN")?;
        let mut transaction = Self { session, alias, snapshot: SnapshotId(0), open: true };
        transaction.snapshot = lake::transaction_snapshot(session, &transaction.alias)?;
        Ok(transaction)
    }

    /// Returns the snapshot that the transaction sees.
    pub fn snapshot(&self) -> SnapshotId {
        self.snapshot
    }

    /// Returns the commits after `base` that may matter to `concern`.
    ///
    /// A commit that came after the transaction had fixed its snapshot may be among them: DuckLake would refuse the
    /// COMMIT for it, so it is seen a little earlier.
    pub fn commits_since(&self, base: SnapshotId, concern: &Concern) -> Result<Vec<Commit>, EngineError> {
        lake::commits_concerning(self.session, &self.alias, base, concern)
    }

    /// Runs one statement and returns its count.
    pub fn run(&self, statement: &Statement) -> Result<u64, EngineError> {
        self.session.run(statement)
    }

    /// Stamps and commits, then returns the snapshot as the lake itself gives it.
    pub fn commit(mut self, words: &CommitWords<'_>, before_commit: impl FnOnce()) -> Result<SnapshotId, EngineError> {
        self.session.run(&Statement::new(
            "stamp the commit",
            format!(
                "CALL {}.set_commit_message('pintail', {}, extra_info => {})",
                Ident::new(&self.alias),
                Literal::new(words.message),
                Literal::new(words.extra_info)
            ),
        ))?;
        before_commit();
        let sent = self.session.batch("commit", "COMMIT");
        self.open = false;
        if sent.is_err() {
            roll_back(self.session);
        }
        let found = self.look_up(words.attempt);
        match (found, sent) {
            (Ok(Some(snapshot)), Ok(())) => Ok(snapshot),
            // DuckLake takes a COMMIT without an answer for a failed one, and removes the files that it had written.
            (Ok(Some(snapshot)), Err(error)) => match self.settle(snapshot) {
                Ok(Settled::Whole) => Ok(snapshot),
                Ok(Settled::Undone) => Err(EngineError::TakenBack { snapshot, source: Box::new(error) }),
                Ok(Settled::Broken(file)) => Err(EngineError::FilesLost { snapshot, file }),
                Err(source) => {
                    Err(EngineError::OutcomeUnknown { attempt: words.attempt.to_string(), source: Box::new(source) })
                }
            },
            (Ok(None), Err(error)) => Err(error),
            (Ok(None), Ok(())) => Err(EngineError::NotCommitted { attempt: words.attempt.to_string() }),
            (Err(source), _) => {
                Err(EngineError::OutcomeUnknown { attempt: words.attempt.to_string(), source: Box::new(source) })
            }
        }
    }

    /// Looks whether a stored commit has its files, and again for a while: before that is known nothing may be repeated.
    fn settle(&self, snapshot: SnapshotId) -> Result<Settled, EngineError> {
        let settle = || lake::settle_lost(self.session, &self.alias, snapshot);
        settle.retry(postgres::patience()).when(|error: &EngineError| error.class() == ErrorClass::Transient).call()
    }

    /// Looks the attempt up, and again for a while when the catalog's server does not answer: nothing may be repeated
    /// before its outcome is known.
    fn look_up(&self, attempt: &AttemptId) -> Result<Option<SnapshotId>, EngineError> {
        let look_up = || lake::find_attempt(self.session, &self.alias, self.snapshot, attempt);
        look_up.retry(postgres::patience()).when(|error: &EngineError| error.class() == ErrorClass::Transient).call()
    }

    /// Rolls back on request.
    pub fn roll_back(mut self) {
        self.open = false;
        roll_back(self.session);
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        if self.open {
            roll_back(self.session);
        }
    }
}

/// Sends ROLLBACK; the answer that there is no transaction is expected after a failed COMMIT.
pub fn roll_back(session: &Session) {
    let Err(error) = session.batch("roll back", "ROLLBACK") else { return };
    let expected = error.failure().is_some_and(|failure| failure.message.is_no_transaction());
    if !expected {
        tracing::error!(%error, "ROLLBACK failed; the connection is dropped with its transaction");
    }
}
