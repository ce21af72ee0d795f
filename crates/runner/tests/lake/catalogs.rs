//! Where the lakes of test projects lie: in the project's folder, or, so that the same tests show the same behaviour
//! there, on Postgres (`PINTAIL_TEST_CATALOG=postgres`) and in an object store (`PINTAIL_TEST_DATA=s3`).
//!
//! `cargo xtask test` runs the suite each way. A project says nothing about it: what its configuration means is moved after
//! it was read, so that a test's text is the same everywhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pintail_core::id::LakeName;
use pintail_engine::{LakeLocation, PostgresLocation};
use pintail_runner::workspace::{Catalog, DataPath, Environment, ObjectStore, Project, load_project};
use pintail_testkit::services::{Database, ObjectPrefix, database, object_prefix};
use secrecy::SecretString;
use sqlx::Connection as _;

/// Beside the project's own files, so that a process started for a test finds the same places.
const PLACES: &str = ".places";

/// The places of one project's lakes, by lake; they go with the value.
#[derive(Default)]
pub struct Places {
    databases: BTreeMap<String, Database>,
    prefix: Option<ObjectPrefix>,
    /// The lake whose database was given, whatever the run of the tests wants.
    given: Option<String>,
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
    /// Returns places whose lake `main` lies in `database`.
    pub fn on(database: Database) -> Self {
        let databases = BTreeMap::from([("main".to_owned(), database)]);
        Self { databases, prefix: None, given: Some("main".to_owned()) }
    }

    /// Returns the database of the lake `main`.
    pub fn database(&self) -> &Database {
        &self.databases["main"]
    }

    /// Makes a place for each lake of the project in `folder` that has none yet.
    pub fn make(&mut self, folder: &Path) {
        if let Some(lake) = &self.given {
            write_database(folder, lake, &self.databases[lake]);
        }
        if !on_postgres() && !on_s3() {
            return;
        }
        let config = load_project(folder, None, &crate::harness::environment(folder)).config;
        for (name, lake) in &config.lakes {
            if on_postgres() && matches!(lake.catalog, Catalog::Sqlite { .. }) {
                let database = self.databases.entry(name.to_string()).or_insert_with(database);
                write_database(folder, name.as_str(), database);
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
    load_with(folder, &crate::harness::environment(folder))
}

/// Does the same with an environment for `${NAME}`.
pub fn load_with(folder: &Path, environment: &Environment) -> Project {
    let mut project = load_project(folder, None, environment);
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

/// Returns the lake `main` of the project in `folder` as another program finds it.
pub fn main_lake(folder: &Path) -> LakeLocation {
    let config = load(folder).config;
    let lake = config.lakes.values().next().unwrap();
    let catalog = match &lake.catalog {
        Catalog::Sqlite { path } => pintail_engine::Catalog::Sqlite(path.clone()),
        Catalog::Postgres { connection, password } => {
            pintail_engine::Catalog::Postgres(PostgresLocation::parse(connection, password.clone()).unwrap())
        }
    };
    let data = match &lake.data {
        DataPath::Local(path) => format!("{}/", path.display()),
        DataPath::Url(url) => format!("{url}/"),
    };
    LakeLocation { name: LakeName("main".to_owned()), catalog, data }
}

/// Returns the object stores of the project in `folder` as another program knows them.
pub fn object_stores(folder: &Path) -> Vec<pintail_engine::ObjectStore> {
    stores_of(&load(folder))
}

/// Returns the object stores of `project` as another program knows them.
pub fn stores_of(project: &Project) -> Vec<pintail_engine::ObjectStore> {
    let stores = project.config.object_stores.clone();
    let store = |(name, store): (String, ObjectStore)| pintail_engine::ObjectStore {
        name,
        url: store.url,
        endpoint: store.endpoint,
        region: store.region,
        url_style: store.url_style,
        use_ssl: store.use_ssl,
        key: store.key,
        secret: store.secret,
    };
    stores.into_iter().map(store).collect()
}

/// Sends `sql` to the database of the lake `main`, past everything.
pub fn sql(folder: &Path, sql: &str) {
    let [connection, password] = read(folder, "catalog.main").expect("the lake lies on Postgres");
    let part = |key: &str| connection.split(' ').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=')).unwrap();
    let options = sqlx::postgres::PgConnectOptions::new_without_pgpass()
        .host(part("host"))
        .port(part("port").parse().unwrap())
        .username(part("user"))
        .password(&password)
        .database(part("dbname"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut connection = sqlx::PgConnection::connect_with(&options).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

fn write_database(folder: &Path, lake: &str, database: &Database) {
    write(folder, &format!("catalog.{lake}"), &[&database.connection_without_password(), &database.password()]);
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
