//! Where the lakes of test projects lie: in the project's folder, or, so that the same tests show the same behaviour
//! there, on Postgres (`PINTAIL_TEST_CATALOG=postgres`) and in an object store (`PINTAIL_TEST_DATA=s3`).
//!
//! `cargo xtask test` runs the suite each way. A project says nothing about it: what its configuration means is moved after
//! it was read, so that a test's text is the same everywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pintail_runner::workspace::{Catalog, DataPath, Environment, ObjectStore, Project, load_project};
use pintail_testkit::services::{Database, ObjectPrefix, database, object_prefix};
use secrecy::SecretString;

/// Beside the project's own files, so that a process started for a test finds the same places.
const PLACES: &str = ".places";

/// The places of one project's lakes, by lake; they go with the value.
#[derive(Default)]
pub struct Places {
    databases: BTreeMap<String, Database>,
    prefix: Option<ObjectPrefix>,
}

fn is_asked(variable: &str, value: &str) -> bool {
    match std::env::var(variable) {
        Ok(found) if found == value => true,
        Ok(found) if found.is_empty() => false,
        Ok(found) => panic!("{variable} is `{found}`, which is not `{value}`"),
        Err(_) => false,
    }
}

/// Returns whether the lakes of this run lie on Postgres.
pub fn on_postgres() -> bool {
    is_asked("PINTAIL_TEST_CATALOG", "postgres")
}

/// Returns whether the data of this run lie in an object store.
pub fn on_s3() -> bool {
    is_asked("PINTAIL_TEST_DATA", "s3")
}

impl Places {
    /// Makes a place for each lake of the project in `folder` that has none yet.
    pub fn make(&mut self, folder: &Path) {
        if !on_postgres() && !on_s3() {
            return;
        }
        let config = load_project(folder, None, &Environment::default()).config;
        for (name, lake) in &config.lakes {
            if on_postgres() && matches!(lake.catalog, Catalog::Sqlite { .. }) {
                let database = self.databases.entry(name.to_string()).or_insert_with(database);
                write(
                    folder,
                    &format!("catalog.{name}"),
                    &[&database.connection_without_password(), &database.password()],
                );
            }
        }
        if on_s3() {
            let prefix = self.prefix.get_or_insert_with(object_prefix);
            write(folder, "data", &[&prefix.url, &prefix.endpoint, &prefix.key, &prefix.secret]);
        }
    }
}

/// Loads the project in `folder` with its lakes where this run wants them.
pub fn load(folder: &Path) -> Project {
    let mut project = load_project(folder, None, &Environment::default());
    for (name, lake) in &mut project.config.lakes {
        if let Some([connection, password]) = read(folder, &format!("catalog.{name}")) {
            lake.catalog = Catalog::Postgres { connection, password: Some(SecretString::from(password)) };
        }
    }
    if let Some([url, endpoint, key, secret]) = read(folder, "data") {
        for (name, lake) in &mut project.config.lakes {
            lake.data = DataPath::Url(format!("{url}/{name}"));
        }
        let store = ObjectStore {
            url,
            endpoint: Some(endpoint),
            region: None,
            url_style: Some("path".to_owned()),
            use_ssl: Some(false),
            key: Some(SecretString::from(key)),
            secret: Some(SecretString::from(secret)),
        };
        project.config.object_stores.insert("test".to_owned(), store);
    }
    project
}

fn place(folder: &Path, name: &str) -> PathBuf {
    folder.join(PLACES).join(name)
}

fn write(folder: &Path, name: &str, lines: &[&str]) {
    let place = place(folder, name);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, lines.join("\n")).unwrap();
}

fn read<const N: usize>(folder: &Path, name: &str) -> Option<[String; N]> {
    let text = std::fs::read_to_string(place(folder, name)).ok()?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    Some(lines.try_into().expect("it was written by this file"))
}
