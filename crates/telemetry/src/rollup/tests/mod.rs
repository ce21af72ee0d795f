//! A rollup is what its base says, after any batches in any order, and after rows have gone.

mod meaning;
mod on_a_lake;
mod random;

use pintail_core::schema::Column;
use pintail_core::sql::{Ident, Statement};
use pintail_engine::{Instance, InstanceOptions, Session};
use pintail_streams::{Decoder, Drift, Rollup, Target};

use crate::decode::{CloudEventsDefault, DecoderOptions};

/// The target whose table is `table`.
fn target(table: &str) -> Target {
    let targets = CloudEventsDefault::new(DecoderOptions::default()).targets();
    targets.into_iter().find(|target| target.table == table).unwrap()
}

/// A base and its rollup in one database, written as a consumer writes them.
struct Tables<'a> {
    session: &'a Session,
    /// The base, as it stands after FROM.
    base: String,
    rollup_table: String,
    target: Target,
}

impl<'a> Tables<'a> {
    /// Makes both tables anew in `schema`, such as `"memory"."main"`.
    fn make(session: &'a Session, schema: &str, table: &str) -> Self {
        let target = target(table);
        let base = format!("{schema}.{}", target.table);
        let rollup_table = format!("{schema}.{}", target.rollup.as_ref().unwrap().table());
        let tables = Self { session, base, rollup_table, target };
        tables.run(&[
            create(&tables.base, &tables.target.columns),
            create(&tables.rollup_table, &tables.rollup().columns()),
            create("_pt_staged", &tables.target.columns),
        ]);
        tables
    }

    fn rollup(&self) -> &dyn Rollup {
        self.target.rollup.as_deref().unwrap()
    }

    fn run(&self, statements: &[Statement]) {
        self.session.run_all(statements).unwrap();
    }

    fn sql(&self, sql: String) {
        self.run(&[Statement::new("test", sql)]);
    }

    /// Writes rows, given as VALUES with the columns `columns`, in one transaction: what is new by identity, and the fold.
    fn write(&self, columns: &str, values: &str) {
        self.sql(format!("INSERT INTO _pt_staged BY NAME SELECT * FROM (VALUES {values}) AS rows({columns})"));
        let keys: Vec<String> = self.target.identity.columns.iter().map(|name| Ident::new(name).to_string()).collect();
        let same: Vec<String> = keys.iter().map(|key| format!("old.{key} IS NOT DISTINCT FROM new.{key}")).collect();
        self.sql(format!(
            "CREATE OR REPLACE TEMP TABLE _pt_fresh AS
             SELECT * FROM _pt_staged AS new
             WHERE NOT EXISTS (SELECT 1 FROM {} AS old WHERE {})
             QUALIFY row_number() OVER (PARTITION BY {}) = 1",
            self.base,
            same.join(" AND "),
            keys.join(", ")
        ));
        self.sql("BEGIN".to_owned());
        self.run(&self.rollup().fold(&self.base, "_pt_fresh", &self.rollup_table));
        self.sql(format!("INSERT INTO {} BY NAME SELECT * FROM _pt_fresh", self.base));
        self.sql("COMMIT".to_owned());
        self.sql("DELETE FROM _pt_staged".to_owned());
    }

    /// Deletes what is older than `cutoff` in one transaction, and what the rollup knows of it.
    fn retire(&self, cutoff: &str) {
        self.sql("BEGIN".to_owned());
        self.run(&self.rollup().retire(&self.base, &self.rollup_table, cutoff));
        self.sql(format!("DELETE FROM {} WHERE \"timestamp\" < {cutoff}", self.base));
        self.sql("COMMIT".to_owned());
    }

    /// Writes every row of `subject` again with other values and one row fewer, as a newer decoder might, in one transaction.
    fn decode_again(&self, subject: &str) {
        let change = match self.target.table.as_str() {
            "events" => "source = 'again'",
            _ => "value_number = coalesce(value_number, 0) + 1, loc_lat = NULL",
        };
        self.sql("BEGIN".to_owned());
        let first = format!("SELECT min(\"timestamp\") FROM {} WHERE subject = '{subject}'", self.base);
        self.sql(format!("DELETE FROM {} WHERE subject = '{subject}' AND \"timestamp\" = ({first})", self.base));
        self.sql(format!("UPDATE {} SET {change}, decoder_version = 2 WHERE subject = '{subject}'", self.base));
        let touched = format!("(SELECT DISTINCT subject, name FROM {} WHERE subject = '{subject}')", self.rollup_table);
        self.sql(format!("CREATE OR REPLACE TEMP TABLE _pt_keys AS {touched}"));
        self.run(&self.rollup().refresh(&self.base, "_pt_keys", &self.rollup_table));
        self.sql("COMMIT".to_owned());
    }

    fn drift(&self) -> Drift {
        let sql = self.rollup().check(&self.base, &self.rollup_table);
        let counts = self.session.one("check the rollup", &sql, |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]));
        let [missing, extra, different] = counts.unwrap();
        Drift { missing, extra, different }
    }

    /// Shows the rows of a query, values parted by a bar.
    fn rows(&self, sql: &str) -> String {
        let rows = self.session.query("test", sql).unwrap().text_rows().unwrap();
        let line = |row: Vec<Option<String>>| {
            row.into_iter().map(|value| value.unwrap_or_else(|| "-".to_owned())).collect::<Vec<_>>().join(" | ") + "\n"
        };
        rows.into_iter().map(line).collect()
    }
}

fn create(table: &str, columns: &[Column]) -> Statement {
    let columns: Vec<String> =
        columns.iter().map(|column| format!("{} {}", Ident::new(&column.name), column.data_type)).collect();
    let temp = if table.contains('.') { "" } else { "TEMP " };
    Statement::new("test", format!("CREATE OR REPLACE {temp}TABLE {table} ({})", columns.join(", ")))
}

fn session() -> (Instance, Session) {
    let instance = Instance::open(InstanceOptions { threads: Some(1), ..InstanceOptions::default() }).unwrap();
    let session = instance.session().unwrap();
    (instance, session)
}
