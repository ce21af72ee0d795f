//! Declared columns, their types and sources.

use expect_test::expect;

use super::check;

#[test]
fn every_part_of_a_column() {
    check(
        r#"column id BIGINT not_null "The shop's \"number\"" <- ducklake://main/orders.id, ducklake://main/sales.lines.order_id"#,
        expect![[r#"
            column: ("id", Some("BIGINT"), true, Some("The shop's \"number\""), ["ducklake://main/orders id", "ducklake://main/sales.lines order_id"])
        "#]],
    );
}

#[test]
fn parts_are_optional() {
    check(
        r#"column a
column b not_null
column c "text"
column d <- s3://raw/x.parquet.d
column "Order Id" VARCHAR"#,
        expect![[r#"
            column: ("a", None, false, None, [])
            column: ("b", None, true, None, [])
            column: ("c", None, false, Some("text"), [])
            column: ("d", None, false, None, ["s3://raw/x.parquet d"])
            column: ("Order Id", Some("VARCHAR"), false, None, [])
        "#]],
    );
}

#[test]
fn nested_types_stay_as_written() {
    check(
        r#"column a STRUCT(a INTEGER, b DECIMAL(10,2))[]
column b MAP(VARCHAR, STRUCT("x y" INT[], z timestamp with time zone)) not_null
column c DOUBLE PRECISION "d"
column d timestamp(3) with time zone not_null
column e VARCHAR(10)[][]"#,
        expect![[r#"
            column: ("a", Some("STRUCT(a INTEGER, b DECIMAL(10,2))[]"), false, None, [])
            column: ("b", Some("MAP(VARCHAR, STRUCT(\"x y\" INT[], z timestamp with time zone))"), true, None, [])
            column: ("c", Some("DOUBLE PRECISION"), false, Some("d"), [])
            column: ("d", Some("timestamp(3) with time zone"), true, None, [])
            column: ("e", Some("VARCHAR(10)[][]"), false, None, [])
        "#]],
    );
}

#[test]
fn types_are_checked_at_their_place() {
    check(
        "column a INTEGR
column b STRUCT(a INT, b DECIML(10,2))
column c STRUCT(a INT
column d DECIMAL(x)
column e INT[3]
column f the total amount
column g HUGEINT
column h STRUCT
column i MAP(INT,)
column j INT) x",
        expect![[r#"
            column: ("a", None, false, None, [])
            column: ("b", None, false, None, [])
            column: ("c", None, false, None, [])
            column: ("d", None, false, None, [])
            column: ("e", None, false, None, [])
            column: ("f", None, false, None, [])
            column: ("g", None, false, None, [])
            column: ("h", None, false, None, [])
            column: ("i", None, false, None, [])
            column: ("j", None, false, None, [])
            error P129 at "INTEGR": unknown type `INTEGR`
              help: did you mean `INTEGER`?
            error P129 at "DECIML": unknown type `DECIML`
              help: did you mean `DECIMAL`?
            error P129 at "(a INT": the parenthesis is never closed
            error P129 at "x": the parameters of a type are whole numbers
            error P129 at "[3]": a lake cannot hold arrays of a fixed size
              help: declare a list: `[]`
            error P129 at "the total amount": unknown type `the total amount`
              help: a description stands in double quotes: `column amount "what it holds"`
            error P129 at "HUGEINT": a lake cannot hold `HUGEINT`
              help: declare `DECIMAL(38,0)`
            error P129 at "STRUCT": `(` is missing after the type
            error P129 at ")": a type is missing
            error P129 at ") x": unexpected text after the type
        "#]],
    );
}

#[test]
fn not_null_has_one_spelling() {
    check(
        "column a INT NOT NULL
column b INT not_nul",
        expect![[r#"
            column: ("a", None, false, None, [])
            column: ("b", None, false, None, [])
            error P108 at "NOT NULL": expected `not_null`, found `NOT NULL`
              help: did you mean `not_null`?
            error P129 at "INT not_nul": unknown type `INT not_nul`
              help: did you mean `INT`?
        "#]],
    );
}

#[test]
fn a_column_is_declared_once() {
    check(
        "column a INT
column A TEXT",
        expect![[r#"
            column: ("a", Some("INT"), false, None, [])
            error P117 at "A": the column `A` is declared twice
              label at "column a INT": the first one, which counts
              help: keep one of the two lines
        "#]],
    );
}

#[test]
fn the_order_of_parts_is_fixed() {
    check(
        r#"column a "text" INT
column b "x" "y""#,
        expect![[r#"
            column: ("a", None, false, Some("text"), [])
            column: ("b", None, false, Some("x"), [])
            error P105 at "INT": unexpected `INT`
              help: the order is `column <name> [<type>] [not_null] ["<description>"] [<- <uri>.<column>, …]`
            error P105 at "\"y\"": a column has one description
              help: keep one of the two texts
        "#]],
    );
}

#[test]
fn sources_are_checked() {
    check(
        "column a <-
column b <- ducklake://main/x
column c <- ducklake://main/x.y,
column d <- dbt://x.y",
        expect![[r#"
            column: ("a", None, false, None, [])
            column: ("b", None, false, None, [])
            column: ("c", None, false, None, [])
            column: ("d", None, false, None, [])
            error P104 at "<-": `<-` needs `<uri>.<column>`
              help: such as `<- ducklake://main/orders.amount`
            error P110 at "ducklake://main/x": the column is missing
              help: write `<uri>.<column>`, such as `ducklake://main/customers.id`
            error P104 at "<- ducklake://main/x.y,": `<-` needs `<uri>.<column>`
              help: such as `<- ducklake://main/orders.amount`
            error P110 at "dbt://x.y": a dbt model is not an asset here
        "#]],
    );
}

#[test]
fn an_unclosed_description_is_positioned() {
    check(
        r#"column a INT "never closed"#,
        expect![[r#"
        column: ("a", Some("INT"), false, None, [])
        error P109 at "\"never closed": the quote " is never closed
          help: close it on the same line with "
    "#]],
    );
}

#[test]
fn a_name_is_needed() {
    check(
        "column",
        expect![[r#"
        error P104 at "column": `column` needs a name
          help: write `column <name> [<type>] [not_null] ["<description>"] [<- <uri>.<column>, …]`; a line of prose must not start with `column`
    "#]],
    );
}
