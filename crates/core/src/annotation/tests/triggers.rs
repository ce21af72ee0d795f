//! `on`, `trigger`, `mute`, `debounce`.

use expect_test::expect;

use super::{check, check_each};

#[test]
fn assets() {
    check(
        "on ducklake://main/orders debounce=30s map=lookback=7
on s3://raw/*.csv map=fan_out",
        expect![[r#"
            on: Asset { asset: Lake { lake: LakeName("main"), schema: "main", table: "orders" }, debounce: Some(30s), map: Some(Lookback(7)) }
            on: Asset { asset: Object { store: "raw", key: "*.csv" }, debounce: None, map: Some(FanOut) }
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn schedules() {
    check(
        r#"on schedule "0 2 * * 1-5" tz=Europe/Berlin catchup=latest lag=1d
on schedule @daily
on schedule "*/10 * * * * *""#,
        expect![[r#"
            on: Schedule { cron: Some("0 2 * * 1-5"), tz: Some(Europe/Berlin), catchup: Latest, lag: Some(86400s) }
            on: Schedule { cron: Some("@daily"), tz: None, catchup: None, lag: None }
            on: Schedule { cron: Some("*/10 * * * * *"), tz: None, catchup: None, lag: None }
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn events() {
    check(
        "on webhook path=/orders
on kafka topic=orders group=g
on mqtt topic=t
on nats subject=s
on postgres table=t db=app
on sqs queue=q
on gcp subscription=s
on email address=a@b.c",
        expect![[r#"
            on: Event { kind: Webhook, options: [("path", "/orders")] }
            on: Event { kind: Kafka, options: [("topic", "orders"), ("group", "g")] }
            on: Event { kind: Mqtt, options: [("topic", "t")] }
            on: Event { kind: Nats, options: [("subject", "s")] }
            on: Event { kind: Postgres, options: [("table", "t"), ("db", "app")] }
            on: Event { kind: Sqs, options: [("queue", "q")] }
            on: Event { kind: Gcp, options: [("subscription", "s")] }
            on: Event { kind: Email, options: [("address", "a@b.c")] }
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn events_without_options_are_configured_elsewhere() {
    check(
        "on schedule
on webhook
on kafka
on mqtt
on nats
on postgres
on sqs
on gcp
on email",
        expect![[r#"
            on: Schedule { cron: None, tz: None, catchup: None, lag: None }
            on: Event { kind: Webhook, options: [] }
            on: Event { kind: Kafka, options: [] }
            on: Event { kind: Mqtt, options: [] }
            on: Event { kind: Nats, options: [] }
            on: Event { kind: Postgres, options: [] }
            on: Event { kind: Sqs, options: [] }
            on: Event { kind: Gcp, options: [] }
            on: Event { kind: Email, options: [] }
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn cron_expressions_are_checked() {
    check(
        r#"on schedule "0 25 * * *"
on schedule "0 0 31 2 *"
on schedule "0 0 30 2 *"
on schedule 0 2 * * *
on schedule "daily""#,
        expect![[r#"
            on: Schedule { cron: None, tz: None, catchup: None, lag: None }
            on: Schedule { cron: None, tz: None, catchup: None, lag: None }
            on: Schedule { cron: None, tz: None, catchup: None, lag: None }
            on: Schedule { cron: None, tz: None, catchup: None, lag: None }
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P111 at "\"0 25 * * *\"": `0 25 * * *` is not a cron expression
              help: number out of bounds; the fields are minute, hour, day of month, month, weekday, such as `"0 2 * * 1-5"`
            error P112 at "\"0 0 31 2 *\"": `0 0 31 2 *` never fires
              help: no month has that day; pick a day that exists, or `L` for the last day of the month
            error P112 at "\"0 0 30 2 *\"": `0 0 30 2 *` never fires
              help: no month has that day; pick a day that exists, or `L` for the last day of the month
            error P111 at "0 2 * * *": the cron expression must stand in quotes
              help: write `on schedule "0 2 * * *"`
            error P111 at "\"daily\"": `daily` is not a cron expression
              help: pattern must have 5 or 6 fields when years are disallowed; the fields are minute, hour, day of month, month, weekday, such as `"0 2 * * 1-5"`
        "#]],
    );
}

#[test]
fn leap_days_fire() {
    check(
        r#"on schedule "0 0 29 2 *""#,
        expect![[r#"
        on: Schedule { cron: Some("0 0 29 2 *"), tz: None, catchup: None, lag: None }
        info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
    "#]],
    );
}

#[test]
fn mistakes_are_positioned() {
    check_each(
        r#"on
on kafak topic=x
on kafka group=g
on kafka topic=x grup=g
on webhook topic=x
on ducklake://main/x map=lookback
on ducklake://main/x map=lookback=0
on ducklake://main/x debounce=30 catchup=all
on schedule "0 2 * * *" tz=Berlin catchup=lastest
on orders"#,
        expect![[r#"
            error P104 at "on": `on` needs a URI or a kind of event
              help: write `on <uri> [debounce=<duration>] [map=<mapping>]` or `on schedule "<cron>" [tz=<zone>] [catchup=none|latest|all] [lag=<duration>]` or `on webhook [path=<path>]` or another of its forms; a line of prose must not start with `on`
            error P108 at "kafak": `kafak` is not a trigger
              help: did you mean `on kafka`?
            error P104 at "on kafka group=g": `on kafka` with options needs `topic=`
              help: add `topic=…`, or configure the source in pintail.toml and write `on kafka`
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P106 at "grup": unknown option `grup` of `on`
              help: did you mean `group=`?
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P106 at "topic": unknown option `topic` of `on`
              help: the options are `path=`
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P108 at "lookback": `lookback` needs a number of partitions
              help: write `map=lookback=7`
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P108 at "0": a number of partitions must be at least 1
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P114 at "30": the duration `30` has no unit
              help: write a whole number and a unit: `30s`, `10m`, `1h`, `2d`
            error P106 at "catchup": unknown option `catchup` of `on`
              help: the options are `debounce=`, `map=`
            info P125 at "on": `on` is parsed and checked, but this version does not act on it yet
            error P113 at "Berlin": unknown time zone `Berlin`
              help: write an IANA name, such as `Europe/Berlin` or `UTC`
            error P108 at "lastest": `lastest` is not a catch-up policy; expected `none`, `latest` or `all`
              help: did you mean `latest`?
            error P108 at "orders": `orders` is not a trigger
              help: after `on` stands a URI, or `schedule`, `webhook`, `kafka`, `mqtt`, `nats`, `postgres`, `sqs`, `gcp`, `email`; a line of prose must not start with `on`
        "#]],
    );
}

#[test]
fn other_words() {
    check(
        "trigger all
mute ducklake://main/a
mute all
debounce 30s",
        expect![[r#"
            mute: Asset(Lake { lake: LakeName("main"), schema: "main", table: "a" })
            mute: All
            trigger: All
            debounce: 30s
            info P125 at "trigger": `trigger` is parsed and checked, but this version does not act on it yet
            info P125 at "mute": `mute` is parsed and checked, but this version does not act on it yet
            info P125 at "debounce": `debounce` is parsed and checked, but this version does not act on it yet
        "#]],
    );
}

#[test]
fn mistakes_of_other_words() {
    check_each(
        "trigger al
trigger
mute everything
debounce 30
debounce 0s
debounce 5min
debounce 99999999999999999999s",
        expect![[r#"
            error P108 at "al": `al` is not a trigger mode; expected `any` or `all`
              help: did you mean `all`?
            error P104 at "trigger": `trigger` needs `any` or `all`
              help: write `trigger any` or `trigger all`; a line of prose must not start with `trigger`
            error P110 at "everything": `everything` is not an asset URI
              help: a table of the lake `main` is `ducklake://main/everything`
            error P114 at "30": the duration `30` has no unit
              help: write a whole number and a unit: `30s`, `10m`, `1h`, `2d`
            error P114 at "0s": the duration must be longer than nothing
              help: write a whole number and a unit: `30s`, `10m`, `1h`, `2d`
            error P114 at "5min": unknown unit `min` of a duration
              help: write a whole number and a unit: `30s`, `10m`, `1h`, `2d`
            error P114 at "99999999999999999999s": `99999999999999999999s` is not a duration
              help: write a whole number and a unit: `30s`, `10m`, `1h`, `2d`
        "#]],
    );
}
