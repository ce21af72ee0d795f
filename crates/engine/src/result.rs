//! Result sets on their way out: Arrow batches, and the text of their values.
//!
//! How a table is drawn is the face's business; what a value looks like as text is decided here, once.

use arrow::array::Array;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::EngineError;

/// The whole result of a bounded query.
#[derive(Clone, Debug)]
pub struct ResultSet {
    /// Names and types.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Vec<RecordBatch>,
}

impl ResultSet {
    /// Returns the column names.
    pub fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Returns the rows as text; `None` is NULL.
    pub fn text_rows(&self) -> Result<Vec<Vec<Option<String>>>, EngineError> {
        let bad = |error: arrow::error::ArrowError| EngineError::Answer {
            purpose: "print the rows",
            detail: error.to_string(),
        };
        let options = FormatOptions::default()
            .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
            .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
        let mut rows = Vec::with_capacity(self.row_count());
        for batch in &self.batches {
            let formatters = batch
                .columns()
                .iter()
                .map(|column| ArrayFormatter::try_new(column.as_ref(), &options))
                .collect::<Result<Vec<_>, _>>()
                .map_err(bad)?;
            for row in 0..batch.num_rows() {
                rows.push(
                    formatters
                        .iter()
                        .zip(batch.columns())
                        .map(|(formatter, column)| (!column.is_null(row)).then(|| formatter.value(row).to_string()))
                        .collect(),
                );
            }
        }
        Ok(rows)
    }

    /// Returns the rows as JSON objects, one per row, in order.
    pub fn json_rows(&self) -> Result<Vec<serde_json::Map<String, serde_json::Value>>, EngineError> {
        let bad = |detail: String| EngineError::Answer { purpose: "write the rows as JSON", detail };
        let mut writer = arrow::json::WriterBuilder::new()
            .with_explicit_nulls(true)
            .build::<_, arrow::json::writer::JsonArray>(Vec::new());
        for batch in &self.batches {
            writer.write(batch).map_err(|error| bad(error.to_string()))?;
        }
        writer.finish().map_err(|error| bad(error.to_string()))?;
        let bytes = writer.into_inner();
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))
    }
}
