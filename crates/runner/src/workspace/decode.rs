//! Reads `pintail.toml` into a [`Config`], section by section.
//!
//! Invariant: the result is always complete; what could not be read has its default and a diagnostic. Profiles that are
//! not selected, and values that the selected one overrides, are checked for shape, but their variables may be unset.

pub(super) mod consumer;
mod ingest;
mod maintain;

use std::collections::BTreeMap;
use std::path::Path;

use chrono_tz::{TZ_VARIANTS, Tz};
use pintail_core::asset::{LakeNameError, check_lake_name};
use pintail_core::diagnostic::{Code, Diagnostic, nearest};
use pintail_core::id::{LakeName, ProjectName};
use pintail_core::source::Span;
use pintail_engine::PostgresLocation;
use secrecy::SecretString;

use super::catalog::{Catalog, Location, StoreUrl, classify, split_password};
use super::config::{
    Broker, BrokerKind, Config, DataPath, Datatable, Deferred, Lake, ObjectStore, RunConfig, Setting, Variable, Volume,
};
use super::environment::Environment;
use super::not_yet;
use super::reader::{Mode, Reader, Resolved, quoted_list};
use super::size::ByteSize;
use super::toml_tree::{self, Node, Table, Value};

/// The name of the configuration file in the project root.
pub const CONFIG_FILE: &str = "pintail.toml";

/// Sections that a file and a profile may have; brokers follow from [`BrokerKind::ALL`].
const SECTIONS: [&str; 12] = [
    "project",
    "lake",
    "store",
    "run",
    "maintain",
    "consumer",
    "ingest",
    "datatable",
    "object_store",
    "volume",
    "vars",
    "packages",
];

/// What an object store has.
const STORE_KEYS: [&str; 7] = ["url", "endpoint", "region", "url_style", "use_ssl", "key", "secret"];

/// Names that scripts already know with a `$`.
const RESERVED_VARIABLES: [&str; 5] =
    ["partition", "partition_start", "partition_end", "upstream_snapshot", "first_run"];

/// From how many bytes a variable that comes from the environment may be a secret; shorter ones, such as a country, are
/// no secrets, and hiding them would hide half of every output.
const SHORTEST_SECRET_VARIABLE: usize = 8;

/// What a configuration is read with.
#[derive(Clone, Copy, Debug)]
pub struct ConfigSource<'a> {
    /// The project root, which relative paths are below.
    pub root: &'a Path,
    /// The selected profile.
    pub profile: Option<&'a str>,
    /// What `${NAME}` refers to.
    pub environment: &'a Environment,
}

/// Reads the text of `pintail.toml` (`None`: there is no such file) with everything that is wrong in it.
pub fn read_config(text: Option<&str>, source: &ConfigSource<'_>) -> (Config, Vec<Diagnostic>) {
    let mut reader = Reader::new(text.unwrap_or_default(), source.environment);
    let (mut base, errors) = toml_tree::parse(text.unwrap_or_default());
    for error in errors {
        reader.report(Code::TOML_SYNTAX, error.span, error.message, "");
    }
    reader.deny_unknown(&base, CONFIG_FILE, &sections_and(&["profile"]));
    let profiles = take_profiles(&mut reader, &mut base);
    let mut decoder = Decoder { reader, root: source.root };
    for (name, profile) in &profiles {
        decoder.reader.deny_unknown(profile, &format!("[profile.{name}]"), &sections_and(&["defer", "schema_suffix"]));
        decoder.check(profile);
        decoder.check_defer(profile, &profiles);
    }
    let mut config = match selected(&mut decoder.reader, source.profile, &profiles) {
        Some((name, profile)) => {
            decoder.check(&base);
            let plain = base.clone();
            toml_tree::overlay(&mut base, profile);
            let mut config = decoder.config(&base);
            config.profile = Some(name.to_owned());
            config.deferred = decoder.deferred(name, profile, &plain, &profiles, &config);
            config
        }
        None => decoder.config(&base),
    };
    not_yet::report(&mut decoder.reader, &base, &config, &Config::embedded(source.root).run);
    let (secrets, diagnostics) = decoder.reader.finish();
    config.secrets = secrets;
    (config, diagnostics)
}

type Profiles = BTreeMap<String, Table>;

