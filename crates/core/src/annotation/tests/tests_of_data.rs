//! The forms of `test` and its options.

use expect_test::expect;

use super::{check, check_each};

#[test]
fn every_form() {
    check(
        r#"materialize ducklake://main/x
test unique a,b
test not_null a
test accepted_values a = x,'y z', NULL, ''
test relationships a -> ducklake://main/customers.id
test expression "amount >= 0 or note = 'x;y'"
test row_count 1..1000000
test row_count 1..
test row_count ..5
test row_count 7
test shop/no_gaps a=1 'two words'"#,
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            test: TestDecl { check: Unique(["a", "b"]), severity: Error, filter: None, scope: None }
            test: TestDecl { check: NotNull("a"), severity: Error, filter: None, scope: None }
            test: TestDecl { check: AcceptedValues { column: "a", values: ["x", "y z", "NULL", ""] }, severity: Error, filter: None, scope: None }
            test: TestDecl { check: Relationships { column: "a", parent: Lake { lake: LakeName("main"), schema: "main", table: "customers" }, parent_column: "id" }, severity: Error, filter: None, scope: None }
            test: TestDecl { check: Expression("amount >= 0 or note = 'x;y'"), severity: Error, filter: None, scope: None }
            test: TestDecl { check: RowCount { min: Some(1), max: Some(1000000) }, severity: Error, filter: None, scope: None }
            test: TestDecl { check: RowCount { min: Some(1), max: None }, severity: Error, filter: None, scope: None }
            test: TestDecl { check: RowCount { min: None, max: Some(5) }, severity: Error, filter: None, scope: None }
            test: TestDecl { check: RowCount { min: Some(7), max: Some(7) }, severity: Error, filter: None, scope: None }
            test: TestDecl { check: Named { name: "shop/no_gaps", arguments: ["a=1", "two words"] }, severity: Error, filter: None, scope: None }
        "#]],
    );
}

#[test]
fn options_end_the_line() {
    check(
        r#"materialize ducklake://main/x
test unique a severity=warn where="a > 0" scope=table
test accepted_values a=x,y severity=warn
test accepted_values a = x where="b = 'c'"
test no_gaps step=1 severity=warn"#,
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            test: TestDecl { check: Unique(["a"]), severity: Warn, filter: Some("a > 0"), scope: Some(Table) }
            test: TestDecl { check: AcceptedValues { column: "a", values: ["x", "y"] }, severity: Warn, filter: None, scope: None }
            test: TestDecl { check: AcceptedValues { column: "a", values: ["x"] }, severity: Error, filter: Some("b = 'c'"), scope: None }
            test: TestDecl { check: Named { name: "no_gaps", arguments: ["step=1"] }, severity: Warn, filter: None, scope: None }
        "#]],
    );
}

#[test]
fn not_null_of_a_list_is_one_test_each() {
    check(
        "materialize ducklake://main/x
test not_null a,b",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            test: TestDecl { check: NotNull("a"), severity: Error, filter: None, scope: None }
            test: TestDecl { check: NotNull("b"), severity: Error, filter: None, scope: None }
        "#]],
    );
}

#[test]
fn mistakes_are_positioned() {
    check_each(
        "test
test unique
test unique a b
test unique a severity=wrn
test unique a severty=warn
test no_gaps severty=warn
test uniqe a
test accepted_values a
test accepted_values a = x,,y
test accepted_values a = 'x' y
test relationships a -> ducklake://main/customers
test relationships a
test row_count 5..1
test row_count many
test row_count ..
test not-a,name x",
        expect![[r#"
            error P104 at "test": `test` needs a kind of test
              help: write `test unique a,b` or `test not_null a` or `test accepted_values a = x,'y z'` or another of its forms; a line of prose must not start with `test`
            error P104 at "unique": `test unique` needs columns
              help: write `test unique a,b`
            error P105 at "b": unexpected `b`; `test unique` takes columns
              help: a list stands without white space: `a,b`
            error P108 at "wrn": `wrn` is not a severity; expected `warn` or `error`
              help: did you mean `warn`?
            error P106 at "severty": unknown option `severty` of `test`
              help: did you mean `severity=`?
            error P106 at "severty": unknown option `severty` of `test`
              help: did you mean `severity=`?
            error P108 at "uniqe": unknown test `uniqe`
              help: did you mean `unique`?
            error P104 at "accepted_values": `test accepted_values` needs `<column> = <values>`
              help: write `test accepted_values a = x,'y z'`
            error P108 at "x,,y": a value is missing between the commas
              help: the empty text is `''`
            error P108 at "y": expected a comma between the values
              help: write `test unique a,b` or `test not_null a` or `test accepted_values a = x,'y z'` or another of its forms; a line of prose must not start with `test`
            error P110 at "ducklake://main/customers": the column is missing
              help: write `<uri>.<column>`, such as `ducklake://main/customers.id`
            error P104 at "relationships": `test relationships` needs `<column> -> <uri>.<column>`
              help: write `test relationships a -> <uri>.<column>`
            error P108 at "5..1": no number of rows lies in 5..1
              help: write `<min>..<max>`, `<min>..`, `..<max>` or one number
            error P108 at "many": `many` is not a number of rows
              help: write `<min>..<max>`, `<min>..`, `..<max>` or one number
            error P108 at "..": the range has neither end
              help: write `<min>..<max>`, `<min>..`, `..<max>` or one number
            error P108 at "not-a,name": `,` cannot stand in the name of a test
              help: write `test unique a,b` or `test not_null a` or `test accepted_values a = x,'y z'` or another of its forms; a line of prose must not start with `test`
        "#]],
    );
}

#[test]
fn sql_must_be_one_expression() {
    check_each(
        r#"test expression "(a > 1"
test expression "a > 1) or (true"
test expression "a; b"
test expression "a -- b"
test expression ""
test expression a > 1
test unique a where="b = 'x""#,
        expect![[r#"
            error P128 at "(a > 1": the bracket is never closed
            error P128 at ") or (true": this bracket was never opened
            error P128 at "; b": `;` cannot stand in an expression
            error P128 at "-- b": a comment cannot stand in an expression
            error P128 at "": the expression is empty
            error P105 at "a > 1": the condition must stand in quotes
              help: write `test expression "a > 1"`
            error P128 at "'x": the quote is never closed
        "#]],
    );
}

#[test]
fn a_slice_needs_partitions() {
    check(
        "materialize ducklake://main/x
test unique a scope=slice",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            test: TestDecl { check: Unique(["a"]), severity: Error, filter: None, scope: Some(Slice) }
            error P123 at "slice": `scope=slice` needs a partitioned script
              help: remove `scope=slice`: the test is about the whole table
        "#]],
    );
}

#[test]
fn a_slice_of_a_partition() {
    check(
        "materialize ducklake://main/x
partitioned daily
test unique a scope=slice",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Replace)
            test: TestDecl { check: Unique(["a"]), severity: Error, filter: None, scope: Some(Slice) }
        "#]],
    );
}

#[test]
fn tests_need_materialize() {
    check(
        "test unique a",
        expect![[r#"
        test: TestDecl { check: Unique(["a"]), severity: Error, filter: None, scope: None }
        warning P122 at "test": `test` has no effect: the script materializes nothing
          help: add `materialize ducklake://main/orders_daily`
    "#]],
    );
}
