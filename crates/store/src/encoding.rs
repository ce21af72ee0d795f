//! How values become columns and back: times as microseconds, JSON as text, states as words.
//!
//! Every decode that fails is a `ColumnDecode` error that names the column.

use std::error::Error;
use std::fmt;

use chrono::{DateTime, Utc};
use pintail_core::partition::{PartitionKey, Window};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A closed set of states that is stored as words.
pub(crate) trait Word: Copy + 'static {
    const ALL: &'static [Self];
    fn word(self) -> &'static str;
}

/// Declares an enum whose variants are stored, printed and read back as the given words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Returns the word that stands for the state in the store and in output.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl $crate::encoding::Word for $name {
            const ALL: &'static [Self] = &[$($name::$variant,)*];

            fn word(self) -> &'static str {
                self.as_str()
            }
        }
    };
}
pub(crate) use words;

/// Returns `at` as it is stored.
pub(crate) fn micros(at: DateTime<Utc>) -> i64 {
    at.timestamp_micros()
}

/// Returns a count as it is stored.
pub(crate) fn count(value: u64) -> i64 {
    i64::try_from(value).expect("no table has 2^63 rows")
}

/// Returns `value` as JSON text.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("stored shapes have string keys and no failing serialiser")
}

/// Typed reads of one row by column name.
pub(crate) trait Fields {
    fn text(&self, column: &'static str) -> Result<String, sqlx::Error>;
    fn optional_text(&self, column: &'static str) -> Result<Option<String>, sqlx::Error>;
    fn integer(&self, column: &'static str) -> Result<i64, sqlx::Error>;
    fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, sqlx::Error>;

    fn number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T, sqlx::Error> {
        let value = self.integer(column)?;
        T::try_from(value).map_err(|_| undecodable(column, format!("{value} is out of range")))
    }

    fn optional_number<T: TryFrom<i64>>(&self, column: &'static str) -> Result<Option<T>, sqlx::Error> {
        let Some(value) = self.optional_integer(column)? else { return Ok(None) };
        T::try_from(value).map(Some).map_err(|_| undecodable(column, format!("{value} is out of range")))
    }

    fn time(&self, column: &'static str) -> Result<DateTime<Utc>, sqlx::Error> {
        instant(column, self.integer(column)?)
    }

    fn optional_time(&self, column: &'static str) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
        self.optional_integer(column)?.map(|value| instant(column, value)).transpose()
    }

    fn state<T: Word>(&self, column: &'static str) -> Result<T, sqlx::Error> {
        parse_word(column, &self.text(column)?)
    }

    fn optional_state<T: Word>(&self, column: &'static str) -> Result<Option<T>, sqlx::Error> {
        self.optional_text(column)?.map(|text| parse_word(column, &text)).transpose()
    }

    fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, sqlx::Error> {
        parse_json(column, &self.text(column)?)
    }

    fn optional_json<T: DeserializeOwned>(&self, column: &'static str) -> Result<Option<T>, sqlx::Error> {
        self.optional_text(column)?.map(|text| parse_json(column, &text)).transpose()
    }

    fn partition(&self) -> Result<Option<PartitionKey>, sqlx::Error> {
        Ok(self.optional_text("partition")?.map(PartitionKey))
    }

    fn window(&self) -> Result<Option<Window>, sqlx::Error> {
        let start = self.optional_time("window_start")?;
        let end = self.optional_time("window_end")?;
        Ok(start.zip(end).map(|(start, end)| Window { start, end }))
    }
}

fn instant(column: &'static str, value: i64) -> Result<DateTime<Utc>, sqlx::Error> {
    DateTime::from_timestamp_micros(value).ok_or_else(|| undecodable(column, format!("{value} is no instant")))
}

fn parse_word<T: Word>(column: &'static str, text: &str) -> Result<T, sqlx::Error> {
    let found = T::ALL.iter().copied().find(|state| state.word() == text);
    found.ok_or_else(|| undecodable(column, format!("unknown word `{text}`")))
}

fn parse_json<T: DeserializeOwned>(column: &'static str, text: &str) -> Result<T, sqlx::Error> {
    serde_json::from_str(text).map_err(|source| undecodable(column, source))
}

fn undecodable(column: &'static str, source: impl Into<Box<dyn Error + Send + Sync>> + fmt::Display) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: source.into() }
}
