//! One statement with its values, for either backend.

use std::borrow::Cow;

use sqlx::postgres::PgArguments;
use sqlx::query::Query as SqlxQuery;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Postgres, Sqlite};

use super::retry::retry;
use super::{Database, Row, Tx};
use crate::database::transaction::Open;

/// A value: all that the schema has are texts and 64-bit integers.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Option<String>),
    Integer(Option<i64>),
}

/// A statement with its values in the order of its placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    sql: Cow<'static, str>,
    values: Vec<Value>,
}

/// Returns the statement `sql`, which is our own text; what a user wrote is bound.
pub(crate) fn query(sql: impl Into<Cow<'static, str>>) -> Query {
    Query { sql: sql.into(), values: Vec::new() }
}

/// Makes the statement of one backend.
macro_rules! statement {
    ($query:expr) => {{
        let sql = match &$query.sql {
            Cow::Borrowed(sql) => sqlx::query(*sql),
            Cow::Owned(sql) => sqlx::query(AssertSqlSafe(sql.as_str())),
        };
        $query.values.iter().fold(sql, |sql, value| match value {
            Value::Text(text) => sql.bind(text.as_deref()),
            Value::Integer(number) => sql.bind(*number),
        })
    }};
}

impl Query {
    /// Adds the value of the next placeholder.
    pub(crate) fn bind(mut self, value: impl Into<Value>) -> Self {
        self.values.push(value.into());
        self
    }

    #[cfg(test)]
    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    /// Sends it in `tx` and returns how many rows it changed.
    pub(crate) async fn execute(self, tx: &mut Tx) -> Result<u64, sqlx::Error> {
        match tx.open() {
            Open::Sqlite(tx) => Ok(self.sqlite().execute(&mut **tx).await?.rows_affected()),
            Open::Postgres(tx) => {
                let query = self.storable();
                Ok(query.postgres().execute(&mut **tx).await?.rows_affected())
            }
        }
    }

    /// Returns its rows in `tx`.
    pub(crate) async fn fetch_all(self, tx: &mut Tx) -> Result<Vec<Row>, sqlx::Error> {
        match tx.open() {
            Open::Sqlite(tx) => self.sqlite().fetch_all(&mut **tx).await.map(of_sqlite),
            Open::Postgres(tx) => {
                let query = self.storable();
                query.postgres().fetch_all(&mut **tx).await.map(of_postgres)
            }
        }
    }

    /// Returns its row in `tx`, if there is one.
    pub(crate) async fn fetch_optional(self, tx: &mut Tx) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.fetch_all(tx).await?.into_iter().next())
    }

    /// Returns its row in `tx`.
    pub(crate) async fn fetch_one(self, tx: &mut Tx) -> Result<Row, sqlx::Error> {
        self.fetch_optional(tx).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// Returns its rows by a connection of its own; again when the connection was lost, since reading changes nothing.
    pub(crate) async fn read_all(self, database: &Database) -> Result<Vec<Row>, sqlx::Error> {
        match database {
            Database::Sqlite(pools) => self.sqlite().fetch_all(&pools.readers).await.map(of_sqlite),
            Database::Postgres(pool) => {
                let query = self.storable();
                retry(|| async { query.postgres().fetch_all(pool).await.map(of_postgres) }).await
            }
        }
    }

    /// Returns its row by a connection of its own, if there is one.
    pub(crate) async fn read_optional(self, database: &Database) -> Result<Option<Row>, sqlx::Error> {
        Ok(self.read_all(database).await?.into_iter().next())
    }

    fn sqlite(&self) -> SqlxQuery<'_, Sqlite, SqliteArguments> {
        statement!(self)
    }

    fn postgres(&self) -> SqlxQuery<'_, Postgres, PgArguments> {
        statement!(self)
    }

    /// Returns the statement with what Postgres can hold: its texts have no NUL, so one becomes the replacement character.
    fn storable(mut self) -> Self {
        for value in &mut self.values {
            if let Value::Text(Some(text)) = value
                && text.contains('\0')
            {
                *text = text.replace('\0', "\u{fffd}");
            }
        }
        self
    }
}

fn of_sqlite(rows: Vec<sqlx::sqlite::SqliteRow>) -> Vec<Row> {
    rows.into_iter().map(Row::Sqlite).collect()
}

fn of_postgres(rows: Vec<sqlx::postgres::PgRow>) -> Vec<Row> {
    rows.into_iter().map(Row::Postgres).collect()
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(Some(text.to_owned()))
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Value::Text(Some(text.clone()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(Some(text))
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Value::Text(text.map(str::to_owned))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Integer(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Value::Integer(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Integer(Some(number.into()))
    }
}
