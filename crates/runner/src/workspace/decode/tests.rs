//! `pintail.toml` as whole files: values, positions and findings.

mod ingest;

use std::fmt::Write as _;
use std::path::Path;

use expect_test::{Expect, expect};
use pintail_core::diagnostic::{Code, Diagnostic};
use pintail_core::source::LineIndex;
use secrecy::ExposeSecret as _;

use super::{Config, ConfigSource, read_config};
use crate::workspace::{Catalog, DataPath, Environment, StoreUrl};

fn environment() -> Environment {
    Environment::from_iter([
        ("PG_PASSWORD", "s3cr3t"),
        ("APP_DATABASE_URL", "postgres://app:hunter2@db/app"),
        ("S3_KEY", "AKIA17"),
        ("S3_SECRET", "shh"),
        ("EMPTY", ""),
        ("DATA", "/mnt/data"),
    ])
}

/// Reads `text`; what has no effect yet is a test of its own.
fn read(text: &str, profile: Option<&str>) -> (Config, Vec<Diagnostic>) {
    let (config, mut diagnostics) = read_all(text, profile);
    diagnostics.retain(|found| found.code != Code::NOT_YET);
    (config, diagnostics)
}

fn read_all(text: &str, profile: Option<&str>) -> (Config, Vec<Diagnostic>) {
    read_config(Some(text), &ConfigSource { root: Path::new("/p"), profile, environment: &environment() })
}

/// Prints `line:column CODE text at the place: message (help)`.
fn print(text: &str, diagnostics: &[Diagnostic]) -> String {
    let index = LineIndex::new(text);
    let mut out = String::new();
    for found in diagnostics {
        assert_eq!(found.path, "pintail.toml");
        let place = found.span.map_or("file".to_owned(), |span| {
            let (line, column) = index.line_column(span.start);
            format!("{line}:{column}")
        });
        let marked = found.span.map(|span| format!(" {}", &text[span.start..span.end])).unwrap_or_default();
        let help = found.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        writeln!(out, "{place} {}{marked}: {}{help}", found.code, found.message).unwrap();
    }
    out
}

/// Checks what is wrong with `text`.
fn check(text: &str, expected: Expect) {
    let (_, diagnostics) = read(text, None);
    expected.assert_eq(&print(text, &diagnostics));
}

/// Returns the configuration of a text in which nothing is wrong.
fn good(text: &str, profile: Option<&str>) -> Config {
    let (config, diagnostics) = read(text, profile);
    assert_eq!(print(text, &diagnostics), "");
    config
}

fn lake(config: &Config, name: &str) -> String {
    let (_, lake) = config.lakes.iter().find(|(lake, _)| lake.as_str() == name).unwrap();
    let catalog = match &lake.catalog {
        Catalog::Sqlite { path } => format!("sqlite {}", path.display()),
        Catalog::Postgres { connection, password } => {
            let password = password.as_ref().map(|password| format!(" password {}", password.expose_secret()));
            format!("postgres {connection}{}", password.unwrap_or_default())
        }
    };
    match &lake.data {
        DataPath::Local(path) => format!("{catalog}, data {}", path.display()),
        DataPath::Url(url) => format!("{catalog}, data at {url}"),
    }
}

/// The page's example of every section.
const FULL: &str = r#"
[lake.main]
catalog = "sqlite:.pintail/main.sqlite"
data = ".pintail/data/main"
[store]
url = "sqlite:.pintail/store.sqlite"
[run]
slots = 2
memory_limit = "4GB"
temp_directory = ".pintail/tmp"
temp_limit = "20GB"
keep_runs = 3
keep_days = 3
timezone = "UTC"
[datatable.app]
url = "${APP_DATABASE_URL}"
[object_store.raw]
url = "s3://bucket/prefix"
key = "${S3_KEY}"
secret = "${S3_SECRET}"
[volume.landing]
path = "/srv/landing"
[vars]
country = "DE"
[profile.dev]
defer = "prod"
[profile.prod.lake.main]
catalog = "postgres:host=db dbname=lake"
"#;

