//! One row of either backend.

use sqlx::Row as _;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::encoding::Fields;

/// One row.
#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Reads one column of whichever row it is.
macro_rules! get {
    ($row:expr, $column:expr) => {
        match $row {
            Row::Sqlite(row) => row.try_get($column),
            Row::Postgres(row) => row.try_get($column),
        }
    };
}

impl Fields for Row {
    fn text(&self, column: &'static str) -> Result<String, sqlx::Error> {
        get!(self, column)
    }

    fn optional_text(&self, column: &'static str) -> Result<Option<String>, sqlx::Error> {
        get!(self, column)
    }

    fn integer(&self, column: &'static str) -> Result<i64, sqlx::Error> {
        get!(self, column)
    }

    fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, sqlx::Error> {
        get!(self, column)
    }
}
