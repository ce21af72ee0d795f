//! Lines that were meant as annotations, and prose that was not.

use expect_test::expect;

use super::check;

#[test]
fn mistyped_words_with_arguments_are_unknown_annotations() {
    check(
        "materialise ducklake://main/x key=a
partition daily by=ts
Partitioned daily
freshnes 1h
retyr 3
tests unique a severity=warn
revenue_measure = sum(amount)
mesure revenue = sum(amount)
on_schema_chnge ignore
timout 10m",
        expect![[r#"
            description: "revenue_measure = sum(amount)"
            error P101 at "materialise": unknown annotation `materialise`; did you mean `materialize`?
              help: write `materialize` in its place; annotation words are lower case
            error P101 at "partition": unknown annotation `partition`; did you mean `partitioned`?
              help: write `partitioned` in its place; annotation words are lower case
            error P101 at "Partitioned": unknown annotation `Partitioned`; did you mean `partitioned`?
              help: write `partitioned` in its place; annotation words are lower case
            error P101 at "freshnes": unknown annotation `freshnes`; did you mean `freshness`?
              help: write `freshness` in its place; annotation words are lower case
            error P101 at "retyr": unknown annotation `retyr`; did you mean `retry`?
              help: write `retry` in its place; annotation words are lower case
            error P101 at "tests": unknown annotation `tests`; did you mean `test`?
              help: write `test` in its place; annotation words are lower case
            error P101 at "mesure": unknown annotation `mesure`; did you mean `measure`?
              help: write `measure` in its place; annotation words are lower case
            error P101 at "on_schema_chnge": unknown annotation `on_schema_chnge`; did you mean `on_schema_change`?
              help: write `on_schema_change` in its place; annotation words are lower case
            error P101 at "timout": unknown annotation `timout`; did you mean `timeout`?
              help: write `timeout` in its place; annotation words are lower case
        "#]],
    );
}

#[test]
fn a_wrong_case_is_named() {
    check(
        r#"Materialize ducklake://main/x
ON schedule "0 2 * * *"
On kafka
Test unique a
Contract enforced"#,
        expect![[r#"
            description: "On kafka"
            error P101 at "Materialize": unknown annotation `Materialize`; did you mean `materialize`?
              help: write `materialize` in its place; annotation words are lower case
            error P101 at "ON": unknown annotation `ON`; did you mean `on`?
              help: write `on` in its place; annotation words are lower case
            warning P102 at "On": `On` looks like the annotation `on`, but is read as prose
              help: write `on` in lower case for the annotation, or add words to make it prose
            error P101 at "Test": unknown annotation `Test`; did you mean `test`?
              help: write `test` in its place; annotation words are lower case
            error P101 at "Contract": unknown annotation `Contract`; did you mean `contract`?
              help: write `contract` in its place; annotation words are lower case
        "#]],
    );
}

#[test]
fn forms_without_their_first_word_are_named() {
    check(
        r#"schedule "0 2 * * *"
history ducklake://main/x key=a
view ducklake://main/y
partition_by ts by=ts"#,
        expect![[r#"
            error P101 at "schedule": unknown annotation `schedule`; did you mean `on schedule`?
              help: write `on schedule` in its place; annotation words are lower case
            error P101 at "history": unknown annotation `history`; did you mean `materialize history`?
              help: write `materialize history` in its place; annotation words are lower case
            error P101 at "view": unknown annotation `view`; did you mean `materialize view`?
              help: write `materialize view` in its place; annotation words are lower case
            error P101 at "partition_by": unknown annotation `partition_by`; did you mean `partitioned`?
              help: write `partitioned` in its place; annotation words are lower case
        "#]],
    );
}

#[test]
fn words_that_stand_almost_alone_are_warned_about() {
    check(
        "pipelin
Owner bob
Freshnes 1h of delay
ownr data-team",
        expect![[r#"
            description: "pipelin\nOwner bob\nownr data-team"
            warning P102 at "pipelin": `pipelin` looks like the annotation `pipeline`, but is read as prose
              help: write `pipeline` in lower case for the annotation, or add words to make it prose
            warning P102 at "Owner": `Owner` looks like the annotation `owner`, but is read as prose
              help: write `owner` in lower case for the annotation, or add words to make it prose
            error P101 at "Freshnes": unknown annotation `Freshnes`; did you mean `freshness`?
              help: write `freshness` in its place; annotation words are lower case
            warning P102 at "ownr": `ownr` looks like the annotation `owner`, but is read as prose
              help: write `owner` in lower case for the annotation, or add words to make it prose
        "#]],
    );
}

#[test]
fn a_colon_after_a_word_is_warned_about() {
    check(
        "owner: data team
Test: u/bob/check
materialize: ducklake://main/x",
        expect![[r#"
            description: "owner: data team\nTest: u/bob/check"
            warning P102 at "owner:": `owner:` looks like the annotation `owner`, but is read as prose
              help: annotations have no colon: write `owner …`
            warning P102 at "Test:": `Test:` looks like the annotation `test`, but is read as prose
              help: annotations have no colon: write `test …`
            error P101 at "materialize:": unknown annotation `materialize:`; did you mean `materialize`?
              help: write `materialize` in its place; annotation words are lower case
        "#]],
    );
}

#[test]
fn options_after_an_unknown_word_are_no_prose() {
    check(
        "incremental key=id
sink ducklake://main/x key=id",
        expect![[r#"
            error P101 at "incremental": unknown annotation `incremental`
              help: add words that are not `key=value` to make the line prose
            error P101 at "sink": unknown annotation `sink`
              help: add words that are not `key=value` to make the line prose
        "#]],
    );
}

#[test]
fn prose_that_is_near_a_word_stays_prose() {
    check(
        "one row per order
in all cases
an email is sent
no dupes
Description of the table
Partitions are local days.
Columns:
Tests that matter are below.
materialized by hand until 2020
user events, not sessions
reads ducklake://main/orders daily
On Mondays we add nothing.
Use with care.
streaming is off
see tag=x for more
x = y
On schedule we run at night.
tests unique ids per day
macro language",
        expect![[r#"
            description: "one row per order\nin all cases\nan email is sent\nno dupes\nDescription of the table\nPartitions are local days.\nColumns:\nTests that matter are below.\nmaterialized by hand until 2020\nuser events, not sessions\nreads ducklake://main/orders daily\nOn Mondays we add nothing.\nUse with care.\nstreaming is off\nsee tag=x for more\nx = y\nOn schedule we run at night.\ntests unique ids per day\nmacro language"
        "#]],
    );
}

#[test]
fn strict_lines_that_were_meant_as_prose_say_how_to_write_prose() {
    check(
        "on every commit we rebuild
append only table
contract with the shop",
        expect![[r#"
            error P108 at "every": `every` is not a trigger
              help: after `on` stands a URI, or `schedule`, `webhook`, `kafka`, `mqtt`, `nats`, `postgres`, `sqs`, `gcp`, `email`; a line of prose must not start with `on`
            warning P122 at "append": `append` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
            error P105 at "only": unexpected `only` after `append`
              help: write `append`; a line of prose must not start with `append`
            error P105 at "table": unexpected `table` after `append`
              help: write `append`; a line of prose must not start with `append`
            warning P122 at "contract": `contract` has no effect: the script materializes nothing
              help: add `materialize ducklake://main/orders_daily`
            error P108 at "with": `with` is not a contract; expected `enforced`
              help: write `contract enforced`; a line of prose must not start with `contract`
        "#]],
    );
}
