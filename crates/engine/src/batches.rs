//! Record batches that SQL reads where they lie: a table function over Arrow memory.
//!
//! An appender copies each text three times and uses one thread; this copies nothing, reads only the columns that a
//! statement asks for, and feeds all threads. It is how decoded rows, raw events and dead letters get into a statement.
//!
//! Invariant: a statement holds the batches that it reads, so what DuckDB's vectors point to stays. Not here: batches that
//! DuckDB hands out (`session`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use duckdb::Connection;
use duckdb::core::{DataChunkHandle, LogicalTypeHandle, LogicalTypeId};
use duckdb::vtab::arrow::to_duckdb_logical_type_for_field;
use duckdb::vtab::{BindInfo, InitInfo, TableFunctionInfo, VTab};
use pintail_core::sql::Relation;

use crate::bare::{Converter, vector_size};

/// The table function.
pub(crate) const FUNCTION: &str = "_pt_batches";

/// The column that numbers the rows of all batches from 0, after those of the batches.
pub const PLACE: &str = "_pt_place";

type Refusal = Box<dyn std::error::Error>;

/// The batches that an instance's statements can read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shelf {
    lent: Arc<Mutex<HashMap<u64, Arc<Batches>>>>,
    last: Arc<AtomicU64>,
}

/// What was lent. Private, and yet named by the trait that DuckDB's crate has for table functions.
#[derive(Debug)]
pub(crate) struct Batches {
    /// The columns of the batches, and [`PLACE`].
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: u64,
}

/// A relation made of record batches, which can be read as often as wanted until this is dropped.
#[derive(Debug)]
pub struct Stage {
    relation: Relation,
    id: u64,
    shelf: Shelf,
}

impl Stage {
    /// Returns the temp view over the batches, with their columns and [`PLACE`].
    pub fn relation(&self) -> &Relation {
        &self.relation
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.shelf.lock().remove(&self.id);
    }
}

impl Shelf {
    /// Makes the table function known to an instance.
    pub(crate) fn register(&self, connection: &Connection) -> duckdb::Result<()> {
        connection.register_table_function_with_extra_info::<Scan, Shelf>(FUNCTION, self)
    }

    /// Lends `batches`, all of `schema`, until the stage is dropped, and returns it with the query of its view; or the
    /// column whose type cannot be lent.
    pub(crate) fn lend(
        &self,
        relation: &Relation,
        schema: &Schema,
        batches: &[RecordBatch],
    ) -> Result<(Stage, String), String> {
        if let Some(field) = schema.fields().iter().find(|field| !is_known(field.data_type())) {
            return Err(format!("the column `{}` has the Arrow type {}", field.name(), field.data_type()));
        }
        let place = Arc::new(Field::new(PLACE, DataType::Int64, false));
        let fields: Vec<_> = schema.fields().iter().cloned().chain([place]).collect();
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let lent = Batches { schema: Arc::new(Schema::new(fields)), batches: batches.to_vec(), rows };
        self.lock().insert(id, Arc::new(lent));
        Ok((Stage { relation: relation.clone(), id, shelf: self.clone() }, format!("FROM {FUNCTION}({id})")))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Batches>>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a column of this type looks the same to the safe crate, which declares it, and to DuckDB, which reads it.
fn is_known(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => is_known(item.data_type()),
        DataType::Timestamp(unit, _) => *unit == TimeUnit::Microsecond,
        other => matches!(
            other,
            DataType::Boolean
                | DataType::Int8
                | DataType::Int16
                | DataType::Int32
                | DataType::Int64
                | DataType::UInt8
                | DataType::UInt16
                | DataType::UInt32
                | DataType::UInt64
                | DataType::Float32
                | DataType::Float64
                | DataType::Date32
                | DataType::Utf8
                | DataType::Binary
        ),
    }
}

/// What a statement asked for when it was prepared.
struct Scan {
    batches: Arc<Batches>,
    /// The columns that are asked for, [`PLACE`] after those of the batches, and where each goes in the output.
    asked: Vec<usize>,
    places: Vec<u64>,
    /// What threads take turns at.
    progress: Mutex<Progress>,
}

/// The next rows, and what converts them.
struct Progress {
    batch: usize,
    row: usize,
    /// How many rows were shown.
    shown: i64,
    converter: Option<Converter>,
}

impl Scan {
    fn begin(batches: Arc<Batches>, columns: &[u64]) -> Result<Self, Refusal> {
        let width = batches.schema.fields().len() as u64;
        // A statement that needs no column at all asks for one that there is not.
        let mut known: Vec<(&u64, u64)> = columns.iter().zip(0_u64..).filter(|(column, _)| **column < width).collect();
        // DuckDB binds what a batch consists of to its first column; only the numbers are not the lent batches' own.
        known.sort_by_key(|(column, _)| **column + 1 != width);
        let (asked, places): (Vec<usize>, Vec<u64>) = known
            .into_iter()
            .map(|(column, place)| Ok((usize::try_from(*column)?, place)))
            .collect::<Result<Vec<_>, Refusal>>()?
            .into_iter()
            .unzip();
        let converter = match asked.is_empty() {
            true => None,
            false => Some(Converter::open(&batches.schema.project(&asked)?)?),
        };
        let progress = Mutex::new(Progress { batch: 0, row: 0, shown: 0, converter });
        Ok(Self { batches, asked, places, progress })
    }