#[test]
fn no_file_means_the_embedded_default() {
    let source = ConfigSource { root: Path::new("/p"), profile: None, environment: &environment() };
    let (config, diagnostics) = read_config(None, &source);
    assert_eq!(diagnostics, []);
    assert_eq!(lake(&config, "main"), "sqlite /p/.pintail/main.sqlite, data /p/.pintail/data/main");
    let StoreUrl::Sqlite { path } = &config.store else { panic!("{:?}", config.store) };
    assert_eq!(path, Path::new("/p/.pintail/store.sqlite"));
    assert_eq!(format!("{:?}", config), format!("{:?}", Config::embedded(Path::new("/p"))));
}

#[test]
fn the_default_written_out_is_the_default() {
    let config = good(FULL, None);
    let embedded = Config::embedded(Path::new("/p"));
    assert_eq!(format!("{:?}", config.lakes), format!("{:?}", embedded.lakes));
    assert_eq!(format!("{:?}", config.store), format!("{:?}", embedded.store));
    assert_eq!(config.run, embedded.run);
}

#[test]
fn every_section_is_read() {
    let config = good(FULL, None);
    expect![[r#"
        volumes {"landing": Volume { path: "/srv/landing" }}
        vars {"country": Text("DE")}
        datatables {"app": Datatable { url: SecretBox<str>([REDACTED]) }}
        object stores {"raw": ObjectStore { url: "s3://bucket/prefix", endpoint: None, region: None, url_style: None, use_ssl: None, key: Some(SecretBox<str>([REDACTED])), secret: Some(SecretBox<str>([REDACTED])) }}
    "#]]
    .assert_eq(&format!(
        "volumes {:?}\nvars {:?}\ndatatables {:?}\nobject stores {:?}\n",
        config.volumes, config.vars, config.datatables, config.object_stores
    ));
    assert_eq!(config.datatables["app"].url.expose_secret(), "postgres://app:hunter2@db/app");
}

#[test]
fn secrets_are_known_to_the_redactor_and_to_no_debug_output() {
    let text = format!(
        "{FULL}\n[lake.shared]\ncatalog = \"postgres:host=db dbname=lake\"\npassword = \"${{PG_PASSWORD}}\"\n[nats]\ntoken = \"${{S3_KEY}}\""
    );
    let config = good(&text, None);
    let secrets: Vec<&str> = config.secrets.expose().collect();
    assert_eq!(secrets, ["AKIA17", "hunter2", "postgres://app:hunter2@db/app", "s3cr3t", "shh"]);
    let shown = format!("{config:#?} {:?}", environment());
    for secret in secrets {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert_eq!(lake(&config, "shared"), "postgres host=db dbname=lake password s3cr3t, data /p/.pintail/data/shared");
}

#[test]
fn a_profile_overrides_single_keys() {
    let text = r#"
[run]
slots = 2
keep_runs = 5
[vars]
country = "DE"
[profile.prod]
run.slots = 8
vars = { country = "FR", limit = 3 }
[profile.prod.lake.main]
catalog = "postgres:host=db dbname=lake password='${PG_PASSWORD}'"
data = "s3://lake/data"
"#;
    let config = good(text, Some("prod"));
    assert_eq!(config.profile.as_deref(), Some("prod"));
    assert_eq!((config.run.slots.get(), config.run.keep_runs), (8, 5));
    assert_eq!(lake(&config, "main"), "postgres host=db dbname=lake password s3cr3t, data at s3://lake/data");
    assert_eq!(format!("{:?}", config.vars), r#"{"country": Text("FR"), "limit": Integer(3)}"#);
    let config = good(text, None);
    assert_eq!((config.profile, config.run.slots.get()), (None, 2));
}

#[test]
fn a_profile_may_defer_to_another() {
    assert_eq!(good(FULL, Some("dev")).deferred.map(|deferred| deferred.profile).as_deref(), Some("prod"));
    assert!(good(FULL, None).deferred.is_none());
    check(
        "[profile.dev]\ndefer = \"prd\"\n[profile.prod]\n",
        expect![[r#"
            2:9 P006 "prd": unknown profile `prd` (did you mean `prod`?)
        "#]],
    );
}

#[test]
fn an_unknown_profile_is_named_with_the_known_ones() {
    let print_selected = |text: &str, profile: &str| print(text, &read(text, Some(profile)).1);
    expect![[r#"
        file P006: unknown profile `prd` (did you mean `prod`?)
    "#]]
    .assert_eq(&print_selected(FULL, "prd"));
    expect![[r#"
        file P006: unknown profile `staging` (known profiles: `dev`, `prod`)
    "#]]
    .assert_eq(&print_selected(FULL, "staging"));
    expect![[r#"
        file P006: unknown profile `dev` (add a section `[profile.dev]`)
    "#]]
    .assert_eq(&print_selected("", "dev"));
}

#[test]
fn unset_variables_matter_only_where_they_are_used() {
    let text = r#"
[lake.main]
catalog = "postgres:host=db dbname=lake"
password = "${PG_PASWORD}"
[profile.local.lake.main]
catalog = "sqlite:local.sqlite"
password = "${PG_PASSWORD}"
[profile.other]
vars.name = "${OTHER}"
"#;
    check(
        text,
        expect![[r#"
            4:13 P005 ${PG_PASWORD}: environment variable `PG_PASWORD` is not set (did you mean `PG_PASSWORD`?)
        "#]],
    );
    let config = good(text, Some("local"));
    assert_eq!(lake(&config, "main"), "sqlite /p/local.sqlite, data /p/.pintail/data/main");
}

#[test]
fn mistakes_in_profiles_that_are_not_selected_are_found() {
    let text = "[profile.a]\nrun.slots = 0\n[profile.b]\nrun.slot = 1\nprofile.c.run.slots = 1\n";
    let expected = expect![[r#"
        2:13 P004 0: `slots` must be at least 1, found `0`
        4:5 P002 slot: unknown key `slot` in [run] (did you mean `slots`?)
        5:1 P002 profile: unknown key `profile` in [profile.b] (it knows `project`, `lake`, `store`, `run`, `maintain`, `consumer`, `ingest`, `datatable`, `object_store`, `volume`, `vars`, `packages`, `kafka`, `mqtt`, `nats`, `postgres`, `sqs`, `gcp`, `email`, `webhook`, `schedule`, `defer`, `schema_suffix`)
    "#]];
    let found = print(text, &read(text, None).1);
    assert_eq!(print(text, &read(text, Some("a")).1), found);
    expected.assert_eq(&found);
}

#[test]
fn unknown_keys_are_all_named_with_their_near_names() {
    check(
        r#"
lakes = 1
[run]
slot = 2
colour = "red"
[store]
uri = "sqlite:x"
[lake.main]
catalogue = "sqlite:x"
[datatable.app]
url = "${APP_DATABASE_URL}"
pool = 3
[object_store.raw]
url = "s3://b"
sekret = "${S3_SECRET}"
[volume.landing]
path = "x"
paths = "y"
"#,
        expect![[r#"
            2:1 P002 lakes: unknown key `lakes` in pintail.toml (did you mean `lake`?)
            4:1 P002 slot: unknown key `slot` in [run] (did you mean `slots`?)
            5:1 P002 colour: unknown key `colour` in [run] (it knows `slots`, `memory_limit`, `temp_directory`, `temp_limit`, `keep_runs`, `keep_days`, `timezone`, `atomic`, `worker`)
            7:1 P002 uri: unknown key `uri` in [store] (did you mean `url`?)
            9:1 P002 catalogue: unknown key `catalogue` in [lake.main] (did you mean `catalog`?)
            12:1 P002 pool: unknown key `pool` in [datatable.app] (it knows `url`)
            15:1 P002 sekret: unknown key `sekret` in [object_store.raw] (did you mean `secret`?)
            18:1 P002 paths: unknown key `paths` in [volume.landing] (did you mean `path`?)
        "#]],
    );
}

#[test]
fn wrong_types_are_all_named() {
    check(
        r#"
lake = "main"
store = 1
[run]
slots = "two"
memory_limit = 4
atomic = "yes"
keep_days = 1.5
timezone = true
worker = ["gpu", 1]
[vars]
since = 2026-01-01
many = [1]
[volume]
landing = "/srv"
"#,
        expect![[r#"
            2:8 P003 "main": `lake` must be a table, found a string
            3:9 P003 1: `store` must be a table, found an integer
            5:9 P003 "two": `slots` must be an integer, found a string
            6:16 P003 4: `memory_limit` must be a string, found an integer
            7:10 P003 "yes": `atomic` must be a boolean, found a string
            8:13 P003 1.5: `keep_days` must be an integer, found a float
            9:12 P003 true: `timezone` must be a string, found a boolean
            10:18 P003 1: `worker` must be a string, found an integer
            12:9 P003 2026-01-01: `since` must be a string, a number or a boolean, found a date or time
            13:8 P003 [1]: `many` must be a string, a number or a boolean, found an array
            15:11 P003 "/srv": `volume.landing` must be a table, found a string
        "#]],
    );
}

#[test]
fn bad_values_are_all_named() {
    check(
        r#"
[run]
slots = 0
memory_limit = "4 gigs"
temp_limit = "${DATA}"
keep_runs = -1
keep_days = 99999999999999999999
timezone = "Europe/Berln"
[store]
url = "store.sqlite"
[object_store.raw]
url = "https://bucket"
[object_store.empty]
[volume.project]
path = "x"
[volume."Land ing"]
path = "x"
[vars]
partition = "x"
Country = "DE"
"#,
        expect![[r#"
            3:9 P004 0: `slots` must be at least 1, found `0`
            4:16 P004 "4 gigs": `memory_limit` must be a size, found `4 gigs` (write a number and a unit, such as `4GB` or `512MiB`)
            5:14 P004 "${DATA}": `temp_limit` must be a size (write a number and a unit, such as `4GB` or `512MiB`)
            6:13 P004 -1: `keep_runs` must be a count from 0, found `-1`
            7:13 P003 99999999999999999999: `keep_days` must be an integer, found an integer beyond 64 bits
            8:12 P004 "Europe/Berln": `timezone` must be an IANA time zone, found `Europe/Berln` (did you mean `Europe/Berlin`?)
            10:7 P004 "store.sqlite": `url` must be `sqlite:<path>` or `postgres:<connection>`, found `store.sqlite` (write `sqlite:.pintail/store.sqlite`)
            12:7 P004 "https://bucket": `url` must be an `s3://` URL, found `https://bucket` (write `s3://bucket/prefix`)
            13:15 P004 empty: `[object_store.empty]` needs `url` (add `url = "…"`)
            14:9 P004 project: `project` cannot name a volume: it is the project root
            16:9 P004 "Land ing": `Land ing` cannot name an entry of `[volume]` (lower-case letters, digits and `_`, such as `landing_2`)
            19:1 P004 partition: `partition` cannot name a variable (lower-case letters, digits and `_`; not a name that Pintail sets itself)
            20:1 P004 Country: `Country` cannot name a variable (lower-case letters, digits and `_`; not a name that Pintail sets itself)
        "#]],
    );
}

#[test]
fn lake_names_that_the_engine_needs_are_refused() {
    check(
        "[lake.temp]\n[lake.Lake]\n[lake._pt_w]\n[lake.\"a b\"]\n[lake.Raw]\n[lake.raw_2]\n[lake.information_schema]\n",
        expect![[r#"
            1:7 P010 temp: `temp` cannot name a lake: the engine uses that name itself (lower-case letters, digits and `_`, such as `main` or `raw_events`)
            2:7 P010 Lake: `Lake` cannot name a lake: the engine uses that name itself (lower-case letters, digits and `_`, such as `main` or `raw_events`)
            3:7 P010 _pt_w: `_pt_w` cannot name a lake: names that begin with `_pt_` are generated ones (lower-case letters, digits and `_`, such as `main` or `raw_events`)
            4:7 P010 "a b": `a b` cannot name a lake: it is not a plain lower-case name (lower-case letters, digits and `_`, such as `main` or `raw_events`)
            5:7 P010 Raw: `Raw` cannot name a lake: it is not a plain lower-case name (lower-case letters, digits and `_`, such as `main` or `raw_events`)
            7:7 P010 information_schema: `information_schema` cannot name a lake: the engine uses that name itself (lower-case letters, digits and `_`, such as `main` or `raw_events`)
        "#]],
    );
}

#[test]
fn a_duckdb_file_is_no_catalog() {
    check(
        "[lake.a]\ncatalog = \"duckdb:a.duckdb\"\n[lake.b]\ncatalog = \"b.db\"\n[lake.c]\ncatalog = \"mysql:c\"\n",
        expect![[r#"
            2:11 P012 "duckdb:a.duckdb": a DuckDB file cannot be a catalog: it takes neither a second process nor a pinned alias (use `sqlite:<path>` on one machine, or `postgres:<connection>` for several)
            4:11 P012 "b.db": a DuckDB file cannot be a catalog: it takes neither a second process nor a pinned alias (use `sqlite:<path>` on one machine, or `postgres:<connection>` for several)
            6:11 P004 "mysql:c": `catalog` must be `sqlite:<path>` or `postgres:<connection>`, found `mysql:c` (use `sqlite:<path>` on one machine, or `postgres:<connection>` for several)
        "#]],
    );
}

#[test]
fn secrets_in_the_file_are_refused_and_not_repeated() {
    check(
        r#"
[lake.main]
catalog = "postgres:host=${DATA} password=hunter2"
[lake.other]
catalog = "postgres://u:hunter2@db/lake"
password = "hunter2"
[object_store.raw]
url = "s3://b"
key = "hunter2"
[datatable.app]
url = "postgres://u:hunter2@db/app"
[datatable.open]
url = "postgres://u@db/app"
"#,
        expect![[r#"
            3:11 P004 "postgres:host=${DATA} password=hunter2": `catalog` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
            3:11 P004 "postgres:host=${DATA} password=hunter2": `catalog` must be a connection that names the lake's database (such as `postgres:host=db user=pintail dbname=lake`)
            5:11 P004 "postgres://u:hunter2@db/lake": `catalog` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
            6:12 P004 "hunter2": `password` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
            9:7 P004 "hunter2": `key` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
            11:7 P004 "postgres://u:hunter2@db/app": `url` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
        "#]],
    );
}

#[test]
fn dollar_dollar_escapes_and_slips_are_positioned() {
    let config = good("[vars]\nprice = \"$${X} and $5\"\npath = '${DATA}/${S3_KEY}'\n", None);
    assert_eq!(format!("{:?}", config.vars), r#"{"path": Text("/mnt/data/AKIA17"), "price": Text("${X} and $5")}"#);
    check(
        "[vars]\na = \"x ${DATA} ${ and ${NOPE}\"\nb = \"tab\\t${NOPE}\"\nc = '''\n${NOPE}'''\n",
        expect![[r#"
            2:16 P004 ${: malformed reference to an environment variable (a variable is `${NAME}`; write `$${` for the text itself)
            2:23 P005 ${NOPE}: environment variable `NOPE` is not set (set it, or write `$${NOPE}` for the text itself)
            3:5 P005 "tab\t${NOPE}": environment variable `NOPE` is not set (set it, or write `$${NOPE}` for the text itself)
            4:5 P005 '''
            ${NOPE}''': environment variable `NOPE` is not set (set it, or write `$${NOPE}` for the text itself)
        "#]],
    );
}

#[test]
fn syntax_errors_are_positioned_and_the_rest_is_read() {
    check(
        "[run\nslots = 2\n\n[vars]\ncountry = DE\nx = \"y\"\n",
        expect![[r#"
        1:5 P001 : unclosed table, expected `]`
        5:11 P001 DE: string values must be quoted, expected literal string
    "#]],
    );
    check(
        "[run]\nslots = 2\nslots = 3\n",
        expect![[r#"
        3:1 P001 slots: duplicate key
    "#]],
    );
}

#[test]
fn broker_and_package_sections_are_kept_as_written() {
    let config = good(
        r#"
[kafka.main]
servers = ["a:9092", "b:9092"]
password = "${PG_PASSWORD}"
[packages]
utils = { path = "../utils", pinned = true }
"#,
        None,
    );
    expect![[r#"
        {Kafka: Broker { settings: {"main": Table({"password": Secret(SecretBox<str>([REDACTED])), "servers": List([Text("a:9092"), Text("b:9092")])})} }}
        {"utils": Table({"path": Text("../utils"), "pinned": Boolean(true)})}
    "#]].assert_eq(&format!("{:?}\n{:?}\n", config.brokers, config.packages));
}

#[test]
fn worker_tags_are_one_or_several() {
    assert_eq!(good("run.worker = \"gpu\"", None).run.worker, ["gpu"]);
    assert_eq!(good("run.worker = [\"gpu\", \"nightly\"]", None).run.worker, ["gpu", "nightly"]);
    assert!(good("run.atomic = true", None).run.atomic);
}

#[test]
fn a_setting_without_effect_says_so_unless_it_has_its_default() {
    let text = r#"
[lake.main]
catalog = "postgres:host=db dbname=lake"
[store]
url = "postgres:host=db dbname=store"
[run]
keep_runs = 9
keep_days = 3
timezone = "Europe/Berlin"
atomic = true
worker = "nightly"
[datatable.app]
url = "${APP_DATABASE_URL}"
[object_store.raw]
url = "s3://bucket/prefix"
[volume.landing]
path = "landing"
[kafka]
brokers = "db:9092"
[packages]
shop = { path = "shop" }
[profile.dev]
defer = "prod"
[profile.prod.run]
atomic = false
"#;
    let of = |profile| print(text, &read_all(text, profile).1);
    expect![[r#"
        9:1 P125 timezone: `timezone` is checked, but this version does not act on it yet (schedules do not run yet; partitions have `tz=`)
        11:1 P125 worker: `worker` is checked, but this version does not act on it yet (choose scripts by `--select tag:…`)
        18:2 P125 kafka: `[kafka]` is checked, but this version does not act on it yet (nothing starts runs by itself yet: use cron, or `pintail run` by hand)
        20:2 P125 packages: `[packages]` is checked, but this version does not act on it yet (put macros and tests into the project itself)
    "#]].assert_eq(&of(None));
    assert!(!of(Some("dev")).contains("`defer`"), "{}", of(Some("dev")));
    assert!(!of(Some("prod")).contains("`atomic`"), "{}", of(Some("prod")));
}

#[test]
fn two_lakes_cannot_have_one_catalog() {
    check(
        "[lake.other]\ncatalog = \"sqlite:.pintail/main.sqlite\"\n[lake.third]\ncatalog = \"sqlite:third.sqlite\"\n",
        expect![[r#"
            1:7 P004 other: the lakes `other` and `main` have one catalog (give each lake a catalog of its own)
        "#]],
    );
}

#[test]
fn a_project_has_a_name_that_is_not_empty() {
    let named = |text: &str| read_all(text, None).0.project_name.map(|name| name.to_string());
    assert_eq!(named("[project]\nname = \"shop\"\n").as_deref(), Some("shop"));
    assert_eq!(named(""), None);
    check(
        "[project]\nname = \" \"\nnames = 1\n",
        expect![[r#"
            2:8 P004 " ": `name` must be text that is not empty, found ` ` (such as `name = "shop"`)
            3:1 P002 names: unknown key `names` in [project] (did you mean `name`?)
        "#]],
    );
}

#[test]
fn the_reader_of_a_lake_is_a_connection_to_postgres_whose_password_is_a_secret_too() {
    let text = "[lake.main]\ncatalog = \"postgres:host=db dbname=lake\"\npassword = \"${PG_PASSWORD}\"\n\
                reader = \"postgres:host=replica dbname=lake user=ro password=${S3_KEY}\"";
    let config = good(text, None);
    let reader = config.lakes.values().next().unwrap().reader.as_ref().unwrap();
    assert!(matches!(reader, Catalog::Postgres { connection, password: Some(_) }
        if connection == "host=replica dbname=lake user=ro"));
    assert!(config.secrets.expose().any(|secret| secret == "AKIA17"));
    let on_a_file = "[lake.main]\nreader = \"sqlite:x.sqlite\"";
    check(
        on_a_file,
        expect![[r#"
        2:10 P004 "sqlite:x.sqlite": `reader` must be `postgres:<connection>`, found `sqlite:x.sqlite` (write `postgres:<connection>` with a role that may read, or leave `reader` out)
    "#]],
    );
    let twice = "[lake.main]\ncatalog = \"postgres:host=db host=other dbname=lake\"";
    check(
        twice,
        expect![[r#"
        2:11 P004 "postgres:host=db host=other dbname=lake": `catalog` must be a connection to Postgres (`host` stands twice in the connection), found `postgres:host=db host=other dbname=lake` (such as `postgres:host=db user=pintail dbname=lake`)
    "#]],
    );
}

#[test]
fn two_consumers_of_one_decoder_in_one_lake_are_refused() {
    let consumer = |name: &str, lake: &str| {
        format!("[consumer.{name}]\nsource = \"ducklake://{lake}/raw\"\ndecoder = \"cloudevents-default\"\n")
    };
    let text =
        format!("[lake.other]\n{}{}{}", consumer("one", "main"), consumer("two", "main"), consumer("three", "other"));
    check(
        &text,
        expect![[r#"
        5:11 P560 two: consumers `one` and `two` have one decoder, and would write the same tables of lake `main` (keep one of them; `shards` share the work of one consumer)
    "#]],
    );
}

#[test]
fn times_that_are_nothing_and_snapshots_before_the_first_are_refused() {
    let text = "[maintain]\nevery = \"0s\"\n[consumer.decode]\nsource = \"ducklake://main/raw\"\n\
                decoder = \"cloudevents-default\"\nstart = -4\nretention = \"0d\"\n\
                [consumer.again]\nstart = \"-1\"\n";
    check(
        text,
        expect![[r#"
            2:9 P004 "0s": `every` must be longer than nothing, found `0s` (after so long a round of upkeep follows the last)
            6:9 P004 -4: `start` must be `earliest`, `head` or a snapshot, found `-4` (a consumer that has run before is at its cursor; `pintail consume reset` moves it)
            7:13 P004 "0d": `retention` must be longer than nothing, found `0d` (after so long rows that were decoded go)
            8:11 P560 again: `[consumer.again]` has no `source` (add the table that it reads, such as `source = "ducklake://main/raw_events"`)
            8:11 P560 again: `[consumer.again]` has no `decoder` (add one of `cloudevents-default`)
            9:9 P004 "-1": `start` must be `earliest`, `head` or a snapshot, found `-1` (a consumer that has run before is at its cursor; `pintail consume reset` moves it)
        "#]],
    );
}
