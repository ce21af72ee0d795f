//! The target and the strategy.

use expect_test::expect;

use super::check;

#[test]
fn without_more_words_the_table_is_replaced() {
    check(
        "materialize ducklake://main/orders",
        expect![[r#"
        materialize: ("ducklake://main/orders", Replace)
    "#]],
    );
}

#[test]
fn a_key_merges() {
    check(
        r#"materialize ducklake://main/orders key=id,"Order No""#,
        expect![[r#"
        materialize: ("ducklake://main/orders", Merge { key: ["id", "Order No"], order_by: None })
    "#]],
    );
}

#[test]
fn a_quoted_list_of_keys_merges() {
    check(
        r#"materialize ducklake://main/orders key="id, no""#,
        expect![[r#"
        materialize: ("ducklake://main/orders", Merge { key: ["id", "no"], order_by: None })
    "#]],
    );
}

#[test]
fn order_by_needs_no_quotes() {
    check(
        "materialize ducklake://main/orders key=id order_by=updated_at desc allow_empty",
        expect![[r#"
        materialize: ("ducklake://main/orders", Merge { key: ["id"], order_by: Some("updated_at desc") })
        allow_empty: true
    "#]],
    );
}

#[test]
fn order_by_may_be_quoted() {
    check(
        r#"materialize ducklake://main/orders key=id order_by="updated_at desc, n nulls last""#,
        expect![[r#"
        materialize: ("ducklake://main/orders", Merge { key: ["id"], order_by: Some("updated_at desc, n nulls last") })
    "#]],
    );
}

#[test]
fn append_on_the_line() {
    check(
        "materialize ducklake://main/orders append",
        expect![[r#"
        materialize: ("ducklake://main/orders", Append)
    "#]],
    );
}

#[test]
fn append_as_a_word() {
    check(
        "materialize ducklake://main/orders
append",
        expect![[r#"
            materialize: ("ducklake://main/orders", Append)
        "#]],
    );
}

#[test]
fn unique_key_is_key() {
    check(
        "materialize ducklake://main/orders
unique_key a,b",
        expect![[r#"
            materialize: ("ducklake://main/orders", Merge { key: ["a", "b"], order_by: None })
        "#]],
    );
}

#[test]
fn append_wins_over_a_key_with_a_warning() {
    check(
        "materialize ducklake://main/orders key=id append",
        expect![[r#"
        materialize: ("ducklake://main/orders", Append)
        warning P119 at "id": the key has no effect: `append` wins
          label at "append": `append` stands here
          help: remove `append` to replace rows with the same key, or remove the key
    "#]],
    );
}

#[test]
fn append_wins_over_unique_key_with_a_warning() {
    check(
        "append
unique_key id
materialize ducklake://main/orders",
        expect![[r#"
            materialize: ("ducklake://main/orders", Append)
            warning P119 at "unique_key id": the key has no effect: `append` wins
              label at "append": `append` stands here
              help: remove `append` to replace rows with the same key, or remove the key
        "#]],
    );
}

#[test]
fn two_keys_contradict_each_other() {
    check(
        "materialize ducklake://main/orders key=id
unique_key a,id",
        expect![[r#"
            materialize: ("ducklake://main/orders", Merge { key: ["id"], order_by: None })
            error P118 at "unique_key a,id": `unique_key` and `key=` name other columns
              label at "id": the key on the `materialize` line
              help: keep one of the two
        "#]],
    );
}

#[test]
fn two_equal_keys_are_one() {
    check(
        "materialize ducklake://main/orders key=a,ID
unique_key id,a",
        expect![[r#"
            materialize: ("ducklake://main/orders", Merge { key: ["a", "ID"], order_by: None })
        "#]],
    );
}

#[test]
fn bare_ducklake_is_the_script_s_table() {
    check(
        "materialize ducklake",
        expect![[r#"
        materialize: ("ducklake://main/orders_daily", Replace)
    "#]],
    );
}

#[test]
fn history_in_any_order() {
    check(
        "materialize ducklake://main/c key=id history updated_at=ts deletes=close allow_empty order_by=\"seq desc\"",
        expect![[r#"
            materialize: ("ducklake://main/c", History { key: ["id"], track: [], updated_at: Some("ts"), close_deleted: true, order_by: Some("seq desc") })
            allow_empty: true
        "#]],
    );
    check(
        "materialize ducklake://main/c key=id track=a,b history",
        expect![[r#"
        materialize: ("ducklake://main/c", History { key: ["id"], track: ["a", "b"], updated_at: None, close_deleted: false, order_by: None })
    "#]],
    );
}

#[test]
fn options_that_a_history_has_no_use_for_are_refused() {
    check(
        "materialize history ducklake://main/c key=id track=a updated_at=ts if_changed append allow_empty",
        expect![[r#"
            materialize: ("ducklake://main/c", History { key: ["id"], track: ["a"], updated_at: Some("ts"), close_deleted: false, order_by: None })
            if_changed: true
            allow_empty: true
            error P123 at "a": `track=` does not apply to `history` with `updated_at=`, where every time is a version
              help: remove `track=`
            error P123 at "if_changed": `if_changed` does not apply to `history`, which writes only what has changed anyway
              help: remove `if_changed`
            error P123 at "append": `append` does not apply to `history`
              help: remove `append`
            error P123 at "allow_empty": `allow_empty` does not apply to `history` without `deletes=close`
              help: remove `allow_empty`
        "#]],
    );
}

#[test]
fn scd2_is_history() {
    check(
        "materialize scd2 ducklake://main/c key=id",
        expect![[r#"
            materialize: ("ducklake://main/c", History { key: ["id"], track: [], updated_at: None, close_deleted: false, order_by: None })
        "#]],
    );
}

#[test]
fn history_needs_a_key() {
    check(
        "materialize history ducklake://main/c",
        expect![[r#"
            error P130 at "materialize history ducklake://main/c": `materialize history` needs a key
              help: add `key=` with the columns that identify a row
        "#]],
    );
}

#[test]
fn views_have_no_key() {
    check(
        "materialize view ducklake://main/v key=a order_by=b allow_empty if_changed append track=a",
        expect![[r#"
            materialize: ("ducklake://main/v", View)
            if_changed: true
            allow_empty: true
            error P123 at "a": `key=` does not apply to a view
              help: remove `key=`
            error P123 at "b": `order_by=` does not apply to a view
              help: remove `order_by=`
            error P123 at "allow_empty": `allow_empty` does not apply to a view
              help: remove `allow_empty`
            error P123 at "if_changed": `if_changed` does not apply to a view
              help: remove `if_changed`
            error P123 at "append": `append` does not apply to a view
              help: remove `append`
            error P123 at "a": `track=` does not apply to a view
              help: remove `track=`
        "#]],
    );
}

#[test]
fn manual_has_no_strategy_options() {
    check(
        "materialize manual ducklake://main/m key=a",
        expect![[r#"
        materialize: ("ducklake://main/m", Manual)
        error P123 at "a": `key=` does not apply to `manual`
          help: remove `key=`
    "#]],
    );
}

#[test]
fn modes_exclude_each_other() {
    check(
        "materialize view manual ducklake://main/m",
        expect![[r#"
        materialize: ("ducklake://main/m", View)
        error P118 at "manual": `view` and `manual` exclude each other
          label at "view": the first one, which counts
          help: keep one of the two
    "#]],
    );
}

#[test]
fn options_of_history_need_history() {
    check(
        "materialize ducklake://main/m key=a track=b deletes=close updated_at=c",
        expect![[r#"
        materialize: ("ducklake://main/m", Merge { key: ["a"], order_by: None })
        error P123 at "b": `track=` does not apply to a table without `history`
          help: remove `track=`
        error P123 at "close": `deletes=` does not apply to a table without `history`
          help: remove `deletes=`
        error P123 at "c": `updated_at=` does not apply to a table without `history`
          help: remove `updated_at=`
    "#]],
    );
}

#[test]
fn order_by_needs_a_key() {
    check(
        "materialize ducklake://main/m order_by=a",
        expect![[r#"
        materialize: ("ducklake://main/m", Replace)
        error P123 at "a": `order_by=` does not apply to a table without `key=`
          help: remove `order_by=`
    "#]],
    );
}

#[test]
fn append_takes_no_allow_empty() {
    check(
        "materialize ducklake://main/m append allow_empty",
        expect![[r#"
        materialize: ("ducklake://main/m", Append)
        allow_empty: true
        error P123 at "allow_empty": `allow_empty` does not apply to `append`
          help: remove `allow_empty`
    "#]],
    );
}

#[test]
fn the_span_of_an_option_is_the_option() {
    check(
        "materialize ducklake://main/m kye=a key=a key=b order_by= append=true apend replace colour=red",
        expect![[r#"
            materialize: ("ducklake://main/m", Merge { key: ["a"], order_by: None })
            error P106 at "kye": unknown option `kye` of `materialize`
              help: did you mean `key=`?
            error P107 at "key": the option `key` is given twice
              help: keep one of them
            error P104 at "order_by=": the option `order_by=` has no value
              help: write the value directly after `=`, in quotes when it holds white space
            error P106 at "append": `append` takes no value
              help: write `append` alone
            error P105 at "apend": unexpected `apend` after `materialize`
              help: did you mean `append`?
            error P105 at "replace": `replace` is not written
              help: remove it: without a key and `append`, the table or slice is replaced
            error P106 at "colour": unknown option `colour` of `materialize`
              help: the options are `key=`, `order_by=`, `on_delete=`, `on_schema_change=`, `track=`, `updated_at=`, `deletes=`, `column=`, `format=`
        "#]],
    );
}

#[test]
fn a_wrong_target_is_positioned() {
    check(
        "materialize ducklak://main/m",
        expect![[r#"
        error P110 at "ducklak://main/m": unknown scheme `ducklak`
          help: did you mean `ducklake`?
    "#]],
    );
}

#[test]
fn a_target_with_a_schema_by_slash_is_helped() {
    check(
        "materialize ducklake://main/sales/m",
        expect![[r#"
        error P110 at "/m": a table's name cannot hold `/`
          help: a schema is separated by a dot: `sales.m`
    "#]],
    );
}

#[test]
fn a_missing_target_is_said() {
    check(
        "materialize key=a",
        expect![[r#"
            error P104 at "materialize key=a": `materialize` needs the URI of its target
              help: write `materialize <uri> [key=a,b [order_by="<column> desc"]] [append] [if_changed] [allow_empty]` or `materialize history <uri> key=a,b [track=c,d | updated_at=<column>] [deletes=close [allow_empty]]` or `materialize view <uri>` or another of its forms; a line of prose must not start with `materialize`
        "#]],
    );
}

#[test]
fn a_second_materialize_is_refused() {
    check(
        "materialize ducklake://main/a
materialize ducklake://main/b",
        expect![[r#"
            materialize: ("ducklake://main/a", Replace)
            error P103 at "materialize": `materialize` stands twice
              label at "materialize": the first one, which counts
              help: keep one of the two lines
        "#]],
    );
}

#[test]
fn a_duplicate_key_column_is_refused() {
    check(
        "materialize ducklake://main/a key=a,b,A",
        expect![[r#"
        materialize: ("ducklake://main/a", Replace)
        error P117 at "A": `A` is named twice
          label at "a": here first
          help: name each column once
    "#]],
    );
}

#[test]
fn an_empty_key_column_is_refused() {
    check(
        "materialize ducklake://main/a key=a,,b",
        expect![[r#"
        materialize: ("ducklake://main/a", Replace)
        error P116 at "a,,b": a column's name is missing between the commas
          help: write the list without white space: `a,b`
    "#]],
    );
}

#[test]
fn an_odd_key_column_must_be_quoted() {
    check(
        "materialize ducklake://main/a key=order-id",
        expect![[r#"
        materialize: ("ducklake://main/a", Replace)
        error P116 at "order-id": `-` cannot stand in a plain column name
          help: quote the name: `"order-id"`
    "#]],
    );
}

#[test]
fn an_unclosed_quote_is_positioned() {
    check(
        r#"materialize ducklake://main/a key="a"#,
        expect![[r#"
        error P109 at "\"a": the quote " is never closed
          help: close it on the same line with "
    "#]],
    );
}

#[test]
fn other_targets_are_checked_only() {
    check(
        "materialize datatable://app/users",
        expect![[r#"
            materialize: ("datatable://app/users", Replace)
        "#]],
    );
}

#[test]
fn if_changed_stands_beside_a_key_or_alone() {
    check(
        "materialize ducklake://main/a key=id if_changed",
        expect![[r#"
        materialize: ("ducklake://main/a", Merge { key: ["id"], order_by: None })
        if_changed: true
    "#]],
    );
}

#[test]
fn objects_may_have_a_partition() {
    check(
        "materialize s3://out/{partition}.parquet format=parquet
partitioned daily",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("s3://out/{partition}.parquet", Replace)
            format: "parquet"
        "#]],
    );
}

#[test]
fn a_partition_in_the_target_needs_partitioned() {
    check(
        "materialize s3://out/{partition}.parquet",
        expect![[r#"
            materialize: ("s3://out/{partition}.parquet", Replace)
            error P108 at "s3://out/{partition}.parquet": `{partition}` stands in the target of a script that is not partitioned
              help: add `partitioned daily`, for instance
        "#]],
    );
}

#[test]
fn a_file_is_parquet() {
    check(
        "materialize volume://landing/x",
        expect![[r#"
            materialize: ("volume://landing/x", Replace)
            error P548 at "volume://landing/x": only Parquet files are written
              help: end the name with `.parquet`
        "#]],
    );
}

#[test]
fn globs_cannot_be_materialized() {
    check(
        "materialize s3://out/*.parquet",
        expect![[r#"
            materialize: ("s3://out/*.parquet", Replace)
            error P108 at "s3://out/*.parquet": a glob cannot be materialized
              help: name one file, or one per partition with `{partition}`
        "#]],
    );
}

#[test]
fn a_view_needs_a_lake() {
    check(
        "materialize view s3://out/x.parquet",
        expect![[r#"
            materialize: ("s3://out/x.parquet", View)
            error P123 at "view": `view` needs a lake table as its target
              label at "s3://out/x.parquet": the target
              help: name a `ducklake://` table
        "#]],
    );
}

#[test]
fn schema_policies_stand_on_the_line_too() {
    check(
        "materialize ducklake://main/a on_schema_change=sync_all_columns",
        expect![[r#"
        materialize: ("ducklake://main/a", Replace)
        on_schema_change: SyncAllColumns
    "#]],
    );
}

#[test]
fn schema_policies_may_not_differ() {
    check(
        "materialize ducklake://main/a on_schema_change=ignore
on_schema_change fail",
        expect![[r#"
            materialize: ("ducklake://main/a", Replace)
            on_schema_change: Ignore
            error P118 at "on_schema_change fail": the policy on schema changes is given twice
              label at "ignore": here it is another one
              help: keep one of the two
        "#]],
    );
}

#[test]
fn an_unknown_schema_policy_is_helped() {
    check(
        "materialize ducklake://main/a
on_schema_change append_columns",
        expect![[r#"
            materialize: ("ducklake://main/a", Replace)
            error P108 at "append_columns": `append_columns` is not a schema policy; expected `fail`, `append_new_columns`, `sync_all_columns` or `ignore`
              help: did you mean `append_new_columns`?
        "#]],
    );
}

#[test]
fn an_order_by_cannot_end_the_statement() {
    check(
        r#"materialize ducklake://main/a key=a order_by="b; drop table x""#,
        expect![[r#"
        materialize: ("ducklake://main/a", Merge { key: ["a"], order_by: None })
        error P128 at "; drop table x": `;` cannot stand in an expression
    "#]],
    );
}
