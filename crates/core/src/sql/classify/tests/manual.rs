//! Manual scripts: what each statement needs, and what may not stand in them.

use expect_test::{Expect, expect};

use super::*;

fn check_manual(script: &str, expected: Expect) {
    let file = SourceFile { path: "a.sql".into(), text: script.into() };
    let header = materializing(WriteStrategy::Manual);
    let body = parsed(script);
    let manual = manual(&body, &ClassifyContext { file: &file, header: &header, vars: &[] });
    let at = |span: Span| &script[span.start..span.end];
    let statements: String =
        manual.statements.iter().map(|one| format!("{:?}: {}\n", one.need, at(one.statement.span))).collect();
    expected.assert_eq(&format!("{statements}{}", show(script, &manual.diagnostics)));
}

#[test]
fn manual_statements_say_what_they_need() {
    check_manual(
        "attach 'ducklake' as dl; use dl; create temp table x as select 1; insert into x values (2);
         create table t as from x; begin; delete from t; insert into t from x; select count(*) from t; commit;
         update t set a = 1; copy (from t) to 'out.parquet'; create schema s; comment on table t is 'x'; explain from t",
        expect![[r#"
            Interpreted: attach 'ducklake' as dl
            Interpreted: use dl
            Nothing: create temp table x as select 1
            Nothing: insert into x values (2)
            OwnTransaction: create table t as from x
            Begin: begin
            InTransaction: delete from t
            InTransaction: insert into t from x
            InTransaction: select count(*) from t
            Commit: commit
            OwnTransaction: update t set a = 1
            Nothing: copy (from t) to 'out.parquet'
            OwnTransaction: create schema s
            OwnTransaction: comment on table t is 'x'
            Nothing: explain from t
        "#]],
    );
}

#[test]
fn manual_transactions_are_whole() {
    check_manual(
        "begin; begin; insert into t values (1)",
        expect![[r#"
        Begin: begin
        InTransaction: insert into t values (1)
        P202 Error at `begin`: this transaction is never committed
          help: end the script with COMMIT
        P202 Error at `begin`: a transaction is already open
          help: COMMIT the first one before
    "#]],
    );
    check_manual(
        "insert into t values (1); commit",
        expect![[r#"
        OwnTransaction: insert into t values (1)
        P202 Error at `commit`: no transaction is open here
          help: remove the line, or BEGIN before it
    "#]],
    );
    check_manual(
        "begin; delete from t; rollback; delete from t",
        expect![[r#"
        Begin: begin
        InTransaction: delete from t
        Rollback: rollback
        OwnTransaction: delete from t
    "#]],
    );
}

#[test]
fn manual_scripts_cannot_go_past_the_pins() {
    check_manual(
        "checkpoint; vacuum; call lake.set_commit_message('a', 'b'); detach lake",
        expect![[r#"
        P202 Error at `checkpoint`: CHECKPOINT cannot stand in a script: it would go past the pins of other readers
          help: remove the line; maintenance is `pintail maintain`
        P202 Error at `vacuum`: VACUUM cannot stand in a script: it would go past the pins of other readers
          help: remove the line; maintenance is `pintail maintain`
        P202 Error at `call lake.set_commit_message('a', 'b')`: CALL can change the lake behind the stamp and the pins
          help: use the command for it: `pintail maintain`
        P202 Error at `detach lake`: DETACH would take a lake away that the step needs
          help: remove the line
    "#]],
    );
    check_manual(
        "create secret x (type s3); drop table _pt_w_main.t; attach 'x.duckdb' as x",
        expect![[r#"
        OwnTransaction: drop table _pt_w_main.t
        Nothing: attach 'x.duckdb' as x
        P202 Error at `create secret x (type s3)`: a secret cannot be made in a script
          help: name it in pintail.toml, by reference: `secret = "${NAME}"`
        P210 Error at `_pt_w_main.t`: the name `_pt_w_main` is reserved
          help: choose another name
        P213 Error at `attach 'x.duckdb' as x`: what is not an asset of the project can be attached only for reading
          help: add READ_ONLY: `ATTACH '…' AS x (READ_ONLY)`, or attach an asset: `ATTACH 'ducklake://<lake>' AS x`
    "#]],
    );
    check_manual(
        "insert into lake._pintail.fence_00 values (1)",
        expect![[r#"
        OwnTransaction: insert into lake._pintail.fence_00 values (1)
        P210 Error at `lake._pintail.fence_00`: the name `_pintail` is reserved
          help: choose another name
    "#]],
    );
}

#[test]
fn what_is_not_understood_is_not_sent() {
    check_manual(
        "prepare p as insert into t values (1); execute p",
        expect![[r#"
        P202 Error at `prepare p as insert into t values (1)`: this form of PREPARE is not understood, so what it writes is not known
          help: write it as INSERT, UPDATE, DELETE, MERGE, COPY, CREATE, ALTER or DROP with a table's name
        P202 Error at `execute p`: this form of EXECUTE is not understood, so what it writes is not known
          help: write it as INSERT, UPDATE, DELETE, MERGE, COPY, CREATE, ALTER or DROP with a table's name
    "#]],
    );
    check(
        "prepare p as select 1; select 1",
        expect![[r#"
            Query: select 1
            P202 Error at `prepare p as select 1`: PREPARE cannot stand in a managed body: it is neither setup nor the query
              help: to send your own statements: `-- materialize manual ducklake://main/t`
        "#]],
    );
}

#[test]
fn a_test_is_one_query() {
    check_test("create temp table a as select 1; from a", expect![[r#""#]]);
    check_test(
        "delete from t",
        expect![[r#"
            P219 Error at `delete from t`: a test is one query
              help: a test file holds one SELECT that returns the rows which must not exist
        "#]],
    );
    check_test(
        "select 1; select 2",
        expect![[r#"
        P219 Error at `select 2`: a test is one query
          help: a test file holds one SELECT that returns the rows which must not exist
    "#]],
    );
}
