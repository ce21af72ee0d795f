//! Rules between lines.

use expect_test::expect;

use super::check;

#[test]
fn a_contract_declares_columns() {
    check(
        "materialize ducklake://main/x
contract enforced",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            contract: "enforced"
            error P121 at "contract enforced": the contract declares no columns
              help: add a line per column: `column <name> <type>`
        "#]],
    );
}

#[test]
fn a_contract_knows_every_column_that_is_used() {
    check(
        "materialize ducklake://main/x key=id,nr
partitioned daily by=ts
contract enforced
column id BIGINT
column amount DOUBLE
test unique ID
test not_null amout
test accepted_values state = a,b",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: Some("ts"), tz: None, start: None, retention: None })
            materialize: ("ducklake://main/x", Merge { key: ["id", "nr"], order_by: None })
            column: ("id", Some("BIGINT"), false, None, [])
            column: ("amount", Some("DOUBLE"), false, None, [])
            contract: "enforced"
            test: TestDecl { check: Unique(["ID"]), severity: Error, filter: None, scope: None }
            test: TestDecl { check: NotNull("amout"), severity: Error, filter: None, scope: None }
            test: TestDecl { check: AcceptedValues { column: "state", values: ["a", "b"] }, severity: Error, filter: None, scope: None }
            error P124 at "nr": the contract declares no column `nr`
              label at "contract enforced": the contract is enforced
              help: add `column nr <type>`
            error P124 at "ts": the contract declares no column `ts`
              label at "contract enforced": the contract is enforced
              help: add `column ts <type>`
            error P124 at "amout": the contract declares no column `amout`
              label at "contract enforced": the contract is enforced
              help: did you mean `amount`?
            error P124 at "state": the contract declares no column `state`
              label at "contract enforced": the contract is enforced
              help: add `column state <type>`
        "#]],
    );
}

#[test]
fn columns_without_a_contract_restrict_nothing() {
    check(
        "materialize ducklake://main/x
column id BIGINT
test unique nr",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            column: ("id", Some("BIGINT"), false, None, [])
            test: TestDecl { check: Unique(["nr"]), severity: Error, filter: None, scope: None }
        "#]],
    );
}

#[test]
fn a_script_does_not_start_itself() {
    check(
        "materialize ducklake://main/x
on ducklake://MAIN/main.X",
        expect![[r#"
            on: Asset { asset: Lake { lake: LakeName("main"), schema: "main", table: "x" }, debounce: None, map: None }
            materialize: ("ducklake://main/x", Replace)
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P118 at "on ducklake://MAIN/main.X": the script would start itself
              label at "ducklake://main/x": the target of the script
              help: remove the `on` line; a script may read its own target without it
        "#]],
    );
}

#[test]
fn a_read_is_not_muted_and_awaited() {
    check(
        "materialize ducklake://main/x
on ducklake://main/a
mute ducklake://main/a",
        expect![[r#"
            on: Asset { asset: Lake { lake: LakeName("main"), schema: "main", table: "a" }, debounce: None, map: None }
            mute: Asset(Lake { lake: LakeName("main"), schema: "main", table: "a" })
            materialize: ("ducklake://main/x", Replace)
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            info P125 at "mute": `mute` is parsed and checked, but this version does not act on it yet
            error P118 at "mute ducklake://main/a": the read is muted and awaited
              label at "on ducklake://main/a": awaited here
              help: keep `mute` or `on`
        "#]],
    );
}

#[test]
fn macro_libraries_materialize_nothing() {
    check(
        "macros
materialize ducklake://main/x",
        expect![[r#"
            materialize: ("ducklake://main/x", Replace)
            macros: true
            info P125 at "macros": `macros` is parsed and checked, but this version does not act on it yet
            error P118 at "materialize": a macro library materializes nothing
              label at "macros": declared a macro library here
              help: move the macros into a file of their own
        "#]],
    );
}

#[test]
fn words_about_the_write_need_a_write() {
    check(
        "unique_key a
append
on_schema_change ignore
contract enforced
column a INT
test unique a",
        expect![[r#"
            on_schema_change: Ignore
            column: ("a", Some("INT"), false, None, [])
            contract: "enforced"
            test: TestDecl { check: Unique(["a"]), severity: Error, filter: None, scope: None }
            warning P122 at "unique_key": `unique_key` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
            warning P122 at "append": `append` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
            warning P122 at "on_schema_change": `on_schema_change` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
            warning P122 at "contract": `contract` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
            warning P122 at "test": `test` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
        "#]],
    );
}

#[test]
fn what_is_not_acted_on_is_said_once() {
    check(
        "on kafka
on mqtt
mute all
on_failure hooks/a
on_failure hooks/b",
        expect![[r#"
            on: Event { kind: Kafka, options: [] }
            on: Event { kind: Mqtt, options: [] }
            mute: All
            hook: Hook { moment: OnFailure, script: "hooks/a" }
            hook: Hook { moment: OnFailure, script: "hooks/b" }
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            info P125 at "mute": `mute` is parsed and checked, but this version does not act on it yet
            info P125 at "on_failure": `on_failure` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn a_broken_materialize_line_is_no_missing_one() {
    check(
        "materialize ducklak://main/x
partitioned daily
test unique a",
        expect![[r#"
            partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
            test: TestDecl { check: Unique(["a"]), severity: Error, filter: None, scope: None }
            error P110 at "ducklak://main/x": unknown scheme `ducklak`
              help: did you mean `ducklake`?
        "#]],
    );
}

#[test]
fn a_schema_policy_has_no_effect_on_a_view_or_a_manual_script() {
    check(
        "materialize view ducklake://main/x\non_schema_change ignore",
        expect![[r#"
        materialize: ("ducklake://main/x", View)
        on_schema_change: Ignore
        warning P122 at "on_schema_change": `on_schema_change` has no effect: a view always has the columns of its query
          help: remove it; `contract enforced` with `column` lines refuses other columns
    "#]],
    );
    check(
        "materialize manual ducklake://main/x\non_schema_change sync_all_columns",
        expect![[r#"
        materialize: ("ducklake://main/x", Manual)
        on_schema_change: SyncAllColumns
        warning P122 at "on_schema_change": `on_schema_change` has no effect: a manual script shapes its table itself
          help: remove it; `contract enforced` with `column` lines refuses other columns
    "#]],
    );
}