    /// Shows the next rows in `output`; none when all were shown.
    fn next(&self, output: &DataChunkHandle) -> Result<(), Refusal> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = &mut *progress;
        while self.batches.batches.get(progress.batch).is_some_and(|batch| batch.num_rows() <= progress.row) {
            (progress.batch, progress.row) = (progress.batch + 1, 0);
        }
        let Some(batch) = self.batches.batches.get(progress.batch) else {
            output.set_len(0);
            return Ok(());
        };
        let count = vector_size().min(batch.num_rows() - progress.row);
        let end = progress.shown + i64::try_from(count)?;
        if let Some(converter) = &mut progress.converter {
            let numbers = || -> ArrayRef { Arc::new(Int64Array::from_iter_values(progress.shown..end)) };
            let part = batch.slice(progress.row, count);
            let column = |index: &usize| part.columns().get(*index).map_or_else(numbers, Arc::clone);
            let columns = self.asked.iter().map(column).collect();
            let part = RecordBatch::try_new(Arc::new(self.batches.schema.project(&self.asked)?), columns)?;
            converter.show(part, &self.places, output)?;
        }
        (progress.row, progress.shown) = (progress.row + count, end);
        output.set_len(count);
        Ok(())
    }
}

#[expect(unsafe_code, reason = "the crate hands out what was registered and bound as pointers")]
impl VTab for Scan {
    type InitData = Scan;
    type BindData = Arc<Batches>;

    fn bind(bind: &BindInfo) -> Result<Self::BindData, Refusal> {
        let id = bind.get_parameter(0).to_int64();
        // SAFETY: the function is registered with a shelf, and only by it.
        let shelf = unsafe { &*bind.get_extra_info::<Shelf>() };
        let batches = u64::try_from(id).ok().and_then(|id| shelf.lock().get(&id).cloned());
        let batches = batches.ok_or_else(|| format!("the record batches {id} were returned, or never lent"))?;
        for field in batches.schema.fields() {
            bind.add_result_column(field.name(), to_duckdb_logical_type_for_field(field)?);
        }
        bind.set_cardinality(batches.rows, true);
        Ok(batches)
    }

    fn init(init: &InitInfo) -> Result<Self::InitData, Refusal> {
        // SAFETY: what `bind` returned lies there for as long as the statement.
        let batches = unsafe { &*init.get_bind_data::<Self::BindData>() };
        init.set_max_threads(batches.rows.div_ceil(vector_size() as u64).max(1));
        Scan::begin(Arc::clone(batches), &init.get_column_indices())
    }

    fn func(function: &TableFunctionInfo<Self>, output: &mut DataChunkHandle) -> Result<(), Refusal> {
        function.get_init_data().next(output)
    }

    fn supports_pushdown() -> bool {
        true
    }

    fn parameters() -> Option<Vec<LogicalTypeHandle>> {
        Some(vec![LogicalTypeHandle::from(LogicalTypeId::Bigint)])
    }
}

#[cfg(test)]
mod tests;
