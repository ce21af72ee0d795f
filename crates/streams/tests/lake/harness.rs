//! A lake in a temp folder, on either kind of catalog, and short ways to ask it.

use std::path::PathBuf;

use pintail_core::id::LakeName;
use pintail_engine::fault::Faults;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, InstanceOptions, LakeLocation, PostgresLocation};
use pintail_streams::Writer;
use pintail_testkit::services::{Database, database};
use secrecy::SecretString;

/// A lake that vanishes with the test.
pub struct Lake {
    _folder: tempfile::TempDir,
    /// Where it is.
    pub location: LakeLocation,
    database: Option<Database>,
}

/// Which kind of catalog.
#[derive(Clone, Copy, Debug)]
pub enum On {
    Sqlite,
    Postgres,
}

impl Lake {
    /// Makes the place of a lake; the lake itself is made by whoever opens it first.
    pub fn new(on: On) -> Self {
        match on {
            On::Sqlite => Self::at(tempfile::tempdir().unwrap(), None),
            On::Postgres => Self::on(database()),
        }
    }

    /// Makes the place of a lake in `database`.
    pub fn on(database: Database) -> Self {
        Self::at(tempfile::tempdir().unwrap(), Some(database))
    }

    fn at(folder: tempfile::TempDir, database: Option<Database>) -> Self {
        let catalog = match &database {
            None => Catalog::Sqlite(folder.path().join("main.sqlite")),
            Some(database) => {
                let password = SecretString::from(database.password());
                let text = database.connection_without_password();
                Catalog::Postgres(PostgresLocation::parse(&text, Some(password)).unwrap())
            }
        };
        let data = format!("{}/data/", folder.path().display());
        let location = LakeLocation { name: LakeName("main".to_owned()), catalog, data };
        Self { _folder: folder, location, database }
    }

    /// Opens the lake.
    pub fn writer(&self) -> Writer {
        self.writer_with("")
    }

    /// Lets somebody `go_on` to a COMMIT that is stored and never answered; the server must be the test's own.
    pub fn lose_the_answer_of_a_commit(&self, go_on: impl FnOnce()) {
        self.database.as_ref().unwrap().lose_the_answer_of_a_commit(go_on);
    }

    /// Returns the lake, which lies on Postgres, as another process has it: the connection text tells their lanes apart.
    pub fn of_another_process(&self) -> LakeLocation {
        let database = self.database.as_ref().unwrap();
        let text = format!("{} application_name=other", database.connection_without_password());
        let place = PostgresLocation::parse(&text, Some(SecretString::from(database.password()))).unwrap();
        LakeLocation { catalog: Catalog::Postgres(place), ..self.location.clone() }
    }

    /// Opens the lake with faults, as in `stamped=panic`.
    pub fn writer_with(&self, faults: &str) -> Writer {
        Writer::open(&self.location, options(), Faults::parse(faults).unwrap()).unwrap()
    }
}

/// Returns how the instances of tests are opened.
pub fn options() -> InstanceOptions {
    let vendor = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    InstanceOptions { extensions: ExtensionFolders(vec![vendor]), threads: Some(2), ..InstanceOptions::default() }
}

/// Returns the rows of a query as text, `lake.` standing for the lake.
pub fn rows(writer: &Writer, sql: &str) -> Vec<String> {
    let result = writer.session().query("ask", &named(writer, sql)).unwrap();
    let row = |row: Vec<Option<String>>| {
        let values: Vec<String> = row.into_iter().map(|value| value.unwrap_or_else(|| "NULL".to_owned())).collect();
        values.join("|")
    };
    result.text_rows().unwrap().into_iter().map(row).collect()
}

/// Sends a statement as somebody else would, in a commit of its own.
pub fn foreign(writer: &Writer, sql: &str) {
    let lane = writer.lake().lane();
    let _pass = lane.enter().unwrap();
    writer.session().batch("write from outside", &named(writer, sql)).unwrap();
}

fn named(writer: &Writer, sql: &str) -> String {
    sql.replace("lake.", &format!("{}.", writer.alias()))
}

/// Makes the same test of each function for both kinds of catalog.
macro_rules! on_both {
    ($($name:ident)*) => {
        mod sqlite { $(#[test] fn $name() { super::$name(crate::harness::On::Sqlite); })* }
        mod postgres { $(#[test] fn $name() { super::$name(crate::harness::On::Postgres); })* }
    };
}
pub(crate) use on_both;