/// Takes the profiles out of the document.
fn take_profiles(reader: &mut Reader<'_>, base: &mut Table) -> Profiles {
    let profiles = reader.named_tables(base, "profile");
    let profiles = profiles.into_iter().map(|(name, _, table)| (name.to_owned(), table.clone())).collect();
    base.remove("profile");
    profiles
}

/// Returns the selected profile; an unknown one is noted.
fn selected<'p>(
    reader: &mut Reader<'_>,
    name: Option<&'p str>,
    profiles: &'p Profiles,
) -> Option<(&'p str, &'p Table)> {
    let name = name?;
    if let Some(profile) = profiles.get(name) {
        return Some((name, profile));
    }
    let message = format!("unknown profile `{name}`");
    reader.note(
        Diagnostic::new(Code::UNKNOWN_PROFILE, CONFIG_FILE, None, message).with_help(profile_help(name, profiles)),
    );
    None
}

fn profile_help(name: &str, profiles: &Profiles) -> String {
    if let Some(near) = nearest(name, profiles.keys().map(String::as_str)) {
        return format!("did you mean `{near}`?");
    }
    match profiles.len() {
        0 => format!("add a section `[profile.{name}]`"),
        _ => format!("known profiles: {}", quoted_list(&profiles.keys().map(String::as_str).collect::<Vec<_>>())),
    }
}

