//! One golden query per generic test, and where each of them runs.

use expect_test::{ExpectFile, expect, expect_file};

use super::*;
use crate::id::LakeName;
use crate::sql::strategy::{Projected, STAGE};

fn lake(table: &str) -> Asset {
    Asset::Lake { lake: LakeName("main".into()), schema: "main".into(), table: table.into() }
}

fn declared(check: TestCheck) -> TestDecl {
    TestDecl { check, severity: TestSeverity::Error, filter: None, scope: None }
}

/// A subject that is replaced slice by slice; `strategy` and `is_partitioned` decide where its tests run.
fn build(test: &TestDecl, strategy: &WriteStrategy, is_partitioned: bool) -> Result<TestQuery, TestBuildError> {
    let write = Relation::in_catalog("_pt_w_main", "main", "orders");
    let slice = Slice::Identity { column: "_partition".into(), value: "2026-01-02".into() };
    let projection = Projection(vec![Projected::Column(Ident::new("id")), Projected::Column(Ident::new("status"))]);
    test_query(
        test,
        &TestSubject {
            asset: &lake("orders"),
            strategy,
            is_partitioned,
            slice_rows: &Rows::slice(&write, &slice),
            table_rows: &Rows::table(&write),
            staged_rows: &Rows::staged(&Relation::temp(STAGE), &projection),
            resolve: &|asset| match asset {
                Asset::Lake { table, .. } if table == "orders" => Some(write.clone()),
                Asset::Lake { table, .. } if table == "customers" => {
                    Some(Relation::in_catalog("lake", "main", "customers"))
                }
                _ => None,
            },
        },
    )
}

fn check(test: &TestDecl, golden: ExpectFile) {
    let query = build(test, &WriteStrategy::Append, false).unwrap();
    let ignored = query.ignored_sql.map(|sql| format!("\n-- ignored\n{sql};\n")).unwrap_or_default();
    golden.assert_eq(&format!("-- {}\n{};\n{ignored}", query.name, query.failures_sql));
}

fn relationship(parent: &str) -> TestCheck {
    TestCheck::Relationships { column: "customer_id".into(), parent: lake(parent), parent_column: "id".into() }
}

#[test]
fn each_generic_test_returns_its_failing_rows() {
    let column = || "status".to_owned();
    let accepted = |values: &[&str]| TestCheck::AcceptedValues {
        column: column(),
        values: values.iter().map(|v| (*v).into()).collect(),
    };
    check(&declared(TestCheck::Unique(vec!["id".into(), "day".into()])), expect_file!["./golden/unique.sql"]);
    check(&declared(TestCheck::NotNull(column())), expect_file!["./golden/not_null.sql"]);
    check(&declared(accepted(&["open", "it's"])), expect_file!["./golden/accepted_values.sql"]);
    check(&declared(accepted(&["open", "NULL"])), expect_file!["./golden/accepted_values_null.sql"]);
    check(&declared(relationship("customers")), expect_file!["./golden/relationships.sql"]);
    check(&declared(relationship("orders")), expect_file!["./golden/relationships_self.sql"]);
    check(&declared(TestCheck::Expression("total >= 0 -- cents".into())), expect_file!["./golden/expression.sql"]);
    check(&declared(TestCheck::RowCount { min: Some(1), max: Some(1_000) }), expect_file!["./golden/row_count.sql"]);
}

#[test]
fn a_filter_stands_in_its_own_brackets() {
    let filter = Some("day > DATE '2026-01-01' OR status = 'x' -- why".to_owned());
    let unique = TestDecl { filter: filter.clone(), ..declared(TestCheck::Unique(vec!["id".into()])) };
    check(&unique, expect_file!["./golden/unique_where.sql"]);
    let counted = TestDecl { filter, ..declared(TestCheck::RowCount { min: None, max: Some(9) }) };
    check(&counted, expect_file!["./golden/row_count_where.sql"]);
}

#[test]
fn a_condition_cannot_escape() {
    let escaping = declared(TestCheck::Expression("true) OR (true".into()));
    let error = build(&escaping, &WriteStrategy::Replace, false).unwrap_err();
    expect!["the condition `true) OR (true` cannot stand in a test"].assert_eq(&error.to_string());
    let filter = TestDecl { filter: Some("a; DROP TABLE t".into()), ..declared(TestCheck::NotNull("a".into())) };
    assert!(matches!(
        build(&filter, &WriteStrategy::Replace, false),
        Err(TestBuildError::Condition { source: FragmentError::Semicolon, .. })
    ));
}

#[test]
fn a_parent_that_cannot_be_read_is_an_error() {
    let error = build(&declared(relationship("nowhere")), &WriteStrategy::Replace, false).unwrap_err();
    assert_eq!(error, TestBuildError::UnknownParent(lake("nowhere")));
}

#[test]
fn the_rows_are_those_of_the_scope() {
    let merge = WriteStrategy::Merge { key: vec!["id".into()], order_by: None };
    let mut table = String::new();
    for (name, strategy) in
        [("replace", &WriteStrategy::Replace), ("merge", &merge), ("append", &WriteStrategy::Append)]
    {
        for (is_partitioned, scope) in
            [(false, None), (false, Some(TestScope::Slice)), (true, None), (true, Some(TestScope::Table))]
        {
            for (kind, check) in [("not_null", TestCheck::NotNull("id".into())), ("self", relationship("orders"))] {
                let query = build(&TestDecl { scope, ..declared(check) }, strategy, is_partitioned).unwrap();
                let rows = match &query.failures_sql {
                    sql if sql.contains(r#"FROM "_pt_stage""#) => "stage",
                    sql if sql.contains(r#"WHERE "_partition" ="#) => "slice",
                    _ => "table",
                };
                assert_eq!(query.on_stage, rows == "stage");
                let shape = if is_partitioned { "partitioned" } else { "whole" };
                table.push_str(&format!("{name:8} {shape:12} {:13} {kind:9} {rows}\n", format!("{scope:?}")));
            }
        }
    }
    expect![[r#"
        replace  whole        None          not_null  stage
        replace  whole        None          self      table
        replace  whole        Some(Slice)   not_null  stage
        replace  whole        Some(Slice)   self      table
        replace  partitioned  None          not_null  stage
        replace  partitioned  None          self      slice
        replace  partitioned  Some(Table)   not_null  table
        replace  partitioned  Some(Table)   self      table
        merge    whole        None          not_null  table
        merge    whole        None          self      table
        merge    whole        Some(Slice)   not_null  table
        merge    whole        Some(Slice)   self      table
        merge    partitioned  None          not_null  slice
        merge    partitioned  None          self      slice
        merge    partitioned  Some(Table)   not_null  table
        merge    partitioned  Some(Table)   self      table
        append   whole        None          not_null  table
        append   whole        None          self      table
        append   whole        Some(Slice)   not_null  table
        append   whole        Some(Slice)   self      table
        append   partitioned  None          not_null  slice
        append   partitioned  None          self      slice
        append   partitioned  Some(Table)   not_null  table
        append   partitioned  Some(Table)   self      table
    "#]]
    .assert_eq(&table);
}
