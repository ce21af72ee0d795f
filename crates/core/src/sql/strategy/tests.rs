//! One golden `.sql` file per cell of the table of strategies, and the algebra of slices, projections and guards.

use std::collections::BTreeMap;

use chrono::{TimeZone, Utc};
use chrono_tz::{America, Tz};
use expect_test::{Expect, ExpectFile, expect, expect_file};

use super::*;
use crate::annotation::WriteStrategy;
use crate::asset::Asset;
use crate::id::LakeName;
use crate::partition::{PartitionKey, TimeUnit, Window};
use crate::schema::{Column, Schema};
use crate::sql::{Fragment, Relation, Statement};

fn schema(columns: &[(&str, &str)]) -> Schema {
    let column = |(name, data_type): &(&str, &str)| Column { name: (*name).into(), data_type: (*data_type).into() };
    Schema { columns: columns.iter().map(column).collect() }
}

fn staged() -> Schema {
    schema(&[
        ("id", "INTEGER"),
        ("ordered_at", "TIMESTAMP WITH TIME ZONE"),
        ("total", "HUGEINT"),
        ("_partition", "VARCHAR"),
    ])
}

fn target(identity: Option<(&str, &str)>) -> Target {
    let casts = BTreeMap::from([("total".to_owned(), "BIGINT".to_owned())]);
    Target {
        write: Relation::in_catalog("_pt_w_main", "main", "orders"),
        stage: Relation::temp(STAGE),
        projection: projection(&staged(), &casts, &["_partition".to_owned()], identity),
    }
}

fn day() -> Window {
    Window {
        start: Utc.with_ymd_and_hms(2026, 1, 2, 5, 0, 0).unwrap(),
        end: Utc.with_ymd_and_hms(2026, 1, 3, 5, 0, 0).unwrap(),
    }
}

fn identity() -> Slice {
    Slice::identity("_partition", &PartitionKey("2026-01-02".into()))
}

fn window() -> Slice {
    Slice::window("ordered_at", "TIMESTAMP WITH TIME ZONE", &day(), Tz::UTC).unwrap()
}

fn merge_by(key: &[&str]) -> WriteStrategy {
    WriteStrategy::Merge { key: key.iter().map(|k| (*k).to_owned()).collect(), order_by: None }
}

fn layout(partition_by: PartitionBy) -> Layout {
    Layout {
        partition_by,
        comment: Some("It's one row per order".into()),
        column_comments: vec![("total".into(), "in cents".into())],
    }
}

fn check(statements: &[Statement], golden: ExpectFile) {
    let end = |sql: &str| if sql.lines().last().is_some_and(|line| line.contains("--")) { "\n;" } else { ";" };
    let text: Vec<String> =
        statements.iter().map(|s| format!("-- {}\n{}{}\n", s.purpose, s.sql, end(&s.sql))).collect();
    golden.assert_eq(&text.join("\n"));
}

fn check_write(strategy: &WriteStrategy, slice: Option<&Slice>, exists: bool, golden: ExpectFile) {
    let (identity, partition_by) = match slice {
        Some(Slice::Identity { column, value }) => {
            (Some((column.as_str(), value.as_str())), PartitionBy::Identity(column.clone()))
        }
        Some(Slice::Window { column, .. }) => {
            (None, PartitionBy::Calendar { column: column.clone(), unit: TimeUnit::Day })
        }
        None => (None, PartitionBy::Nothing),
    };
    check(&write(strategy, &target(identity), slice, &layout(partition_by), exists).unwrap(), golden);
}

#[test]
fn replace_deletes_and_inserts() {
    check_write(&WriteStrategy::Replace, None, true, expect_file!["./golden/replace_table.sql"]);
    check_write(&WriteStrategy::Replace, Some(&identity()), true, expect_file!["./golden/replace_identity.sql"]);
    check_write(&WriteStrategy::Replace, Some(&window()), true, expect_file!["./golden/replace_window.sql"]);
}

#[test]
fn merge_deletes_by_key_and_inserts() {
    check_write(&merge_by(&["id"]), None, true, expect_file!["./golden/merge_table.sql"]);
    check_write(&merge_by(&["id", "total"]), Some(&identity()), true, expect_file!["./golden/merge_identity.sql"]);
    check_write(&merge_by(&["id"]), Some(&window()), true, expect_file!["./golden/merge_window.sql"]);
}

