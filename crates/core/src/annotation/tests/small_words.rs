//! Words with one or two arguments.

use expect_test::expect;

use super::{check, check_each};

#[test]
fn each_has_its_value() {
    check(
        "owner Data Platform <data@example.com>
tag nightly
tag team:finance
retry 3 10s backoff=exponential
timeout 1h30m
freshness 2d
pipeline",
        expect![[r#"
            owner: "Data Platform <data@example.com>"
            freshness: 172800s
            retry: Retry { times: 3, delay: 10s, exponential: true }
            timeout: 5400s
            tag: "nightly"
            tag: "team:finance"
            pipeline: true
            info P125 at "freshness": `freshness` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn retry_has_a_default_pause() {
    check(
        "retry 3",
        expect![[r#"
        retry: Retry { times: 3, delay: 10s, exponential: false }
    "#]],
    );
}

#[test]
fn hooks_measures_and_dimensions() {
    check(
        r#"pre_run hooks/check
on_success hooks/ok
on_failure hooks/page
measure revenue = sum(amount) where status = 'paid'
measure n = count(*) FILTER (WHERE x)
measure "Net Sum" = sum(a = b)
dimension month = date_trunc('month', ts)"#,
        expect![[r#"
            hook: Hook { moment: PreRun, script: "hooks/check" }
            hook: Hook { moment: OnSuccess, script: "hooks/ok" }
            hook: Hook { moment: OnFailure, script: "hooks/page" }
            measure: Measure { name: "revenue", expression: "sum(amount)", filter: Some("status = 'paid'") }
            measure: Measure { name: "n", expression: "count(*) FILTER (WHERE x)", filter: None }
            measure: Measure { name: "Net Sum", expression: "sum(a = b)", filter: None }
            dimension: Dimension { name: "month", expression: "date_trunc('month', ts)" }
            info P125 at "pre_run": `pre_run` is parsed and checked, but this version does not act on it yet
            info P125 at "on_success": `on_success` is parsed and checked, but this version does not act on it yet
            info P125 at "on_failure": `on_failure` is parsed and checked, but this version does not act on it yet
            info P125 at "measure": `measure` is parsed and checked, but this version does not act on it yet
            info P125 at "dimension": `dimension` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn macros_and_use() {
    check(
        "use macros/money
use macros/text",
        expect![[r#"
            use: "macros/money"
            use: "macros/text"
            info P125 at "use": `use` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn macro_libraries() {
    check(
        "macros",
        expect![[r#"
        macros: true
        info P125 at "macros": `macros` is parsed and checked, but this version does not act on it yet
    "#]],
    );
}

#[test]
fn streams() {
    check(
        "stream ducklake://main/raw batch_rows=1000 batch_bytes=64MB start=42 gap=rescan
materialize ducklake://main/x append",
        expect![[r#"
            materialize: ("ducklake://main/x", Append)
            stream: Stream { asset: Lake { lake: LakeName("main"), schema: "main", table: "raw" }, batch_rows: Some(1000), batch_bytes: Some(64000000), start: Snapshot(42), all_changes: false, gap: Rescan }
        "#]],
    );
}

#[test]
fn mistakes_are_positioned() {
    check_each(
        "owner
tag
tag a b
tag a,b
retry
retry many
retry 0
retry 3 soon
retry 1000
retry 3 10s backoff=double
timeout
pipeline x
use ../x
use /x
use ducklake://main/x
pre_run
measure revenue sum(amount)
measure = sum(a)
measure a = 
measure a = sum(b
dimension a b = c
stream s3://raw/x
stream ducklake://main/x start=late batch_bytes=1XB gap=rescann
contract
contract enforce
description
unique_key
macros now",
        expect![[r#"
            error P104 at "owner": `owner` needs a name
              help: write `owner <text>`; a line of prose must not start with `owner`
            error P104 at "tag": `tag` needs a name
              help: write `tag <name>`; a line of prose must not start with `tag`
            error P105 at "b": unexpected `b` after `tag`
              help: write `tag <name>`; a line of prose must not start with `tag`
            error P108 at "a,b": `,` cannot stand in a tag
              help: one word per line; repeat the line
            error P104 at "retry": `retry` needs a number of retries
              help: write `retry <times> [<delay>] [backoff=constant|exponential]`; a line of prose must not start with `retry`
            error P108 at "many": `many` is not a number of retries; expected a whole number
              help: write `retry <times> [<delay>] [backoff=constant|exponential]`; a line of prose must not start with `retry`
            error P108 at "0": a number of retries must be at least 1
              help: write `retry <times> [<delay>] [backoff=constant|exponential]`; a line of prose must not start with `retry`
            error P114 at "soon": `soon` is not a duration
              help: write a whole number and a unit: `30s`, `10m`, `1h`, `2d`
            error P108 at "1000": 1000 retries are too many; at most 100
              help: write `retry <times> [<delay>] [backoff=constant|exponential]`; a line of prose must not start with `retry`
            error P108 at "double": `double` is not a backoff; expected `constant` or `exponential`
            error P104 at "timeout": `timeout` needs a duration
              help: write `timeout <duration>`; a line of prose must not start with `timeout`
            error P105 at "x": unexpected `x` after `pipeline`
              help: write `pipeline`; a line of prose must not start with `pipeline`
            error P108 at "../x": the path must have no empty, `.` or `..` part
              help: write the path below the project's root with `/`, such as `hooks/notify`
            error P108 at "/x": the path must be relative to the project, with `/` between its parts
              help: write the path below the project's root with `/`, such as `hooks/notify`
            error P108 at "ducklake://main/x": expected the path of a script, found a URI
              help: write the path below the project's root with `/`, such as `hooks/notify`
            error P104 at "pre_run": `pre_run` needs the path of a hook script
              help: write `pre_run <script path>`; a line of prose must not start with `pre_run`
            error P104 at "measure revenue sum(amount)": `measure` needs `<name> = …`
              help: write `measure <name> = <aggregate> [where <condition>]`; a line of prose must not start with `measure`
            error P104 at "measure = sum(a)": `measure` needs a name before `=`
              help: write `measure <name> = <aggregate> [where <condition>]`; a line of prose must not start with `measure`
            error P104 at "measure a =": `measure` needs an aggregate
              help: write `measure <name> = <aggregate> [where <condition>]`; a line of prose must not start with `measure`
            error P128 at "(b": the bracket is never closed
            error P116 at "a b": ` ` cannot stand in a plain column name
              help: quote the name: `"a b"`
            error P108 at "s3://raw/x": only lake tables have a change feed
              help: name a `ducklake://` table
            error P108 at "late": `late` is not a start (or a snapshot's number); expected `head` or `earliest`
            error P108 at "1XB": `1XB` is not a number of bytes
              help: write a whole number with a unit, such as `64MB`
            error P108 at "rescann": `rescann` is not a way over a gap; expected `stop`, `rescan` or `skip`
              help: did you mean `rescan`?
            error P104 at "contract": `contract` needs `enforced`
              help: write `contract enforced`; a line of prose must not start with `contract`
            error P108 at "enforce": `enforce` is not a contract; expected `enforced`
              help: did you mean `enforced`?
            error P104 at "description": `description` needs a text
              help: write `description <text>`; a line of prose must not start with `description`
            error P104 at "unique_key": `unique_key` needs columns
              help: write `unique_key a,b`; a line of prose must not start with `unique_key`
            info P125 at "macros": `macros` is parsed and checked, but this version does not act on it yet
            error P105 at "now": unexpected `now` after `macros`
              help: write `macros`; a line of prose must not start with `macros`
            error P118 at "materialize": a macro library materializes nothing
              label at "macros now": declared a macro library here
              help: move the macros into a file of their own
        "#]],
    );
}

#[test]
fn words_stand_once() {
    check(
        "timeout 1m
timeout 2m
retry 1
retry 1
owner a
owner b",
        expect![[r#"
            owner: "a"
            retry: Retry { times: 1, delay: 10s, exponential: false }
            timeout: 60s
            error P103 at "timeout": `timeout` stands twice
              label at "timeout": the first one, which counts
              help: keep one of the two lines
            error P103 at "retry": `retry` stands twice
              label at "retry": the first one, which counts
              help: keep one of the two lines
            error P103 at "owner": `owner` stands twice
              label at "owner": the first one, which counts
              help: keep one of the two lines
        "#]],
    );
}