/// Returns the sections that a file and a profile share, and more keys.
fn sections_and(more: &[&'static str]) -> Vec<&'static str> {
    let brokers = BrokerKind::ALL.iter().map(|(_, name)| *name);
    SECTIONS.iter().copied().chain(brokers).chain(more.iter().copied()).collect()
}

/// Turns sections into values.
struct Decoder<'a> {
    reader: Reader<'a>,
    root: &'a Path,
}

impl Decoder<'_> {
    /// Checks a table whose values are not used as they stand.
    fn check(&mut self, table: &Table) {
        self.reader.mode = Mode::Check;
        self.config(table);
        self.reader.mode = Mode::Resolve;
    }

    fn check_defer(&mut self, profile: &Table, profiles: &Profiles) {
        let Some(defer) = self.reader.text(profile, "defer") else { return };
        if !profiles.contains_key(&defer.value) {
            let help = profile_help(&defer.value, profiles);
            self.reader.report(Code::UNKNOWN_PROFILE, defer.span, format!("unknown profile `{}`", defer.value), help);
        }
    }

    /// Reads what the selected profile defers to: `plain` is the file without any profile.
    fn deferred(
        &mut self,
        name: &str,
        profile: &Table,
        plain: &Table,
        profiles: &Profiles,
        config: &Config,
    ) -> Option<Deferred> {
        let suffix = self.reader.text(profile, "schema_suffix");
        let Some(defer) = self.reader.text(profile, "defer") else {
            if let Some(suffix) = suffix {
                let message = "`schema_suffix` is for a profile that defers to another";
                self.reader.report(
                    Code::BAD_SETTING,
                    suffix.span,
                    message,
                    "add `defer = \"<profile>\"`, or remove it",
                );
            }
            return None;
        };
        let other = profiles.get(&defer.value)?;
        if defer.value == name || other.contains_key("defer") {
            let message = format!("`{}` cannot be deferred to: it defers itself", defer.value);
            self.reader.report(Code::BAD_SETTING, defer.span, message, "name a profile that builds all that it reads");
            return None;
        }
        let mut there = plain.clone();
        toml_tree::overlay(&mut there, other);
        let mut elsewhere = Config::embedded(self.root);
        self.lakes(&there, &mut elsewhere);
        let is_same = |lake: &LakeName, there: &Lake| {
            config.lakes.get(lake).is_some_and(|here| here.catalog.is_same_place(&there.catalog))
        };
        let shares = elsewhere.lakes.iter().any(|(lake, there)| is_same(lake, there));
        let schema_suffix = suffix.as_ref().map_or_else(|| format!("_{name}"), |suffix| suffix.value.clone());
        let is_bad = !schema_suffix.is_empty() && !is_name(&format!("s{schema_suffix}"));
        if is_bad || (schema_suffix.is_empty() && shares) {
            let span = suffix.map_or(defer.span, |suffix| suffix.span);
            let message = match is_bad {
                true => format!("`{schema_suffix}` cannot end the name of a schema"),
                false => format!("without a suffix, `{name}` would write the tables of `{}`", defer.value),
            };
            self.reader.report(Code::BAD_SETTING, span, message, "lower-case letters, digits and `_`, such as `_dev`");
            return None;
        }
        elsewhere.lakes.retain(|lake, there| !is_same(lake, there));
        Some(Deferred { profile: defer.value, schema_suffix, lakes: elsewhere.lakes })
    }

    fn config(&mut self, table: &Table) -> Config {
        let mut config = Config::embedded(self.root);
        self.project(table, &mut config);
        self.lakes(table, &mut config);
        self.store(table, &mut config);
        self.run(table, &mut config.run);
        self.maintain(table, &mut config.maintain);
        self.consumers(table, &mut config);
        self.datatables(table, &mut config);
        self.object_stores(table, &mut config);
        self.volumes(table, &mut config);
        self.vars(table, &mut config);
        self.brokers(table, &mut config);
        self.ingest(table, &mut config);
        if let Some(packages) = self.reader.table(table, "packages") {
            config.packages = self.settings(packages);
        }
        config
    }

    fn project(&mut self, table: &Table, config: &mut Config) {
        let Some(project) = self.reader.table(table, "project") else { return };
        self.reader.deny_unknown(project, "[project]", &["name"]);
        let Some(name) = self.reader.text(project, "name") else { return };
        match name.value.trim() {
            "" => self.reader.bad_value("name", &name, "text that is not empty", "such as `name = \"shop\"`"),
            text => config.project_name = Some(ProjectName(text.to_owned())),
        }
    }

    fn lakes(&mut self, table: &Table, config: &mut Config) {
        for (name, span, lake) in self.reader.named_tables(table, "lake") {
            let place = format!("[lake.{name}]");
            self.reader.deny_unknown(lake, &place, &["catalog", "data", "password", "reader"]);
            if let Some(problem) = problem_of_lake_name(name) {
                let help = "lower-case letters, digits and `_`, such as `main` or `raw_events`";
                self.reader.report(Code::BAD_LAKE_NAME, span, format!("`{name}` cannot name a lake: {problem}"), help);
                continue;
            }
            let name = LakeName(name.to_owned());
            let lake = self.lake(&name, lake);
            config.lakes.insert(name, lake);
        }
        self.deny_shared_catalogs(table, config);
    }

    /// Two names of one catalog would be two writers that do not know of each other.
    fn deny_shared_catalogs(&mut self, table: &Table, config: &Config) {
        for (name, span, _) in self.reader.named_tables(table, "lake") {
            let Some((own, lake)) = config.lakes.iter().find(|(lake, _)| lake.as_str() == name) else { continue };
            let Catalog::Sqlite { path } = &lake.catalog else { continue };
            let same = config
                .lakes
                .iter()
                .filter(|(other, _)| *other != own)
                .find(|(_, other)| matches!(&other.catalog, Catalog::Sqlite { path: others } if others == path));
            if let Some((other, _)) = same {
                let message = format!("the lakes `{name}` and `{other}` have one catalog");
                self.reader.report(Code::BAD_SETTING, span, message, "give each lake a catalog of its own");
            }
        }
    }

    fn lake(&mut self, name: &LakeName, table: &Table) -> Lake {
        let mut lake = Lake::embedded(self.root, name);
        let password = self.reader.secret(table, "password");
        if let Some(text) = self.reader.text(table, "catalog") {
            lake.catalog = self.catalog("catalog", &text, password).unwrap_or(lake.catalog);
        }
        if let Some(text) = self.reader.text(table, "reader") {
            lake.reader = self.catalog("reader", &text, None).filter(|reader| self.is_reader(reader, &text));
        }
        if let Some(data) = self.reader.text(table, "data") {
            let is_url = data.value.contains("://");
            lake.data = if is_url { DataPath::Url(data.value) } else { DataPath::Local(self.root.join(data.value)) };
        }
        lake
    }

    /// Only a server knows roles.
    fn is_reader(&mut self, reader: &Catalog, text: &Resolved) -> bool {
        let is_postgres = matches!(reader, Catalog::Postgres { .. });
        if !is_postgres {
            let help = "write `postgres:<connection>` with a role that may read, or leave `reader` out";
            self.reader.bad_value("reader", text, "`postgres:<connection>`", help);
        }
        is_postgres
    }

    fn catalog(&mut self, key: &str, text: &Resolved, password: Option<SecretString>) -> Option<Catalog> {
        const WORKING: &str = "use `sqlite:<path>` on one machine, or `postgres:<connection>` for several";
        match classify(&text.value) {
            Location::Sqlite(path) => Some(Catalog::Sqlite { path: self.root.join(path) }),
            Location::Postgres(connection) => {
                let (connection, inner) = self.connection(key, connection, text);
                self.deny_bad_connection(key, &connection, text);
                Some(Catalog::Postgres { connection, password: password.or(inner) })
            }
            Location::DuckDbFile => {
                let message = "a DuckDB file cannot be a catalog: it takes neither a second process nor a pinned alias";
                self.reader.report(Code::CATALOG_NOT_SUPPORTED, text.span, message, WORKING);
                None
            }
            Location::Unknown => {
                self.reader.bad_value(key, text, "`sqlite:<path>` or `postgres:<connection>`", WORKING);
                None
            }
        }
    }

    /// Notes a connection that the engine could not read, or that leaves the database open.
    fn deny_bad_connection(&mut self, key: &str, connection: &str, text: &Resolved) {
        const HELP: &str = "such as `postgres:host=db user=pintail dbname=lake`";
        match PostgresLocation::parse(connection, None) {
            Ok(location) if location.database().is_some() => {}
            Ok(_) => self.reader.bad_value(key, text, "a connection that names the lake's database", HELP),
            Err(error) => self.reader.bad_value(key, text, &format!("a connection to Postgres ({error})"), HELP),
        }
    }

    /// Takes the password out of a Postgres connection; one that stands in the file is refused.
    fn connection(&mut self, key: &str, connection: &str, text: &Resolved) -> (String, Option<SecretString>) {
        self.deny_literal_password(key, text);
        let split = split_password(connection);
        let password = split.password.map(|password| self.reader.secrets.wrap(&password));
        if password.is_some() && text.from_environment {
            // The engine may print the whole text as it was given.
            self.reader.secrets.add(&text.value);
        }
        (split.connection, password)
    }

    /// Notes a password that stands in the connection as it is written in the file.
    fn deny_literal_password(&mut self, key: &str, text: &Resolved) {
        let written = text.written.strip_prefix("postgres:").filter(|rest| !rest.starts_with("//"));
        let password = split_password(written.unwrap_or(&text.written)).password;
        if password.is_some_and(|password| !password.is_empty() && !password.contains("${")) {
            self.reader.literal_secret(key, text.span);
        }
    }

    fn store(&mut self, table: &Table, config: &mut Config) {
        let Some(store) = self.reader.table(table, "store") else { return };
        self.reader.deny_unknown(store, "[store]", &["url"]);
        let Some(url) = self.reader.text(store, "url") else { return };
        match classify(&url.value) {
            Location::Sqlite(path) => config.store = StoreUrl::Sqlite { path: self.root.join(path) },
            Location::Postgres(connection) => {
                let (connection, password) = self.connection("url", connection, &url);
                config.store = StoreUrl::Postgres { connection, password };
            }
            Location::DuckDbFile | Location::Unknown => {
                let expected = "`sqlite:<path>` or `postgres:<connection>`";
                self.reader.bad_value("url", &url, expected, "write `sqlite:.pintail/store.sqlite`");
            }
        }
    }

    fn run(&mut self, table: &Table, run: &mut RunConfig) {
        const KEYS: [&str; 9] = [
            "slots",
            "memory_limit",
            "temp_directory",
            "temp_limit",
            "keep_runs",
            "keep_days",
            "timezone",
            "atomic",
            "worker",
        ];
        let Some(table) = self.reader.table(table, "run") else { return };
        self.reader.deny_unknown(table, "[run]", &KEYS);
        run.slots = self.reader.positive(table, "slots").unwrap_or(run.slots);
        run.memory_limit = self.size(table, "memory_limit").unwrap_or(run.memory_limit);
        run.temp_limit = self.size(table, "temp_limit").unwrap_or(run.temp_limit);
        run.keep_runs = self.reader.count(table, "keep_runs").unwrap_or(run.keep_runs);
        run.keep_days = self.reader.count(table, "keep_days").unwrap_or(run.keep_days);
        run.timezone = self.timezone(table).unwrap_or(run.timezone);
        run.atomic = self.reader.boolean(table, "atomic").unwrap_or(run.atomic);
        if let Some(directory) = self.reader.text(table, "temp_directory") {
            run.temp_directory = self.root.join(directory.value);
        }
        if let Some(tags) = self.reader.texts(table, "worker") {
            run.worker = tags.into_iter().map(|tag| tag.value).collect();
        }
    }

    fn size(&mut self, table: &Table, key: &str) -> Option<ByteSize> {
        let text = self.reader.text(table, key)?;
        let size = ByteSize::parse(&text.value);
        if size.is_none() {
            self.reader.bad_value(key, &text, "a size", "write a number and a unit, such as `4GB` or `512MiB`");
        }
        size
    }

    fn timezone(&mut self, table: &Table) -> Option<Tz> {
        let text = self.reader.text(table, "timezone")?;
        let zone = text.value.parse().ok();
        if zone.is_none() {
            let near = nearest(&text.value, TZ_VARIANTS.iter().map(|zone| zone.name()));
            let help = near.map_or("such as `Europe/Berlin`".to_owned(), |near| format!("did you mean `{near}`?"));
            self.reader.bad_value("timezone", &text, "an IANA time zone", &help);
        }
        zone
    }

    fn datatables(&mut self, table: &Table, config: &mut Config) {
        for (name, span, table) in self.reader.named_tables(table, "datatable") {
            self.reader.deny_unknown(table, &format!("[datatable.{name}]"), &["url"]);
            self.asset_name("datatable", name, span);
            let Some(url) = self.required(table, "datatable", name, span, "url") else { continue };
            self.deny_literal_password("url", &url);
            self.reader.secrets.add(&split_password(&url.value).password.unwrap_or_default());
            if PostgresLocation::parse(&url.value, None).is_err() {
                // The reason is not told: it may repeat a part of the secret.
                let help = "such as `postgres://app@db:5432/shop` or `host=db user=app dbname=shop`";
                self.reader.bad_value("url", &url, "a connection to Postgres", help);
                continue;
            }
            let wrapped =
                if url.from_environment { self.reader.secrets.wrap(&url.value) } else { SecretString::from(url.value) };
            config.datatables.insert(name.to_owned(), Datatable { url: wrapped });
        }
    }

    fn object_stores(&mut self, table: &Table, config: &mut Config) {
        for (name, span, table) in self.reader.named_tables(table, "object_store") {
            self.reader.deny_unknown(table, &format!("[object_store.{name}]"), &STORE_KEYS);
            self.asset_name("object_store", name, span);
            let (key, secret) = (self.reader.secret(table, "key"), self.reader.secret(table, "secret"));
            let Some(url) = self.required(table, "object_store", name, span, "url") else { continue };
            if !url.value.starts_with("s3://") {
                self.reader.bad_value("url", &url, "an `s3://` URL", "write `s3://bucket/prefix`");
                continue;
            }
            let mut text = |key: &str| self.reader.text(table, key).map(|text| text.value);
            let (endpoint, region, url_style) = (text("endpoint"), text("region"), text("url_style"));
            let use_ssl = self.reader.boolean(table, "use_ssl");
            let store = ObjectStore { url: url.value, endpoint, region, url_style, use_ssl, key, secret };
            config.object_stores.insert(name.to_owned(), store);
        }
    }

    fn volumes(&mut self, table: &Table, config: &mut Config) {
        for (name, span, table) in self.reader.named_tables(table, "volume") {
            self.reader.deny_unknown(table, &format!("[volume.{name}]"), &["path"]);
            self.asset_name("volume", name, span);
            if name == "project" {
                let message = "`project` cannot name a volume: it is the project root";
                self.reader.report(Code::BAD_SETTING, span, message, "");
                continue;
            }
            let Some(path) = self.required(table, "volume", name, span, "path") else { continue };
            config.volumes.insert(name.to_owned(), Volume { path: self.root.join(path.value) });
        }
    }

    /// Returns the text under `key`, which a used section must have; an overlay may leave it to its base.
    fn required(&mut self, table: &Table, section: &str, name: &str, span: Span, key: &str) -> Option<Resolved> {
        if self.reader.mode == Mode::Resolve && !table.contains_key(key) {
            let message = format!("`[{section}.{name}]` needs `{key}`");
            self.reader.report(Code::BAD_SETTING, span, message, format!("add `{key} = \"…\"`"));
        }
        self.reader.text(table, key)
    }

    /// Notes a name that an asset URI cannot hold.
    fn asset_name(&mut self, section: &str, name: &str, span: Span) {
        if !is_name(name) {
            let help = "lower-case letters, digits and `_`, such as `landing_2`";
            self.reader.report(
                Code::BAD_SETTING,
                span,
                format!("`{name}` cannot name an entry of `[{section}]`"),
                help,
            );
        }
    }

    fn vars(&mut self, table: &Table, config: &mut Config) {
        let Some(vars) = self.reader.table(table, "vars") else { return };
        for (name, node) in vars {
            if RESERVED_VARIABLES.contains(&name.as_str()) || !is_name(name) {
                let help = "lower-case letters, digits and `_`; not a name that Pintail sets itself";
                self.reader.report(Code::BAD_SETTING, node.key, format!("`{name}` cannot name a variable"), help);
                continue;
            }
            if let Some(value) = self.variable(node, name) {
                config.vars.insert(name.clone(), value);
            }
        }
    }

    fn variable(&mut self, node: &Node, name: &str) -> Option<Variable> {
        match node.value {
            Value::Text(_) => self.reader.text_of(node, name).map(|text| {
                if text.from_environment && SHORTEST_SECRET_VARIABLE <= text.value.len() {
                    self.reader.secrets.add(&text.value);
                }
                Variable::Text(text.value)
            }),
            Value::Integer(integer) => Some(Variable::Integer(integer)),
            Value::Float(float) => Some(Variable::Float(float)),
            Value::Boolean(boolean) => Some(Variable::Boolean(boolean)),
            Value::Other(_) | Value::Array(_) | Value::Table(_) => {
                let message = format!("`{name}` must be a string, a number or a boolean, found {}", node.value.kind());
                self.reader.report(Code::WRONG_TYPE, node.span, message, "");
                None
            }
        }
    }

    fn brokers(&mut self, table: &Table, config: &mut Config) {
        for (kind, name) in BrokerKind::ALL {
            if let Some(settings) = self.reader.table(table, name) {
                let settings = self.settings(settings);
                config.brokers.insert(kind, Broker { settings });
            }
        }
    }

    fn settings(&mut self, table: &Table) -> BTreeMap<String, Setting> {
        let settings = table.iter().filter_map(|(key, node)| Some((key.clone(), self.setting(node, key)?)));
        settings.collect()
    }

    fn setting(&mut self, node: &Node, key: &str) -> Option<Setting> {
        Some(match &node.value {
            Value::Text(_) => {
                let text = self.reader.text_of(node, key)?;
                match text.from_environment {
                    true => Setting::Secret(self.reader.secrets.wrap(&text.value)),
                    false => Setting::Text(text.value),
                }
            }
            Value::Integer(integer) => Setting::Integer(*integer),
            Value::Float(float) => Setting::Float(*float),
            Value::Boolean(boolean) => Setting::Boolean(*boolean),
            Value::Array(items) => Setting::List(items.iter().filter_map(|item| self.setting(item, key)).collect()),
            Value::Table(table) => Setting::Table(self.settings(table)),
            Value::Other(kind) => {
                self.reader.report(Code::WRONG_TYPE, node.span, format!("`{key}` cannot be {kind}"), "");
                return None;
            }
        })
    }
}

/// Returns why `name` cannot name a lake.
fn problem_of_lake_name(name: &str) -> Option<&'static str> {
    match check_lake_name(name) {
        Err(LakeNameError::Reserved(_)) => Some("the engine uses that name itself"),
        Err(LakeNameError::GeneratedPrefix) => Some("names that begin with `_pt_` are generated ones"),
        _ => (!is_name(name)).then_some("it is not a plain lower-case name"),
    }
}

/// Returns whether `name` can stand in URIs and SQL without quotes.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_') && name.chars().all(plain)
}

#[cfg(test)]
mod tests;