#[test]
fn append_inserts_only() {
    check_write(&WriteStrategy::Append, None, true, expect_file!["./golden/append_table.sql"]);
    check_write(&WriteStrategy::Append, Some(&identity()), true, expect_file!["./golden/append_identity.sql"]);
    check_write(&WriteStrategy::Append, Some(&window()), true, expect_file!["./golden/append_window.sql"]);
}

#[test]
fn a_first_write_creates_an_empty_table_then_fills_it() {
    for strategy in [WriteStrategy::Replace, merge_by(&["id"]), WriteStrategy::Append] {
        check_write(&strategy, None, false, expect_file!["./golden/create_table.sql"]);
        check_write(&strategy, Some(&identity()), false, expect_file!["./golden/create_identity.sql"]);
        check_write(&strategy, Some(&window()), false, expect_file!["./golden/create_window.sql"]);
    }
}

#[test]
fn calendar_partitions_go_down_to_the_unit() {
    let partition_line = |unit| {
        let layout = Layout { partition_by: PartitionBy::Calendar { column: "t".into(), unit }, ..Layout::default() };
        create(&target(None), &layout)[1].sql.lines().last().unwrap().to_owned()
    };
    assert_eq!(partition_line(TimeUnit::Month), r#"SET PARTITIONED BY (year("t"), month("t"))"#);
    assert_eq!(partition_line(TimeUnit::Week), r#"SET PARTITIONED BY (year("t"), month("t"), day("t"))"#);
    assert_eq!(partition_line(TimeUnit::Hour), r#"SET PARTITIONED BY (year("t"), month("t"), day("t"), hour("t"))"#);
}

#[test]
fn a_rebuild_restores_the_spec_and_keeps_the_other_slices() {
    let old = schema(&[("id", "INTEGER"), ("gone", "VARCHAR"), ("_partition", "VARCHAR"), ("total", "INTEGER")]);
    let new = schema(&[
        ("id", "INTEGER"),
        ("ordered_at", "TIMESTAMP WITH TIME ZONE"),
        ("total", "BIGINT"),
        ("_partition", "VARCHAR"),
    ]);
    let kept = Kept { replaced: Some(identity()), projection: kept_projection(&old, &new) };
    let target_slice = target(Some(("_partition", "2026-01-02")));
    let by_identity = layout(PartitionBy::Identity("_partition".into()));
    check(&rebuild(&target_slice, &by_identity, Some(&kept)), expect_file!["./golden/rebuild_identity.sql"]);
    check(&rebuild(&target(None), &layout(PartitionBy::Nothing), None), expect_file!["./golden/rebuild_table.sql"]);
}

#[test]
fn added_columns_have_no_default() {
    let added = schema(&[("note", "VARCHAR"), ("a \"b\"", "DECIMAL(10,2)")]);
    check(&add_columns(&target(None).write, &added.columns), expect_file!["./golden/add_columns.sql"]);
}

#[test]
fn a_view_keeps_the_query_as_written() {
    let relation = Relation::in_catalog("_pt_w_main", "main", "recent_orders");
    let statements = view(&relation, "SELECT *\nFROM orders -- all of them", &layout(PartitionBy::Nothing));
    check(&statements, expect_file!["./golden/view.sql"]);
}

#[test]
fn the_stage_survives_a_trailing_comment() {
    let select = "SELECT 1 AS id, 2 AS total -- note";
    let plain = stage(&Relation::temp(STAGE), select, None);
    assert_eq!(&plain.statement.sql[plain.select_at..plain.select_at + select.len()], select);
    check(&[plain.statement], expect_file!["./golden/stage.sql"]);

    let key = ["id".to_owned()];
    let deduplicate = Deduplicate { key: (&key).into(), order_by: Fragment::new("total DESC -- newest").unwrap() };
    let kept = stage(&Relation::temp(STAGE), select, Some(&deduplicate));
    assert_eq!(&kept.statement.sql[kept.select_at..kept.select_at + select.len()], select);
    check(&[kept.statement], expect_file!["./golden/stage_order_by.sql"]);
}

#[test]
fn an_assets_fence_never_changes() {
    let asset = |table: &str| Asset::Lake { lake: LakeName("main".into()), schema: "main".into(), table: table.into() };
    assert_eq!(fence_number(&asset("orders")), 7);
    assert_eq!(fence_number(&asset("orders_daily")), 3);
    check(&[fence("_pt_w_main", &asset("orders"))], expect_file!["./golden/fence.sql"]);
    let made = create_fences("_pt_w_main");
    assert_eq!(made.len(), 1 + usize::from(FENCES));
    check(&[made[0].clone(), made[16].clone()], expect_file!["./golden/create_fences.sql"]);
}

/// The columns of `orders` beside the query's: one is new, one the query does not give any more.
fn compared() -> Vec<ComparedColumn> {
    let column = |name: &str, data_type: &str, is_staged, is_live| ComparedColumn {
        name: name.into(),
        data_type: data_type.into(),
        is_staged,
        is_live,
    };
    vec![
        column("id", "INTEGER", true, true),
        column("ordered_at", "TIMESTAMP WITH TIME ZONE", true, true),
        column("total", "BIGINT", true, true),
        column("weight", "DOUBLE", false, true),
        column("note", "STRUCT(a FLOAT, b VARCHAR)", true, false),
    ]
}

fn check_comparison(comparison: &Comparison, write: &[Statement], golden: ExpectFile) {
    let all: Vec<Statement> = comparison.statements().chain(write).cloned().collect();
    check(&all, golden);
}

#[test]
fn a_replace_that_compares_first_writes_the_rows_that_differ() {
    let (columns, slice, target) = (compared(), window(), target(None));
    let compared = Compared { target: &target, columns: &columns, slice: Some(&slice) };
    check_comparison(
        &compare_replace(&compared),
        &replace_differing(&compared),
        expect_file!["./golden/if_changed_replace.sql"],
    );
}

#[test]
fn without_row_ids_a_replace_that_differs_is_written_whole() {
    let mut columns = compared();
    columns[0].name = "RowId".into();
    let target = target(None);
    let compared = Compared { target: &target, columns: &columns, slice: None };
    assert_eq!(compare_replace(&compared).after, []);
    assert_eq!(replace_differing(&compared), replace(&target, None));
}

#[test]
fn a_merge_that_compares_first_writes_the_keys_whose_rows_differ() {
    let (columns, slice) = (compared(), identity());
    let target = target(Some(("_partition", "2026-01-02")));
    let compared = Compared { target: &target, columns: &columns, slice: Some(&slice) };
    let key = ["id".to_owned(), "total".to_owned()];
    check_comparison(
        &compare_merge(&compared, &key),
        &merge_differing(&compared, &key),
        expect_file!["./golden/if_changed_merge.sql"],
    );
}

#[test]
fn who_compares_first() {
    let replace = IfChangedFacts {
        is_declared: false,
        strategy: &WriteStrategy::Replace,
        is_whole: true,
        has_key: false,
        has_consumers: true,
        rows: Some(999_999),
    };
    assert!(compares_first(&replace));
    assert!(!compares_first(&IfChangedFacts { rows: Some(1_000_000), ..replace }));
    assert!(!compares_first(&IfChangedFacts { rows: None, ..replace }));
    assert!(compares_first(&IfChangedFacts { rows: None, has_key: true, ..replace }));
    assert!(!compares_first(&IfChangedFacts { is_whole: false, ..replace }));
    assert!(!compares_first(&IfChangedFacts { has_consumers: false, ..replace }));
    let declared = IfChangedFacts { is_declared: true, has_consumers: false, rows: None, is_whole: false, ..replace };
    assert!(compares_first(&declared));
    let merge = merge_by(&["id"]);
    assert!(compares_first(&IfChangedFacts { strategy: &merge, ..declared }));
    assert!(!compares_first(&IfChangedFacts { strategy: &merge, has_key: true, ..replace }));
    assert!(!compares_first(&IfChangedFacts { strategy: &WriteStrategy::Append, ..declared }));
}

struct HistoryCase {
    updated_at: Option<&'static str>,
    close_deleted: bool,
    exists: bool,
}

fn check_history(case: &HistoryCase, golden: ExpectFile) {
    let (columns, target) = (compared(), target(None));
    let (key, track) = (["id".to_owned()], ["total".to_owned(), "weight".to_owned(), "note".to_owned()]);
    let write = HistoryWrite {
        target: &target,
        columns: &columns,
        key: &key,
        track: if case.updated_at.is_some() { &[] } else { &track },
        updated_at: case.updated_at,
        close_deleted: case.close_deleted,
        at: "TIMESTAMPTZ '2026-01-02 05:00:00+00'",
        exists: case.exists,
    };
    let mut statements = history(&write, &layout(PartitionBy::Nothing));
    let view = Relation::in_catalog("_pt_w_main", "main", "orders_current");
    statements.extend(current_view(&write, &view, "The current rows."));
    let guards = history_guards(&write);
    statements.push(Statement::new("guard the stage", guards.summary));
    statements.push(Statement::new("look for versions that overlap", broken_rows(&write)));
    check_comparison(&compare_history(&write), &statements, golden);
}

#[test]
fn history_ends_and_begins_versions() {
    let by_check = HistoryCase { updated_at: None, close_deleted: false, exists: true };
    check_history(&by_check, expect_file!["./golden/history_check.sql"]);
    let closing = HistoryCase { close_deleted: true, ..by_check };
    check_history(&closing, expect_file!["./golden/history_check_close.sql"]);
    let by_time = HistoryCase { updated_at: Some("ordered_at"), ..by_check };
    check_history(&by_time, expect_file!["./golden/history_time.sql"]);
    let closing = HistoryCase { updated_at: Some("ordered_at"), ..closing };
    check_history(&closing, expect_file!["./golden/history_time_close.sql"]);
    let first = HistoryCase { exists: false, ..closing };
    check_history(&first, expect_file!["./golden/history_first.sql"]);
}

#[test]
fn the_table_of_strategies() {
    let history = WriteStrategy::History {
        key: vec!["id".into()],
        track: vec![],
        updated_at: None,
        close_deleted: false,
        order_by: None,
    };
    let strategies = [
        ("replace", WriteStrategy::Replace),
        ("merge", merge_by(&["id"])),
        ("append", WriteStrategy::Append),
        ("history", history),
        ("view", WriteStrategy::View),
        ("manual", WriteStrategy::Manual),
    ];
    let mut table = String::new();
    for (name, strategy) in &strategies {
        for (is_partitioned, exists) in [(false, false), (false, true), (true, false), (true, true)] {
            let shape = if is_partitioned { "partitioned" } else { "whole" };
            let age = if exists { "exists" } else { "first" };
            let parts = match cell(strategy, is_partitioned, exists) {
                Ok(parts) => format!("{parts:?}"),
                Err(unsupported) => format!("error: {unsupported}"),
            };
            table.push_str(&format!("{name:8} {shape:12} {age:7} {parts}\n"));
        }
    }
    expect![[r#"
        replace  whole        first   [CreateTable, Insert]
        replace  whole        exists  [DeleteAll, Insert]
        replace  partitioned  first   [CreateTable, Insert]
        replace  partitioned  exists  [DeleteSlice, Insert]
        merge    whole        first   [CreateTable, Insert]
        merge    whole        exists  [DeleteKeys, Insert]
        merge    partitioned  first   [CreateTable, Insert]
        merge    partitioned  exists  [DeleteKeysInSlice, Insert]
        append   whole        first   [CreateTable, Insert]
        append   whole        exists  [Insert]
        append   partitioned  first   [CreateTable, Insert]
        append   partitioned  exists  [Insert]
        history  whole        first   [CreateTable, Insert, CreateView]
        history  whole        exists  [EndVersions, Insert]
        history  partitioned  first   error: a history table has no slices
        history  partitioned  exists  error: a history table has no slices
        view     whole        first   [CreateView]
        view     whole        exists  [CreateView]
        view     partitioned  first   error: a view has no slices
        view     partitioned  exists  error: a view has no slices
        manual   whole        first   [RunScript]
        manual   whole        exists  [RunScript]
        manual   partitioned  first   [RunScript]
        manual   partitioned  exists  [RunScript]
    "#]]
    .assert_eq(&table);
}

#[test]
fn windows_are_typed_as_their_column() {
    let check = |data_type: &str, zone: Tz, expected: Expect| {
        let slice = Slice::window("t", data_type, &day(), zone);
        expected.assert_eq(&slice.map_or("no time in it".to_owned(), |slice| slice.predicate(Some("s"))));
    };
    check(
        "TIMESTAMP WITH TIME ZONE",
        Tz::UTC,
        expect![[r#"s."t" >= TIMESTAMPTZ '2026-01-02 05:00:00+00' AND s."t" < TIMESTAMPTZ '2026-01-03 05:00:00+00'"#]],
    );
    check(
        "TIMESTAMP",
        Tz::UTC,
        expect![[r#"s."t" >= TIMESTAMP '2026-01-02 05:00:00' AND s."t" < TIMESTAMP '2026-01-03 05:00:00'"#]],
    );
    check("DATE", America::New_York, expect![[r#"s."t" >= DATE '2026-01-02' AND s."t" < DATE '2026-01-03'"#]]);
    check("VARCHAR", Tz::UTC, expect!["no time in it"]);
}

#[test]
fn names_and_values_are_quoted() {
    let slice = Slice::identity("a\"b", &PartitionKey("it's".into()));
    assert_eq!(slice.predicate(None), r#""a""b" = 'it''s'"#);
}

#[test]
fn an_inherited_identity_column_is_replaced_by_our_own() {
    let stage = schema(&[("_PARTITION", "VARCHAR"), ("id", "INTEGER")]);
    let projected = projection(&stage, &BTreeMap::new(), &[], Some(("_partition", "2026-01-02")));
    assert_eq!(projected.to_string(), "  \"id\",\n  '2026-01-02' AS \"_partition\"");
}

#[test]
fn guards_ask_only_what_the_rules_need() {
    let key = ["id".to_owned(), "total".to_owned()];
    let window = window();
    let rules = GuardRules { key: &key, window: Some(&window), refuses_empty: false };
    let with_all = guards(&target(None), &rules);
    let samples: Vec<String> = with_all.samples.iter().map(|(kind, sql)| format!("-- {kind:?}\n{sql};\n")).collect();
    let text = format!("-- summary\n{};\n\n{}", with_all.summary, samples.join("\n"));
    expect_file!["./golden/guards.sql"].assert_eq(&text);

    let with_none = guards(&target(None), &GuardRules::default());
    assert_eq!(with_none.samples, []);
    expect_file!["./golden/guards_none.sql"].assert_eq(&format!("-- summary\n{};\n", with_none.summary));
}

#[test]
fn broken_guards_say_how_many_and_what_to_do() {
    let key = ["id".to_owned()];
    let window = window();
    let rules = GuardRules { key: &key, window: Some(&window), refuses_empty: true };
    let counts = GuardCounts {
        row_count: 10,
        null_keys: 1,
        duplicate_keys: 2,
        duplicate_rows: 5,
        outside_window: 3,
        null_by: 4,
    };
    let text: Vec<String> =
        judge(&counts, &rules).iter().map(|f| format!("{:?}: {}\n  hint: {}\n", f.kind, f.message, f.help)).collect();
    expect![[r#"
        NullKeys: 1 row has NULL in the key `id`
          hint: filter them out, or give them a value: `coalesce(id, …)`
        DuplicateKeys: 2 values of the key `id` stand in 5 rows
          hint: make the key complete, aggregate by it, or say which row is kept: `order_by=<column desc>`
        OutsideWindow: 3 rows have `ordered_at` outside the partition: from TIMESTAMPTZ '2026-01-02 05:00:00+00' up to TIMESTAMPTZ '2026-01-03 05:00:00+00', exclusive
          hint: read only the partition's rows: `WHERE in_partition(ordered_at)`
        NullBy: 4 rows have NULL in `ordered_at`, which decides the partition
          hint: filter them out: `WHERE ordered_at IS NOT NULL`
    "#]].assert_eq(&text.concat());
}

#[test]
fn an_empty_stage_is_refused_only_when_it_would_empty_something() {
    let empty = GuardCounts::default();
    let refusing = GuardRules { refuses_empty: true, ..GuardRules::default() };
    let kinds: Vec<GuardKind> = judge(&empty, &refusing).iter().map(|failure| failure.kind).collect();
    assert_eq!(kinds, [GuardKind::EmptyReplace]);
    assert_eq!(judge(&empty, &GuardRules::default()), []);
    assert_eq!(judge(&GuardCounts { row_count: 1, ..empty }, &refusing), []);
}
