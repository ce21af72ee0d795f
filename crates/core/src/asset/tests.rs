//! Tests of the canonicaliser, the parser and globs.

use std::fmt::Write as _;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{Asset, AssetErrorKind, Catalog, check_lake_name};

/// Parses each line and prints its canonical text, or the error with a caret under its place.
fn check(input: &str, expected: Expect) {
    let mut found = String::new();
    for line in input.lines() {
        match Asset::parse(line) {
            Ok(asset) => writeln!(found, "{asset}").unwrap(),
            Err(error) => {
                let column = line[..error.offset].chars().count();
                writeln!(found, "{line}\n{:column$}^ {error}", "").unwrap();
                if let Some(help) = error.help {
                    writeln!(found, "help: {help}").unwrap();
                }
            }
        }
    }
    expected.assert_eq(&found);
}

#[test]
fn spellings_of_one_table_have_one_canonical_text() {
    check(
        "ducklake://main/orders\nducklake://MAIN/Orders\nDuckLake://main/main.orders\nducklake:///orders\nducklake://main/\"Orders\"\nducklake://main/%6Frders",
        expect![[r#"
            ducklake://main/orders
            ducklake://main/orders
            ducklake://main/orders
            ducklake://main/orders
            ducklake://main/orders
            ducklake://main/orders
        "#]],
    );
}

#[test]
fn schemas_stay_when_they_are_not_the_default() {
    check(
        "ducklake://main/Sales.Orders\ndatatable://main/x\ndatatable://app/public.users\ndatatable://app/crm.users\ndatatable:///x",
        expect![[r#"
            ducklake://main/sales.orders
            datatable://main/x
            datatable://app/users
            datatable://app/crm.users
            datatable://main/x
        "#]],
    );
}

#[test]
fn composed_and_decomposed_letters_are_one_name() {
    assert_eq!(Asset::parse("ducklake://main/cafe\u{301}"), Asset::parse("ducklake://main/caf\u{e9}"));
}

#[test]
fn folding_that_makes_a_letter_composable_is_repeated() {
    assert_eq!(super::canonical_name("H\u{331}"), "\u{1e96}");
    assert_eq!(super::canonical_name("\u{212a}"), "k");
}

#[test]
fn odd_names_are_escaped_and_come_back() {
    for name in ["a.b", "a/b", "a?b", "a#b", "50%", "a\"b", "a'b", "a b", "a;b", "t--x", "日本", "a,b", "select", "{x}"]
    {
        let asset = Asset::lake_table("main", "odd.schema", name);
        assert_eq!(Asset::parse(&asset.to_string()), Ok(asset));
    }
    check(
        "ducklake://main/\"a.b\".\"c\"\"d\"\nducklake://main/a%2Fb",
        expect![[r#"
            ducklake://main/a%2Eb.c%22d
            ducklake://main/a%2Fb
        "#]],
    );
}

#[test]
fn keys_of_objects_are_exact() {
    check(
        "s3://raw/A//b/../c%20d?.csv\ns3:///k\ns3://raw/date={partition}/*.parquet",
        expect![[r#"
            s3://raw/A//b/../c%20d?.csv
            s3:///k
            s3://raw/date={partition}/*.parquet
        "#]],
    );
}

#[test]
fn slashes_of_volumes_collapse_and_dots_cannot_leave() {
    check(
        "volume://landing//a/./b//c.csv\nvolume://project/data/*.csv\nvolume://landing/a/../b\nvolume:///x\nvolume://landing/",
        expect![[r#"
            volume://landing/a/b/c.csv
            volume://project/data/*.csv
            volume://landing/a/../b
                               ^ a path cannot leave its volume with `..`
            volume:///x
                     ^ the volume's name is empty
            help: files of the project are `volume://project/x`
            volume://landing/
                             ^ the path is missing
        "#]],
    );
}

#[test]
fn faults_are_positioned_and_say_what_to_write() {
    check(
        "orders\nducklake\nducklak://main/x\nducklake:main/x\nhttp://x/y\nducklake://main\nducklake://main/a/b\nducklake://main/a.b.c\nducklake://main/a..b\nducklake://main/a*\nducklake://main/a b\nducklake://main/a?v=1\nducklake://main/%zz\nducklake://temp/x\nducklake://_pt_w/x\nducklake://main/\"x\ns3://raw\ns3://r w/x",
        expect![[r#"
            orders
            ^ `orders` is not an asset URI
            help: a table of the lake `main` is `ducklake://main/orders`
            ducklake
            ^ `ducklake` is not an asset URI
            help: name what lies in it: `ducklake://main/orders`
            ducklak://main/x
            ^ unknown scheme `ducklak`
            help: did you mean `ducklake`?
            ducklake:main/x
            ^ `ducklake:main/x` is not an asset URI
            help: write `ducklake://main/x`
            http://x/y
            ^ unknown scheme `http`
            help: assets are `ducklake://`, `datatable://`, `s3://` and `volume://`
            ducklake://main
                           ^ the table is missing
            help: write `<catalog>/<table>` or `<catalog>/<schema>.<table>` after the scheme
            ducklake://main/a/b
                             ^ a table's name cannot hold `/`
            help: a schema is separated by a dot: `a.b`
            ducklake://main/a.b.c
                                ^ a table's name has at most two parts
            help: write `<table>` or `<schema>.<table>`; a dot inside a name is `%2E`
            ducklake://main/a..b
                              ^ the table's name is empty
            ducklake://main/a*
                             ^ `*` cannot stand in a table's name
            help: globs are for `s3://` and `volume://`
            ducklake://main/a b
                             ^ ` ` cannot stand in a table's name
            help: write `%20` for it
            ducklake://main/a?v=1
                             ^ `?` cannot stand in a table's name
            help: write `%3F` for it
            ducklake://main/%zz
                            ^ `%` must be followed by two hexadecimal digits
            help: write `%25` for a percent sign
            ducklake://temp/x
                       ^ `temp` is reserved and cannot name a lake
            ducklake://_pt_w/x
                       ^ names that start with `_pt_` are reserved and cannot name a lake
            ducklake://main/"x
                            ^ the quote is never closed
            s3://raw
                    ^ the object's key is missing
            help: write `s3://<store>/<key>`, or `s3:///<key>` for the default store
            s3://r w/x
                  ^ ` ` cannot stand in a store's name
        "#]],
    );
}

#[test]
fn windmill_resources_and_dbt_models_are_understood_but_no_assets() {
    for (text, kind) in [
        ("res://u/me/db", AssetErrorKind::Resource),
        ("$res:u/me/db", AssetErrorKind::Resource),
        ("dbt://shop/orders", AssetErrorKind::Dbt),
        ("orders", AssetErrorKind::Malformed),
    ] {
        assert_eq!(Asset::parse(text).unwrap_err().kind, kind, "{text}");
    }
}

#[test]
fn a_catalog_alone_means_the_default_table_where_one_is_known() {
    let named = |text| Asset::parse_or_named(text, "Orders Daily").unwrap().to_string();
    assert_eq!(named("ducklake"), "ducklake://main/orders%20daily");
    assert_eq!(named("ducklake://"), "ducklake://main/orders%20daily");
    assert_eq!(named("ducklake://raw"), "ducklake://raw/orders%20daily");
    assert_eq!(named("ducklake://raw/x"), "ducklake://raw/x");
    assert_eq!(named("datatable"), "datatable://main/orders%20daily");
}

#[test]
fn columns_are_the_last_part_of_a_uri() {
    let column = |text| Asset::parse_column(text).map(|(asset, column)| format!("{asset} {column}"));
    assert_eq!(column("ducklake://main/customers.id").unwrap(), "ducklake://main/customers id");
    assert_eq!(column("ducklake://main/sales.customers.Id").unwrap(), "ducklake://main/sales.customers Id");
    assert_eq!(column("s3://raw/2024/x.parquet.id").unwrap(), "s3://raw/2024/x.parquet id");
    assert_eq!(column("ducklake://main/t.\"a.b\"").unwrap(), "ducklake://main/t a.b");
    assert_eq!(column("ducklake://main/t.a%2Eb").unwrap(), "ducklake://main/t a.b");
    assert_eq!(column("ducklake://main/customers").unwrap_err().message, "the column is missing");
    assert_eq!(column("ducklake://main/customers.").unwrap_err().message, "the column's name is empty");
}

#[test]
fn attached_catalogs_are_lakes_or_databases() {
    let catalog = |text| Catalog::parse(text).map(|result| format!("{:?}", result.unwrap()));
    assert_eq!(catalog("ducklake").as_deref(), Some("Lake(LakeName(\"main\"))"));
    assert_eq!(catalog("ducklake://Raw").as_deref(), Some("Lake(LakeName(\"raw\"))"));
    assert_eq!(catalog("ducklake://raw/").as_deref(), Some("Lake(LakeName(\"raw\"))"));
    assert_eq!(catalog("datatable://app").as_deref(), Some("Datatable(\"app\")"));
    assert_eq!(catalog("my.duckdb"), None);
    assert_eq!(catalog("s3://raw"), None);
    assert!(Catalog::parse("ducklake://lake").unwrap().is_err());
}

#[test]
fn globs_cover_the_keys_that_they_match() {
    let covers = |pattern: &str, other: &str| Asset::parse(pattern).unwrap().covers(&Asset::parse(other).unwrap());
    for (pattern, other) in [
        ("s3://raw/a/*.csv", "s3://raw/a/x.csv"),
        ("s3://raw/**/x.csv", "s3://raw/a/b/x.csv"),
        ("s3://raw/a/?.csv", "s3://raw/a/1.csv"),
        ("s3://raw/a/[0-9].csv", "s3://raw/a/1.csv"),
        ("s3://raw/a/*.csv", "s3://raw/a/{partition}.csv"),
        ("s3://raw/a/{partition}.csv", "s3://raw/a/2026-01-01.csv"),
        ("volume://v/*/x", "volume://v/a/x"),
        ("s3://raw/a/*.csv", "s3://raw/a/*.csv"),
        ("ducklake://main/x", "ducklake://main/X"),
    ] {
        assert!(covers(pattern, other), "{pattern} covers {other}");
    }
    for (pattern, other) in [
        ("s3://raw/a/*.csv", "s3://raw/a/b/x.csv"),
        ("s3://raw/a/*.csv", "s3://other/a/x.csv"),
        ("s3://raw/a/*.csv", "s3://raw/A/x.csv"),
        ("s3://raw/{a,b}", "s3://raw/a"),
        ("s3://raw/[a", "s3://raw/a"),
        ("s3://raw/x", "s3://raw/*"),
        ("volume://v/*", "s3://v/x"),
        ("ducklake://main/x", "ducklake://main/y"),
    ] {
        assert!(!covers(pattern, other), "{pattern} does not cover {other}");
    }
}

#[test]
fn reserved_and_malformed_lake_names_are_refused() {
    for name in ["main", "raw", "Analytics", "team-a", "_x", "größe"] {
        assert!(check_lake_name(name).is_ok(), "{name}");
    }
    for name in [
        "",
        "temp",
        "SYSTEM",
        "memory",
        "lake",
        "pg_catalog",
        "information_schema",
        "_pt_w",
        "_PT_x",
        "1a",
        "a.b",
        "a b",
    ] {
        assert!(check_lake_name(name).is_err(), "{name}");
    }
}

proptest! {
    #[test]
    fn a_canonical_text_parses_to_the_same_asset(schema in "\\PC{1,8}", table in "\\PC{1,8}", lake in "[a-zA-Z_]{1,6}x") {
        let asset = Asset::lake_table(&lake, &schema, &table);
        prop_assert_eq!(Asset::parse(&asset.to_string()), Ok(asset.clone()));
        let asset = Asset::datatable(&table, &schema, &table);
        prop_assert_eq!(Asset::parse(&asset.to_string()), Ok(asset));
    }

    #[test]
    fn canonical_of_canonical_is_canonical(name in "[a-zA-Z]?[\\u{300}-\\u{340}]{0,2}\\PC{1,6}") {
        let once = super::canonical_name(&name);
        prop_assert_eq!(super::canonical_name(&once), once);
    }

    #[test]
    fn parsing_never_panics_and_is_idempotent(text in "(ducklake|datatable|s3|volume)?(://)?[\\PC/.\"%]{0,16}") {
        match Asset::parse(&text) {
            Ok(asset) => prop_assert_eq!(Asset::parse(&asset.to_string()), Ok(asset)),
            Err(error) => prop_assert!(text.is_char_boundary(error.offset), "{} in {}", error.offset, text),
        }
    }

    #[test]
    fn columns_of_any_text_are_parsed_or_refused(text in "ducklake://main/[a-z.\"/]{0,12}") {
        if let Err(error) = Asset::parse_column(&text) {
            prop_assert!(error.offset <= text.len());
        }
    }
}
