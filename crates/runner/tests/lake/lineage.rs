//! What a script reads decides what is due: names that look like other names must not fool it.

use expect_test::expect;
use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, foreign, planned, query, run};

#[test]
fn case_i50_a_cte_named_as_a_table_hides_it_only_where_it_is_in_scope() {
    let folder = Folder::new(
        "//- pipelines/orders.sql
-- materialize ducklake://main/orders
SELECT 1 AS n
//- pipelines/raw_orders.sql
-- materialize ducklake://main/raw.orders
SELECT 2 AS n
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT 3 AS n
//- pipelines/hides.sql
-- materialize ducklake://main/hides
WITH orders AS (FROM raw.orders) SELECT sum(n) AS n FROM orders
//- pipelines/before.sql
-- materialize ducklake://main/before
WITH a AS (SELECT n FROM b), b AS (SELECT 10 AS n) SELECT a.n + b.n AS n FROM a, b
//- pipelines/inner.sql
-- materialize ducklake://main/inner_scope
SELECT (WITH orders AS (SELECT 7 AS n) SELECT max(n) FROM orders) + (SELECT max(n) FROM orders) AS n
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT (FROM hides), (FROM before), (FROM inner_scope)", None), ["2|13|8"]);
    foreign(&pintail, "INSERT INTO orders VALUES (5); INSERT INTO b VALUES (6)");
    expect![[r#"
        before: ducklake://main/b changed
        inner: ducklake://main/orders changed"#]]
    .assert_eq(&planned(&pintail, &PlanRequest::default()).join("\n"));
}

#[test]
fn case_i52_a_self_read_is_no_cycle_and_a_real_cycle_names_its_loop() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
-- column n BIGINT
SELECT 1::BIGINT AS n FROM a UNION ALL SELECT 2 FROM b
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT 1 AS n
",
    );
    assert_eq!(folder.check(), Vec::<String>::new());
    folder.write("//- pipelines/b.sql\n-- materialize ducklake://main/b\nSELECT n FROM a\n");
    expect!["Error P301 pipelines/a.sql:3 these scripts wait for each other: a -> b -> a"]
        .assert_eq(&folder.check().join("\n"));
}

#[test]
fn case_h46_semicolons_and_comments_do_not_split_or_swallow_the_query() {
    let folder = Folder::new(
        "//- pipelines/t.sql
-- materialize ducklake://main/t
CREATE TEMP TABLE x AS SELECT 'a;b' AS a, $$x;y$$ AS b, $t$ $$;$$ $t$ AS c; /* /* ; */ */
-- ; a comment
SELECT a, b, c, \"a;b\" FROM x, (SELECT E'\\';' AS \"a;b\"); -- the end ;
//- pipelines/u.sql
-- materialize ducklake://main/u key=a
SELECT 1 AS a -- trailing",
    );
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT a, b, trim(c), \"a;b\" FROM t"), ["a;b|x;y|$$;$$|';"]);
}

#[test]
fn files_of_a_volume_are_read_from_its_folder_and_unknown_places_are_said() {
    let volumes = tempfile::tempdir().unwrap();
    std::fs::write(volumes.path().join("orders.csv"), "n\n1\n").unwrap();
    let folder = Folder::new(&format!(
        "//- pintail.toml
[volume.landing]
path = \"{}\"
//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT n FROM read_csv('volume://landing/*.csv')
",
        volumes.path().display()
    ));
    folder.run_all().assert_good();
    assert_eq!(folder.query("FROM a"), ["1"]);
    assert_eq!(folder.run_all().text(), "");
    std::fs::write(volumes.path().join("more.csv"), "n\n2\n").unwrap();
    folder.run_all().assert_good();
    assert_eq!(folder.query("FROM a ORDER BY n"), ["1", "2"]);

    folder.write(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT n FROM read_csv('volume://landin/orders.csv'), read_parquet('s3://raw/x.parquet')
",
    );
    expect![[r#"
        Warning P549 pipelines/a.sql:2 there is no volume `landin`
        Error P014 pipelines/a.sql:2 there is no object store `raw`"#]]
    .assert_eq(&folder.check().join("\n"));
}
