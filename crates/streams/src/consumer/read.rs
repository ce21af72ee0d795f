//! Reading what was decided on, once, into windows.

use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use pintail_core::id::SnapshotId;
use pintail_core::sql::Ident;
use pintail_core::stream::{WindowCount, WindowLimits};
use pintail_engine::{EngineError, Session};

/// Rows that are decoded and committed together.
#[derive(Debug, Default)]
pub struct Window {
    /// The batches, with the columns that were asked for.
    pub batches: Vec<RecordBatch>,
    /// The snapshot of each row, per batch.
    pub snapshots: Vec<Vec<SnapshotId>>,
    /// How much it is.
    pub count: WindowCount,
}

/// Streams `columns` and `snapshot_id` of `relation`, a FROM item with its WHERE, and hands over one window after the other;
/// the last one is told as such, and comes also when there is no row at all.
pub fn windows<E>(
    reader: &Session,
    relation: &str,
    columns: &[String],
    limits: &WindowLimits,
    mut each: impl FnMut(Window, IsLast) -> Result<(), E>,
) -> Result<Result<(), E>, EngineError> {
    let names: Vec<String> = columns.iter().map(|name| Ident::new(name).to_string()).collect();
    let names = if names.is_empty() { String::new() } else { format!("{}, ", names.join(", ")) };
    let sql = format!("SELECT {names}CAST(snapshot_id AS BIGINT) AS _pt_snapshot\nFROM {relation}");
    let mut open = Window::default();
    let streamed = reader.stream("read the span", &sql, |batch| {
        let bytes = u64::try_from(batch.get_array_memory_size()).unwrap_or(u64::MAX);
        let rows = batch.num_rows() as u64;
        if !open.count.takes(rows, bytes, limits) {
            each(std::mem::take(&mut open), IsLast(false))?;
        }
        open.count.add(rows, bytes);
        open.push(&batch, columns.len());
        Ok(())
    })?;
    Ok(streamed.and_then(|()| each(open, IsLast(true))))
}

/// Whether no other window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IsLast(pub bool);

impl Window {
    fn push(&mut self, batch: &RecordBatch, columns: usize) {
        let ids = batch.column(columns).as_primitive::<Int64Type>();
        self.snapshots.push(ids.values().iter().map(|id| SnapshotId(*id)).collect());
        let asked: Vec<usize> = (0..columns).collect();
        self.batches.push(batch.project(&asked).expect("the columns were asked for, and the snapshot behind them"));
    }
}
