//! Bare connections: what DuckDB's C API offers and the safe crate does not.
//!
//! They belong to one empty database in memory that lives as long as the process, so that no destructor races with its
//! end. Nothing is read or written through them; sessions of an instance are another matter.

#![expect(unsafe_code, reason = "the calls below have no safe wrapper; their handles stay inside this file")]

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use arrow::array::{Array as _, RecordBatch, StructArray};
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use duckdb::core::DataChunkHandle;
use duckdb::ffi;

/// The database of all bare connections.
struct BareDatabase(ffi::duckdb_database);

// SAFETY: DuckDB's database handle may be used from every thread.
unsafe impl Send for BareDatabase {}
// SAFETY: as above.
unsafe impl Sync for BareDatabase {}

/// A connection that is used by one thread at a time.
pub struct BareConnection(ffi::duckdb_connection);

// SAFETY: DuckDB's handles are not bound to a thread, and every use borrows mutably or holds the lock of the shared one.
unsafe impl Send for BareConnection {}

impl BareConnection {
    /// Opens one; `None` when DuckDB has no memory for it.
    pub fn open() -> Option<Self> {
        static DATABASE: OnceLock<Option<BareDatabase>> = OnceLock::new();
        let database = DATABASE.get_or_init(|| {
            let mut database = ptr::null_mut();
            // SAFETY: the out-pointer is valid.
            let opened = unsafe { ffi::duckdb_open(ptr::null(), &mut database) };
            (opened == ffi::DuckDBSuccess).then_some(BareDatabase(database))
        });
        let mut connection = ptr::null_mut();
        // SAFETY: the database is open for as long as the process lives, and the out-pointer is valid.
        let connected = unsafe { ffi::duckdb_connect(database.as_ref()?.0, &mut connection) };
        (connected == ffi::DuckDBSuccess).then_some(Self(connection))
    }

    /// Returns the one that the process shares for short questions.
    pub fn shared() -> Option<MutexGuard<'static, Self>> {
        static SHARED: OnceLock<Option<Mutex<BareConnection>>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| BareConnection::open().map(Mutex::new)).as_ref()?;
        Some(shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns how many statements are in `text`, or why it does not parse.
    pub fn count_statements(&self, text: &CStr) -> Result<usize, String> {
        let mut statements: ffi::duckdb_extracted_statements = ptr::null_mut();
        // SAFETY: the connection is open, the text is NUL-terminated, and the result is destroyed on every path.
        unsafe {
            let count = ffi::duckdb_extract_statements(self.0, text.as_ptr(), &mut statements);
            let error = match count {
                0 => ffi::duckdb_extract_statements_error(statements),
                _ => ptr::null(),
            };
            let outcome = match error.is_null() {
                true => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
                false => Err(words_at(error)),
            };
            ffi::duckdb_destroy_extracted(&mut statements);
            outcome
        }
    }
}

impl Drop for BareConnection {
    fn drop(&mut self) {
        // SAFETY: the connection was opened and is not used again.
        unsafe { ffi::duckdb_disconnect(&mut self.0) };
    }
}

/// Makes DuckDB's vectors of Arrow's columns without copying what they point to.
pub struct Converter {
    connection: BareConnection,
    schema: ffi::duckdb_arrow_converted_schema,
}

// SAFETY: like the connection, the converted schema is not bound to a thread, and every use borrows mutably.
unsafe impl Send for Converter {}

impl Converter {
    /// Opens one for batches of `schema`.
    pub fn open(schema: &Schema) -> Result<Self, String> {
        let connection = BareConnection::open().ok_or("DuckDB has no memory for a connection")?;
        let mut exported = FFI_ArrowSchema::try_from(schema).map_err(|error| error.to_string())?;
        let mut converted = ptr::null_mut();
        // SAFETY: Arrow's C structs have one layout wherever they are declared; the pointers are valid, and the schema is
        // only read.
        let error =
            unsafe { ffi::duckdb_schema_from_arrow(connection.0, ptr::from_mut(&mut exported).cast(), &mut converted) };
        refused(error)?;
        Ok(Self { connection, schema: converted })
    }

    /// Lets column `places[n]` of `output` point to the values of column `n` of `batch`, which has the converter's schema and
    /// no more rows than a vector holds.
    ///
    /// The types of `output` must be those of the schema. The memory of `batch` has to stay for as long as anybody reads
    /// `output`: DuckDB binds it to the first column only.
    pub fn show(&mut self, batch: RecordBatch, places: &[u64], output: &DataChunkHandle) -> Result<(), String> {
        let array = StructArray::from(batch).into_data();
        let (mut exported, _): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&array).map_err(|error: ArrowError| error.to_string())?;
        let mut chunk = ptr::null_mut();
        // SAFETY: the array is one of the converted schema; its ownership goes to the chunk, which DuckDB notes in the struct.
        let error = unsafe {
            let array = ptr::from_mut(&mut exported).cast();
            ffi::duckdb_data_chunk_from_arrow(self.connection.0, array, self.schema, &mut chunk)
        };
        refused(error)?;
        for (from, to) in (0..).zip(places) {
            // SAFETY: both chunks have that column, and both columns have one type.
            unsafe {
                let from = ffi::duckdb_data_chunk_get_vector(chunk, from);
                let to = ffi::duckdb_data_chunk_get_vector(output.get_ptr(), *to);
                ffi::duckdb_vector_reference_vector(to, from);
            }
        }
        // SAFETY: the chunk is not used again; what `output` refers to is counted.
        unsafe { ffi::duckdb_destroy_data_chunk(&mut chunk) };
        Ok(())
    }
}

impl Drop for Converter {
    fn drop(&mut self) {
        // SAFETY: the schema was made by DuckDB and is not used again.
        unsafe { ffi::duckdb_destroy_arrow_converted_schema(&mut self.schema) };
    }
}

/// Returns how many rows a vector holds at most.
pub fn vector_size() -> usize {
    // SAFETY: the call reads a constant.
    usize::try_from(unsafe { ffi::duckdb_vector_size() }).expect("a vector fits into memory")
}

/// Takes an error of the C API and returns its words.
fn refused(mut error: ffi::duckdb_error_data) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is valid until it is destroyed, and not used after that.
    unsafe {
        let words = match ffi::duckdb_error_data_has_error(error) {
            true => Err(words_at(ffi::duckdb_error_data_message(error))),
            false => Ok(()),
        };
        ffi::duckdb_destroy_error_data(&mut error);
        words
    }
}

/// # Safety
///
/// `text` is NUL-terminated.
unsafe fn words_at(text: *const c_char) -> String {
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
