//! Odd names: quoted words, spaces, quotes, other scripts, case; schemas; a second lake.

use expect_test::expect;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, foreign, planned, query, run};

#[test]
fn case_g41_odd_names_of_tables_columns_keys_and_partitions_work() {
    let names = ["select", "a b", "日本", "a'b", "a;b", "t--x", "Mixed", "café", "a%b", "{x}", "$p"];
    let mut text = String::new();
    for (number, name) in names.iter().enumerate() {
        let uri = percent_encoded(name);
        let quoted = name.replace('\'', "''");
        text.push_str(&format!(
            "//- pipelines/t{number}.sql
-- partitioned daily by=\"{name}\"
-- materialize ducklake://main/{uri} key=\"{name}\"
-- test unique \"{name}\"
-- test not_null \"{name}\"
-- column \"{name}\" \"It's {number}\"
SELECT $partition_start AS \"{name}\", '{quoted}' AS v
//- pipelines/u{number}.sql
-- materialize ducklake://main/u{number}
SELECT v, \"{name}\" AS w FROM \"{name}\"
"
        ));
    }
    let folder = Folder::new(&text);
    let pintail = folder.open();
    run(&pintail, &at("2026-01-01")).assert_good();
    let told = run(&pintail, &PlanRequest { select: Some("t*".to_owned()), force: true, ..at("2026-01-01") });
    told.assert_good();
    for (number, name) in names.iter().enumerate() {
        assert_eq!(told.step(&format!("t{number} 2026-01-01")).changed, (1, 1), "{name}");
    }
    let all: Vec<String> = (0..names.len())
        .map(|number| format!("SELECT v FROM u{number} JOIN \"{}\" USING (v)", names[number]))
        .collect();
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(query(&pintail, &format!("{} ORDER BY v", all.join(" UNION ALL ")), None), sorted);
}

/// A name as a URI holds it; letters of other scripts go as they are.
fn percent_encoded(name: &str) -> String {
    name.chars()
        .map(|letter| match letter {
            letter if letter.is_ascii() && !letter.is_ascii_alphanumeric() && letter != '-' => {
                format!("%{:02X}", u32::from(letter))
            }
            letter => letter.to_string(),
        })
        .collect()
}

#[test]
fn case_g42_names_that_differ_only_by_case_are_one_table_and_two_writers_are_refused() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/Orders
SELECT 1 AS Id
//- pipelines/b.sql
-- materialize ducklake://main/b key=ID
SELECT id FROM ORDERS
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT ID FROM B", None), ["1"]);
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
    folder.write("//- pipelines/c.sql\n-- materialize ducklake://main/ORDERS\nSELECT 1 AS id\n");
    let errors: Vec<String> = folder.check().into_iter().filter(|line| line.starts_with("Error")).collect();
    expect!["Error P302 pipelines/c.sql:1 `ducklake://main/orders` is already written by `a`"]
        .assert_eq(&errors.join("\n"));
}

#[test]
fn a_schema_is_made_with_its_first_table_and_names_in_it_resolve() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/raw area.orders
SELECT 1 AS n
//- pipelines/b.sql
-- materialize view ducklake://main/mart.b
SELECT n FROM \"raw area\".orders
//- pipelines/c.sql
-- materialize manual ducklake://main/hand.c
CREATE SCHEMA IF NOT EXISTS lake.hand;
CREATE OR REPLACE TABLE lake.hand.c AS SELECT n + 1 AS n FROM lake.mart.b;
"
        .replace("raw area.", "\"raw area\".")
        .replace("ducklake://main/\"raw area\".orders", "ducklake://main/raw%20area.orders")
        .as_str(),
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT (FROM \"raw area\".orders), (FROM mart.b), (FROM hand.c)", None), ["1|1|2"]);
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
}

#[test]
fn a_second_lake_is_read_at_its_own_pin_and_written() {
    let folder = Folder::new(
        "//- pintail.toml
[lake.main]
catalog = \"sqlite:one/main.sqlite\"
data = \"one/data\"
[lake.other]
catalog = \"sqlite:two/other.sqlite\"
data = \"two/data\"
//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 1 AS n
//- pipelines/b.sql
-- materialize ducklake://other/b
SELECT n + 1 AS n FROM a
//- pipelines/c.sql
-- materialize ducklake://main/c
SELECT a.n AS a, b.n AS b FROM a, other.b
//- pipelines/d.sql
-- materialize ducklake://other/s.d key=n
ATTACH 'ducklake://other' AS o;
USE o;
SELECT n FROM b
//- pipelines/e.sql
-- materialize view ducklake://other/e
SELECT n FROM other.b
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT (SELECT a + b FROM c), (FROM other.s.d), (FROM other.e)", None), ["3|2|2"]);
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
    let history = pintail.history(&pintail.parse_asset("ducklake://main/c").unwrap(), 1).unwrap();
    let lakes: Vec<&str> = history[0].inputs.keys().map(|lake| lake.as_str()).collect();
    assert_eq!(lakes, ["main", "other"]);
    foreign(&pintail, "INSERT INTO a VALUES (5)");
    assert_eq!(
        planned(&pintail, &PlanRequest::default()),
        ["b: ducklake://main/a changed", "c: ducklake://main/a changed", "d: after b"]
    );
}

#[test]
fn case_g41_a_name_with_a_dot_a_slash_or_a_quote_is_one_name() {
    let folder = Folder::new(
        "//- pipelines/dot.sql
-- materialize ducklake://main/a%2Eb
SELECT 1 AS \"x.y\"
//- pipelines/slash.sql
-- materialize ducklake://main/a%2Fb
SELECT \"x.y\" AS \"x/y\" FROM \"a.b\"
//- pipelines/quote.sql
-- materialize ducklake://main/a%22b
SELECT \"x/y\" AS \"x\"\"y\" FROM lake.\"a/b\"
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT \"x\"\"y\" FROM \"a\"\"b\"", None), ["1"]);
    assert_eq!(planned(&pintail, &PlanRequest::default()), Vec::<String>::new());
}

#[test]
fn case_g42_two_columns_that_differ_only_by_case_are_refused() {
    let folder = Folder::new("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 1 AS speed, 2 AS Speed\n");
    let told = folder.run_all();
    expect![[r#"
        P516 compare the columns: the query has two columns of one name: `speed` and `Speed`
        at line 2: SELECT 1 AS speed, 2 AS Speed
        help: give one of them another name with AS; names do not differ by case
        committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]]
    .assert_eq(&folder.told_of(&told, "t"));
}
