//! Errors of the engine in the user's own file: the place, and near names.

use expect_test::{Expect, expect};

use crate::harness::Folder;

fn check(body: &str, expected: Expect) {
    let folder = Folder::new(&format!(
        "//- pintail.toml
[vars]
country = \"a rather long value\"
//- pipelines/src.sql
-- materialize ducklake://main/src
SELECT 1 AS amount, 'x' AS name
//- pipelines/t.sql
-- description Größe: a header with more bytes than characters
-- materialize ducklake://main/t key=k order_by=\"k\"
{body}
"
    ));
    let told = folder.run_all();
    expected.assert_eq(&folder.told_of(&told, "t"));
}

#[test]
fn an_unknown_column_is_at_its_place_with_near_names() {
    check(
        "SELECT 1 AS k,\n  amuont\nFROM src",
        expect![[r#"
            P516 stage the query: Binder error: Referenced column "amuont" not found in FROM clause!
            at line 4: amuont
            help: near names: amount, name
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
}

#[test]
fn a_place_behind_replaced_names_and_parameters_is_right() {
    check(
        "WITH first AS (\n  SELECT $country AS c, amount AS k FROM src WHERE $country <> 'ü'\n)\nSELECT k, nmae FROM first, lake.src AS s",
        expect![[r#"
            P516 stage the query: Binder error: Referenced column "nmae" not found in FROM clause!
            at line 6: nmae FROM first, lake.src AS s
            help: did you mean `name`?
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
}

#[test]
fn an_unknown_table_and_function_are_at_their_place() {
    check(
        "SELECT 1 AS k FROM sorc",
        expect![[r#"
            P516 stage the query: Catalog error: Table with name sorc does not exist!
            at line 3: sorc
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
    check(
        "SELECT sqrtt(4) AS k FROM src",
        expect![[r#"
            P516 stage the query: Catalog error: Scalar Function with name sqrtt does not exist!
            at line 3: sqrtt(4) AS k FROM src
            help: did you mean `sqrt`?
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
}

#[test]
fn a_failing_setup_and_a_failing_value_are_told() {
    check(
        "CREATE TEMP TABLE x AS SELECT nope FROM src;\nSELECT 1 AS k FROM x",
        expect![[r#"
            P516 run the setup: Binder error: Referenced column "nope" not found in FROM clause!
            at line 3: nope FROM src;
            help: did you mean `name`?
            committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
    check(
        "SELECT CAST(name AS INTEGER) AS k FROM src",
        expect![[r#"
        P516 stage the query: Conversion error: Could not convert string 'x' to INT32 when casting from source column name
        at line 3: CAST(name AS INTEGER) AS k FROM src
        committed: nothing of this step is committed; Pintail has not written ducklake://main/t yet"#]],
    );
}
