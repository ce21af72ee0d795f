//! Records how an attempt ended, with everything that belongs to it, in one transaction.
//!
//! Invariant: recording twice is the same as recording once, so that a caller may repeat after a transient error. A
//! failure is never written over a commit that the lake has proved meanwhile.

use chrono::{DateTime, Utc};
use pintail_core::id::{LakeName, SnapshotId};
use pintail_core::schema::Schema;
use pintail_core::sql::stamp::StampEntry;

use crate::attempt::{AttemptEnd, AttemptStatus, RecordedStatement};
use crate::database::{Tx, query, retry};
use crate::encoding::{count, json, micros};
use crate::error::{ErrorClass, WriteContext, WriteError};
use crate::materialization::{AssetKey, MaterializationStatus, NewMaterialization, OnKnownAttempt, Origin};
use crate::open::Store;
use crate::outbox::Announcement;
use crate::schema::SeenSchema;
use crate::step::{PhaseTiming, RecordedError, StepEnd, StepStatus};
use crate::test_result::TestResult;

/// Which success it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessKind {
    /// There is a new version; subscribers are told.
    Materialized,
    /// The version that was there is confirmed; nobody is told.
    Unchanged,
}

/// The place of a version in a lake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LakeVersion {
    /// The lake.
    pub lake: LakeName,
    /// The snapshot.
    pub snapshot: SnapshotId,
}

/// An attempt that ended well.
#[derive(Clone, Debug, PartialEq)]
pub struct SuccessRecord {
    /// Which success it was.
    pub kind: SuccessKind,
    /// What the commit says about itself (what it would say, for an unchanged slice or an asset outside a lake), with
    /// the table id filled in when the commit itself could not know it. Several commits of one attempt are summed up.
    pub entry: StampEntry,
    /// Where the version is; for an unchanged slice, the version that is confirmed. `None` outside lakes.
    pub version: Option<LakeVersion>,
    /// The columns after the write; their version is the entry's.
    pub schema: Option<Schema>,
    /// When the attempt began.
    pub started: DateTime<Utc>,
    /// When it ended.
    pub finished: DateTime<Utc>,
    /// What was sent.
    pub statements: Vec<RecordedStatement>,
    /// What the tests found.
    pub tests: Vec<TestResult>,
    /// How long each phase took.
    pub timings: Vec<PhaseTiming>,
}

/// Which failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It failed before or at the commit.
    Failed,
    /// Its tests or guards took the write back.
    RolledBack,
    /// It was stopped: no materialization row, only the ends of attempt and step.
    Cancelled,
}

/// What becomes of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another attempt follows; the step stays running.
    Retry,
    /// The step ends with this attempt.
    EndStep,
}

/// An attempt that did not end well and left nothing in the lake.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureRecord {
    /// Which failure it was.
    pub kind: FailureKind,
    /// What a commit would have said; its counts are not stored.
    pub entry: StampEntry,
    /// The lake of the asset; `None` outside lakes.
    pub lake: Option<LakeName>,
    /// What a retry policy reads.
    pub class: ErrorClass,
    /// What failed.
    pub error: RecordedError,
    /// What becomes of the step.
    pub after: AfterFailure,
    /// When the attempt began.
    pub started: DateTime<Utc>,
    /// When it ended.
    pub finished: DateTime<Utc>,
    /// What was sent.
    pub statements: Vec<RecordedStatement>,
    /// What the tests found.
    pub tests: Vec<TestResult>,
    /// How long each phase took.
    pub timings: Vec<PhaseTiming>,
}

/// What `record_failure` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an attempt that failed here may have committed all the same"]
pub enum FailureRecorded {
    /// The failure is recorded.
    Recorded,
    /// The lake has proved the attempt's commit meanwhile; nothing was changed.
    CommittedMeanwhile,
}

