//! Headers as Windmill writes them.

use expect_test::expect;

use super::check;

#[test]
fn a_partitioned_script() {
    check(
        "pipeline
materialize ducklake://main/orders_daily key=order_id
partitioned daily
data_test unique order_id
data_test not_null order_id
data_test accepted_values status = new,paid
data_test relationships customer_id -> datatable://main/customers.id
column total <- ducklake://main/orders.amount
retry 3 30s
tag heavy
freshness 1h",
        expect![[r#"
            freshness: 3600s
            retry: Retry { times: 3, delay: 30s, exponential: false }
            tag: "heavy"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            materialize: ("ducklake://main/orders_daily", Merge { key: ["order_id"], order_by: None })
            column: ("total", None, false, None, ["ducklake://main/orders amount"])
            test: TestDecl { check: Unique(["order_id"]), severity: Error, filter: None, scope: None }
            test: TestDecl { check: NotNull("order_id"), severity: Error, filter: None, scope: None }
            test: TestDecl { check: AcceptedValues { column: "status", values: ["new", "paid"] }, severity: Error, filter: None, scope: None }
            test: TestDecl { check: Relationships { column: "customer_id", parent: Datatable { database: "main", schema: "public", table: "customers" }, parent_column: "id" }, severity: Error, filter: None, scope: None }
            pipeline: true
            info P125 at "freshness": `freshness` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn a_history() {
    check(
        "materialize ducklake://main/customers key=id history track=name,plan deletes=close on_schema_change=warn",
        expect![[r#"
            materialize: ("ducklake://main/customers", History { key: ["id"], track: ["name", "plan"], updated_at: None, close_deleted: true, order_by: None })
            on_schema_change: Ignore
            info P127 at "warn": `warn` is read as `ignore`: only columns that the table has are written
              help: write `ignore`, or `fail` to be stopped by a difference
        "#]],
    );
}

#[test]
fn triggers() {
    check(
        "on schedule
on s3:///lake/raw/{partition}/orders.json
on res://u/me/db
on $res:u/me/db
on dbt://shop/orders
on amqp
on data_upload
trigger all
debounce 30s",
        expect![[r#"
            on: Schedule { cron: None, tz: None, catchup: None, lag: None }
            on: Asset { asset: Object { store: "", key: "lake/raw/{partition}/orders.json" }, debounce: None, map: None }
            trigger: All
            debounce: 30s
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            info P127 at "res://u/me/db": a Windmill resource is configuration, not an asset
            info P127 at "$res:u/me/db": a Windmill resource is configuration, not an asset
            info P127 at "dbt://shop/orders": a dbt model is not an asset here
            info P127 at "amqp": `on amqp` never starts a run here
            info P127 at "data_upload": `on data_upload` never starts a run here
            info P125 at "trigger": `trigger` is parsed and checked, but this version does not act on it yet
            info P125 at "debounce": `debounce` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn script_arguments() {
    check(
        "$cutoff (date)
$limit (int) = 10
$ is the currency",
        expect![[r#"
            description: "$ is the currency"
            info P127 at "$cutoff": the declaration of `$cutoff` has no meaning here
              help: give `cutoff` a value under `[vars]` in pintail.toml
            info P127 at "$limit": the declaration of `$limit` has no meaning here
              help: give `limit` a value under `[vars]` in pintail.toml
        "#]],
    );
}

#[test]
fn a_schema_change_word() {
    check(
        "materialize ducklake://main/x
on_schema_change sync",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            on_schema_change: SyncAllColumns
        "#]],
    );
}

#[test]
fn targets_are_no_references() {
    check(
        "materialize dbt://shop/orders",
        expect![[r#"
            error P110 at "dbt://shop/orders": a dbt model is not an asset here
        "#]],
    );
}
