//! One DuckDB instance: opened in memory, checked, limited, with its extensions loaded once.
//!
//! An instance belongs to one worker slot: aliases are instance-wide, so two steps with different pins need two
//! instances. Installing and loading by itself is switched off; nothing reaches the network.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use duckdb::{Config, Connection};
use pintail_core::sql::Literal;

use crate::batches::Shelf;
use crate::error::EngineError;
use crate::native::{DUCKDB_VERSION, Extension, ExtensionFolders, checked};
use crate::object_store::{self, ObjectStore};
use crate::redact::Redactor;
use crate::session::Session;

/// How an instance is set up.
#[derive(Clone, Debug, Default)]
pub struct InstanceOptions {
    /// Where extension files lie.
    pub extensions: ExtensionFolders,
    /// What will be needed: loaded while the instance opens when all these files were checked before, which takes no time
    /// then. Everything else is loaded, and checked, when it is needed.
    pub loads: Vec<Extension>,
    /// The most memory, in bytes; DuckDB's own default (80 % of the machine) when absent.
    pub memory_limit: Option<u64>,
    /// Worker threads; all cores when absent.
    pub threads: Option<usize>,
    /// Where spilled data goes.
    pub temp_directory: Option<PathBuf>,
    /// The most spilled data, in bytes.
    pub temp_limit: Option<u64>,
    /// Relative paths in SQL are relative to this folder.
    pub project_root: Option<PathBuf>,
    /// Object stores that lakes and scripts may reach.
    pub object_stores: Vec<ObjectStore>,
    /// Whether scripts reach object stores from the start.
    pub reaches_objects: bool,
    /// Passes every message and statement.
    pub redactor: Redactor,
}

/// An open DuckDB instance.
pub struct Instance {
    connection: Connection,
    options: InstanceOptions,
    loaded: RefCell<BTreeSet<Extension>>,
    settled: RefCell<BTreeSet<String>>,
    shelf: Shelf,
}

impl Instance {
    /// Opens an instance and checks the library's version.
    pub fn open(options: InstanceOptions) -> Result<Self, EngineError> {
        let fail = |error: duckdb::Error| EngineError::statement("open DuckDB", "", &error, &options.redactor);
        let mut config = Config::default()
            .with("autoinstall_known_extensions", "false")
            .and_then(|config| config.with("autoload_known_extensions", "false"))
            .and_then(|config| config.with("preserve_insertion_order", "false"))
            .map_err(fail)?;
        let settings = [
            ("memory_limit", options.memory_limit.map(|bytes| format!("{bytes}B"))),
            ("threads", options.threads.map(|threads| threads.max(1).to_string())),
            ("temp_directory", options.temp_directory.as_ref().map(|path| path.display().to_string())),
        ];
        for (name, value) in settings {
            if let Some(value) = value {
                config = config.with(name, value).map_err(fail)?;
            }
        }
        let is_checked =
            |extension: &Extension| options.extensions.find(*extension).is_ok_and(|path| checked::has_passed(&path));
        let skips_check = !options.loads.is_empty() && options.loads.iter().all(is_checked);
        if skips_check {
            config = config.with("allow_unsigned_extensions", "true").map_err(fail)?;
        }
        let connection = Connection::open_in_memory_with_flags(config).map_err(fail)?;
        let found: String = connection.query_row("SELECT version()", [], |row| row.get(0)).map_err(fail)?;
        if found != DUCKDB_VERSION {
            return Err(EngineError::LibraryVersion { found, wanted: DUCKDB_VERSION });
        }
        if let Some(bytes) = options.temp_limit {
            // Given while opening it is shown by current_setting, and not kept to.
            let sql = format!("SET GLOBAL max_temp_directory_size = '{bytes}B'");
            connection.execute_batch(&sql).map_err(fail)?;
        }
        let shelf = Shelf::default();
        shelf.register(&connection).map_err(fail)?;
        let instance = Self { connection, options, loaded: RefCell::default(), settled: RefCell::default(), shelf };
        if skips_check {
            for extension in &instance.options.loads {
                instance.load(*extension)?;
            }
            // There is no way back while an instance is open: what scripts load is checked.
            instance.settle("check signatures from now on", "SET GLOBAL allow_unsigned_extensions = false")?;
        }
        if instance.options.reaches_objects {
            instance.reach_stores()?;
        }
        Ok(instance)
    }

    /// Loads `extension` unless this instance has it.
    pub fn load(&self, extension: Extension) -> Result<(), EngineError> {
        if self.loaded.borrow().contains(&extension) {
            return Ok(());
        }
        let path = self.options.extensions.find(extension)?;
        let sql = format!("LOAD {}", Literal::new(path.display().to_string()));
        self.connection.execute_batch(&sql).map_err(|error| EngineError::ExtensionBroken {
            path: path.clone(),
            message: match EngineError::statement("load an extension", &sql, &error, &self.options.redactor) {
                EngineError::Statement(failure) => failure.message.message,
                other => other.to_string(),
            },
        })?;
        if !checked::has_passed(&path) {
            checked::remember(&path);
        }
        self.loaded.borrow_mut().insert(extension);
        Ok(())
    }

    /// Sends settings or secrets of the whole instance, once.
    pub(crate) fn settle(&self, purpose: &'static str, sql: &str) -> Result<(), EngineError> {
        if self.settled.borrow().contains(sql) {
            return Ok(());
        }
        let redactor = &self.options.redactor;
        let sent = self.connection.execute_batch(sql);
        sent.map_err(|error| EngineError::statement(purpose, sql, &error, redactor))?;
        self.settled.borrow_mut().insert(sql.to_owned());
        Ok(())
    }

    /// Makes sure that what lies at `url` can be reached: httpfs is loaded, and the store has its secret.
    pub fn reach(&self, url: &str) -> Result<(), EngineError> {
        if url.starts_with("s3://") && !self.options.object_stores.iter().any(|store| store.holds(url)) {
            return Err(object_store::none_for(url, &self.options.object_stores));
        }
        self.reach_stores()
    }

    fn reach_stores(&self) -> Result<(), EngineError> {
        self.load(Extension::Httpfs)?;
        for store in &self.options.object_stores {
            self.settle("give DuckDB the key of an object store", &store.secret())?;
        }
        Ok(())
    }

    /// Returns a new connection, set up as every connection is: UTC, errors as JSON.
    pub fn session(&self) -> Result<Session, EngineError> {
        let redactor = self.options.redactor.clone();
        let connection = self
            .connection
            .try_clone()
            .map_err(|error| EngineError::statement("open a connection", "", &error, &redactor))?;
        let session = Session::new(connection, redactor, self.shelf.clone());
        let mut settings = String::from("SET TimeZone = 'UTC'; SET errors_as_json = true");
        if let Some(root) = &self.options.project_root {
            settings += &format!("; SET file_search_path = {}", Literal::new(root.display().to_string()));
        }
        session.batch("set up the connection", &settings)?;
        Ok(session)
    }

    /// Returns the options that the instance was opened with.
    pub fn options(&self) -> &InstanceOptions {
        &self.options
    }
}