impl Store {
    /// Records a success: materialization, schema version, test results, outbox, and the ends of attempt and step.
    pub async fn record_success(&self, record: &SuccessRecord) -> Result<(), WriteError> {
        let operation = || format!("record the success of attempt {}", record.entry.attempt);
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            self.write_version(&mut tx, record).await.writing(operation)?;
            self.replace_tests(&mut tx, &record.entry.attempt, &record.tests).await.writing(operation)?;
            let known = self.complete_attempt_and_step(&mut tx, record).await.writing(operation)?;
            if !known {
                return Err(WriteError::NotOpen { operation: operation() });
            }
            tx.commit().await.writing(operation)
        })
        .await
    }

    /// Writes what the success adds to the asset: the row, the columns, the announcement.
    async fn write_version(&self, tx: &mut Tx, record: &SuccessRecord) -> Result<(), sqlx::Error> {
        let entry = &record.entry;
        let lake = record.version.as_ref().map(|version| &version.lake);
        let snapshot = record.version.as_ref().map(|version| version.snapshot);
        let row = NewMaterialization {
            entry,
            status: record.kind.materialization_status(),
            origin: Origin::Recorded,
            lake,
            snapshot,
            started: record.started,
            finished: record.finished,
            error: None,
        };
        self.insert_materialization(tx, &row, OnKnownAttempt::Replace).await?;
        if let Some(schema) = &record.schema {
            let asset = AssetKey::from_stored(entry.asset.clone());
            let version = entry.schema_version;
            let seen = SeenSchema { asset: &asset, lake, version, from_snapshot: snapshot, schema };
            self.insert_schema_if_changed(tx, seen).await?;
        }
        if record.kind == SuccessKind::Materialized {
            let partition = entry.partition.as_ref();
            let announcement = Announcement { attempt: &entry.attempt, asset: &entry.asset, partition, snapshot };
            self.announce(tx, announcement).await?;
        }
        Ok(())
    }

    /// Ends attempt and step well, also when a stamp has ended them already; returns whether both are known.
    async fn complete_attempt_and_step(&self, tx: &mut Tx, record: &SuccessRecord) -> Result<bool, sqlx::Error> {
        let sql = "
            UPDATE attempt SET status = 'committed', finished = $3, error_class = NULL, error = NULL, statements = $4
            WHERE project = $1 AND id = $2";
        let attempt = query(sql)
            .bind(self.project_text())
            .bind(record.entry.attempt.as_str())
            .bind(micros(record.finished))
            .bind(json(&record.statements))
            .execute(tx)
            .await?;
        let sql = "
            UPDATE step SET status = $3, finished = $4, rows = $5, snapshot = $6, timings = $7, error = NULL
            WHERE project = $1 AND id = $2";
        let step = query(sql)
            .bind(self.project_text())
            .bind(record.entry.step.as_str())
            .bind(record.kind.step_status().as_str())
            .bind(micros(record.finished))
            .bind(record.entry.rows.map(count))
            .bind(record.version.as_ref().map(|version| version.snapshot.0))
            .bind(json(&record.timings))
            .execute(tx)
            .await?;
        Ok(0 < attempt && 0 < step)
    }

    /// Records a failure: the failed row beside the current version, test results, and the ends of attempt and step.
    pub async fn record_failure(&self, record: &FailureRecord) -> Result<FailureRecorded, WriteError> {
        let operation = || format!("record the failure of attempt {}", record.entry.attempt);
        retry(|| async {
            let mut tx = self.begin_write().await.writing(operation)?;
            if self.is_committed(&mut tx, record).await.writing(operation)? {
                return Ok(FailureRecorded::CommittedMeanwhile);
            }
            let found = self.write_failure(&mut tx, record).await.writing(operation)?;
            if !found {
                return Err(WriteError::NotOpen { operation: operation() });
            }
            tx.commit().await.writing(operation)?;
            Ok(FailureRecorded::Recorded)
        })
        .await
    }

    async fn is_committed(&self, tx: &mut Tx, record: &FailureRecord) -> Result<bool, sqlx::Error> {
        let sql = "
            SELECT 1 FROM materialization
            WHERE project = $1 AND attempt = $2 AND status IN ('materialized', 'unchanged')";
        let query = query(sql).bind(self.project_text()).bind(record.entry.attempt.as_str());
        Ok(query.fetch_optional(tx).await?.is_some())
    }

    /// Writes every part of a failure; returns whether the attempt is known.
    async fn write_failure(&self, tx: &mut Tx, record: &FailureRecord) -> Result<bool, sqlx::Error> {
        if let Some(status) = record.kind.materialization_status() {
            let entry = StampEntry { deleted: 0, inserted: 0, rows: None, ..record.entry.clone() };
            let row = NewMaterialization {
                entry: &entry,
                status,
                origin: Origin::Recorded,
                lake: record.lake.as_ref(),
                snapshot: None,
                started: record.started,
                finished: record.finished,
                error: Some(&record.error),
            };
            self.insert_materialization(tx, &row, OnKnownAttempt::Keep).await?;
        }
        self.replace_tests(tx, &record.entry.attempt, &record.tests).await?;
        if record.after == AfterFailure::EndStep {
            self.end_step(tx, &record.entry.step, &record.step_end()).await?;
        }
        self.end_attempt(tx, &record.entry.attempt, &record.attempt_end()).await
    }
}

impl SuccessKind {
    fn materialization_status(self) -> MaterializationStatus {
        match self {
            SuccessKind::Materialized => MaterializationStatus::Materialized,
            SuccessKind::Unchanged => MaterializationStatus::Unchanged,
        }
    }

    fn step_status(self) -> StepStatus {
        match self {
            SuccessKind::Materialized => StepStatus::Materialized,
            SuccessKind::Unchanged => StepStatus::Unchanged,
        }
    }
}

impl FailureKind {
    fn materialization_status(self) -> Option<MaterializationStatus> {
        match self {
            FailureKind::Failed => Some(MaterializationStatus::Failed),
            FailureKind::RolledBack => Some(MaterializationStatus::RolledBack),
            FailureKind::Cancelled => None,
        }
    }
}

impl FailureRecord {
    fn attempt_end(&self) -> AttemptEnd {
        let status = match self.kind {
            FailureKind::Cancelled => AttemptStatus::Cancelled,
            FailureKind::Failed | FailureKind::RolledBack => AttemptStatus::Failed,
        };
        AttemptEnd {
            status,
            finished: self.finished,
            error_class: Some(self.class),
            error: Some(self.error.message.clone()),
            statements: self.statements.clone(),
        }
    }

    fn step_end(&self) -> StepEnd {
        let status = match self.kind {
            FailureKind::Cancelled => StepStatus::Cancelled,
            FailureKind::Failed | FailureKind::RolledBack => StepStatus::Failed,
        };
        StepEnd {
            status,
            finished: self.finished,
            rows: None,
            snapshot: None,
            timings: self.timings.clone(),
            error: Some(self.error.clone()),
        }
    }
}
