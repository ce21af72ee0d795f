//! The DuckDB expression that gives a timestamp's partition, for `wm_partition(ts)`.
//!
//! The zone is named in the expression, so the result does not depend on the session.

use super::{TimeSpec, TimeUnit};
use crate::sql::Literal;

impl TimeSpec {
    /// Returns the DuckDB expression of the identity of the TIMESTAMPTZ expression `column_sql`; NULL stays NULL.
    ///
    /// Equal to [`TimeSpec::key_of`] wherever both know the zone: the engine has its own copy of the zone rules, and
    /// beyond the year 2099 rules of summer time may end in one of them. It differs by design in three corners: an
    /// offset with seconds (local mean time, before about 1920) is cut to minutes; a local date that the clock shows
    /// again after falling back over midnight (America/St_Johns at 00:01 until 2011) keeps the clock's date, while
    /// windows are contiguous; and a DATE counts as its midnight in UTC.
    pub fn sql_key_expression(&self, column_sql: &str) -> String {
        let zone = Literal::new(self.zone().name());
        let local = format!("timezone({zone}, CAST({column_sql} AS TIMESTAMPTZ))");
        let format = match self.unit {
            TimeUnit::Hour => "%Y-%m-%dT%H",
            TimeUnit::Day => "%Y-%m-%d",
            TimeUnit::Week => "%G-W%V",
            TimeUnit::Month => "%Y-%m",
        };
        let text = format!("strftime({local}, '{format}')");
        if self.unit != TimeUnit::Hour || self.is_utc() {
            return text;
        }
        let utc = format!("timezone('UTC', CAST({column_sql} AS TIMESTAMPTZ))");
        indoc::formatdoc! {"
            {text}
            || CASE WHEN {local} < {utc} THEN '-' ELSE '+' END
            || strftime(TIMESTAMP '2000-01-01' + (greatest({local}, {utc}) - least({local}, {utc})), '%H%M')"
        }
    }
}
