//! Types, casts, differences and policies as tables of small facts.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::annotation::{ColumnDecl, SchemaPolicy};

fn class(from: &str, to: &str) -> CastClass {
    cast_class(&DataType::parse(from).unwrap(), &DataType::parse(to).unwrap())
}

fn declared(columns: &[(&str, &str)]) -> Vec<ColumnDecl> {
    let column = |(name, data_type): &(&str, &str)| ColumnDecl {
        name: (*name).into(),
        data_type: (!data_type.is_empty()).then(|| (*data_type).into()),
        not_null: false,
        description: None,
        sources: Vec::new(),
    };
    columns.iter().map(column).collect()
}

fn check_type(text: &str, expect: Expect) {
    expect.assert_eq(&match DataType::parse(text) {
        Ok(data_type) => data_type.to_string(),
        Err(error) => format!("{} at {}..{}", error, error.span.start, error.span.end),
    });
}

#[test]
fn type_texts_are_read_with_their_aliases() {
    check_type("int", expect!["INTEGER"]);
    check_type(" TEXT ", expect!["VARCHAR"]);
    check_type("varchar(20)", expect!["VARCHAR"]);
    check_type("int8", expect!["BIGINT"]);
    check_type("numeric", expect!["DECIMAL(18,3)"]);
    check_type("DECIMAL(10)", expect!["DECIMAL(10,0)"]);
    check_type("decimal( 10 , 2 )", expect!["DECIMAL(10,2)"]);
    check_type("timestamptz", expect!["TIMESTAMP WITH TIME ZONE"]);
    check_type("timestamp with  time zone", expect!["TIMESTAMP WITH TIME ZONE"]);
    check_type("TIMESTAMP WITHOUT TIME ZONE", expect!["TIMESTAMP"]);
    check_type("TIMESTAMP(3)", expect!["TIMESTAMP_MS"]);
    check_type("time with time zone", expect!["TIME WITH TIME ZONE"]);
    check_type("double precision", expect!["DOUBLE"]);
    check_type("character varying(3)", expect!["VARCHAR"]);
    check_type("\"NULL\"", expect![[r#""NULL""#]]);
    check_type("GEOMETRY('OGC:CRS84')", expect!["GEOMETRY('OGC:CRS84')"]);
    check_type("my_schema.mood", expect!["MY_SCHEMA.MOOD"]);
}

#[test]
fn nested_types_are_read_to_the_bottom() {
    check_type("int[][3]", expect!["INTEGER[][3]"]);
    check_type(
        "struct(a int, \"b c\" text[], \"select\" map(text, struct(x int)))",
        expect![[r#"STRUCT(a INTEGER, "b c" VARCHAR[], "select" MAP(VARCHAR, STRUCT(x INTEGER)))"#]],
    );
    check_type("UNION(num INT, str VARCHAR)", expect!["UNION(num INTEGER, str VARCHAR)"]);
    check_type("ENUM('a', 'b''c', 'd,e')", expect!["ENUM('a', 'b''c', 'd,e')"]);
}

#[test]
fn a_text_that_is_no_type_says_where() {
    check_type("", expect!["expected a type at 0..0"]);
    check_type("INTEGR", expect!["unknown type `INTEGR`; did you mean `INTEGER`? at 0..6"]);
    check_type(
        "DECIMAL(39,0)",
        expect!["DECIMAL takes a precision of 1 to 38 and a scale of at most the precision at 7..13"],
    );
    check_type(
        "DECIMAL(3,4)",
        expect!["DECIMAL takes a precision of 1 to 38 and a scale of at most the precision at 7..12"],
    );
    check_type("STRUCT(a INT", expect!["expected `)` at 12..12"]);
    check_type("STRUCT(a)", expect!["expected a type at 8..9"]);
    check_type("INT INT", expect!["unexpected `I` after the type at 4..5"]);
    check_type("TIMESTAMP WITH ZONE", expect!["expected `TIME ZONE` at 15..16"]);
    check_type("ENUM('a", expect!["expected a closing `'` at 6..7"]);
    check_type("INT[x]", expect!["expected a size at 4..5"]);
    check_type(
        &format!("{}INT{}", "STRUCT(a ".repeat(100), ")".repeat(100)),
        expect!["the type is nested deeper than 64 at 575..576"],
    );
}

#[test]
fn types_are_equal_by_meaning() {
    assert!(types_equal("INT", "INTEGER"));
    assert!(types_equal("numeric(18, 3)", "DECIMAL(18,3)"));
    assert!(types_equal("STRUCT(A INT)", "STRUCT(\"a\" INTEGER)"));
    assert!(!types_equal("STRUCT(a INT, b INT)", "STRUCT(b INT, a INT)"));
    assert!(!types_equal("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"));
    assert!(!types_equal("DECIMAL(18,3)", "DECIMAL(18,2)"));
    assert!(!types_equal("JSON", "VARCHAR"));
    assert!(types_equal("broken(", "BROKEN("));
}

#[test]
fn widening_loses_nothing() {
    for (from, to) in [
        ("TINYINT", "SMALLINT"),
        ("INTEGER", "BIGINT"),
        ("UINTEGER", "BIGINT"),
        ("INTEGER", "DOUBLE"),
        ("SMALLINT", "FLOAT"),
        ("FLOAT", "DOUBLE"),
        ("INTEGER", "DECIMAL(10,0)"),
        ("DECIMAL(10,2)", "DECIMAL(12,3)"),
        ("DECIMAL(9,0)", "INTEGER"),
        ("DECIMAL(15,0)", "DOUBLE"),
        ("TIMESTAMP_S", "TIMESTAMP"),
        ("INTEGER[]", "BIGINT[]"),
        ("MAP(VARCHAR, INTEGER)", "MAP(VARCHAR, BIGINT)"),
        ("STRUCT(a INTEGER)", "STRUCT(a BIGINT)"),
        ("ENUM('a')", "ENUM('a', 'b')"),
        ("\"NULL\"", "DATE"),
    ] {
        assert_eq!(class(from, to), CastClass::Widening, "{from} -> {to}");
    }
}

#[test]
fn what_converts_back_but_means_another_kind_is_a_change() {
    for (from, to) in [
        ("DATE", "TIMESTAMP"),
        ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
        ("BOOLEAN", "INTEGER"),
        ("ENUM('a')", "VARCHAR"),
        ("INTEGER[3]", "INTEGER[]"),
        ("STRUCT(a INTEGER)", "STRUCT(a INTEGER, b INTEGER)"),
        ("STRUCT(a INTEGER, b INTEGER)", "STRUCT(b INTEGER, a INTEGER)"),
    ] {
        assert_eq!(class(from, to), CastClass::Lossless, "{from} -> {to}");
    }
}

#[test]
fn lossy_casts_are_known_as_such() {
    for (from, to) in [
        ("BIGINT", "INTEGER"),
        ("INTEGER", "UINTEGER"),
        ("BIGINT", "DOUBLE"),
        ("INTEGER", "FLOAT"),
        ("HUGEINT", "DECIMAL(38,0)"),
        ("DOUBLE", "INTEGER"),
        ("DOUBLE", "FLOAT"),
        ("DECIMAL(10,2)", "DOUBLE"),
        ("DECIMAL(12,3)", "DECIMAL(10,2)"),
        ("DECIMAL(12,2)", "DECIMAL(12,3)"),
        ("DECIMAL(10,0)", "INTEGER"),
        ("TIMESTAMP", "DATE"),
        ("TIMESTAMP", "TIMESTAMP_NS"),
        ("TIMESTAMP_NS", "TIMESTAMP"),
        ("INTEGER", "VARCHAR"),
        ("DATE", "VARCHAR"),
        ("VARCHAR", "INTEGER"),
        ("JSON", "VARCHAR"),
        ("STRUCT(a INTEGER, b INTEGER)", "STRUCT(a INTEGER)"),
        ("ENUM('a', 'b')", "ENUM('a')"),
        ("TIME WITH TIME ZONE", "TIME"),
        ("INTEGER", "BOOLEAN"),
    ] {
        assert_eq!(class(from, to), CastClass::Lossy, "{from} -> {to}");
    }
}

#[test]
fn casts_that_do_not_exist_are_incompatible() {
    for (from, to) in [
        ("INTEGER", "DATE"),
        ("DATE", "INTEGER"),
        ("STRUCT(a INTEGER)", "INTEGER"),
        ("STRUCT(a INTEGER)", "STRUCT(b INTEGER)"),
        ("INTEGER[]", "MAP(INTEGER, INTEGER)"),
        ("BOOLEAN", "DATE"),
        ("DATE", "TIME"),
        ("INTEGER[2]", "INTEGER[3]"),
    ] {
        assert_eq!(class(from, to), CastClass::Incompatible, "{from} -> {to}");
    }
}

fn check_diff(table: &[(&str, &str)], query: &[(&str, &str)], expect: Expect) {
    let found = diff(&Schema::of(table), &Schema::of(query));
    let order = if found.reordered { "\n(reordered)" } else { "" };
    expect.assert_eq(&format!("{found}{order}"));
}

#[test]
fn a_difference_is_listed_in_the_order_of_the_query() {
    check_diff(
        &[("id", "INTEGER"), ("amount", "DECIMAL(18,3)"), ("ts", "TIMESTAMP"), ("note", "VARCHAR"), ("gone", "DATE")],
        &[("ts", "DATE"), ("extra", "VARCHAR"), ("amuont", "DOUBLE"), ("ID", "BIGINT"), ("note", "STRUCT(a INTEGER)")],
        expect![[r#"
            ~ ts TIMESTAMP -> DATE (lossy)
            + extra VARCHAR (added)
            + amuont DOUBLE (added; did you mean `amount`?)
            ~ id INTEGER -> BIGINT (widening)
            ~ note VARCHAR -> STRUCT(a INTEGER) (lossy)
            - amount DECIMAL(18,3) (removed)
            - gone DATE (removed)
            (reordered)"#]],
    );
}

#[test]
fn order_case_and_narrower_types_are_no_difference() {
    check_diff(
        &[("id", "INTEGER"), ("price", "DOUBLE"), ("qty", "BIGINT")],
        &[("ID", "INT"), ("qty", "INTEGER"), ("Price", "FLOAT")],
        expect![[r#"

            (reordered)"#]],
    );
    check_diff(&[("id", "INTEGER")], &[("id", "int")], expect![[""]]);
}

#[test]
fn a_column_of_the_same_place_and_type_was_probably_renamed() {
    check_diff(
        &[("id", "INTEGER"), ("amount", "DOUBLE"), ("ts", "DATE")],
        &[("id", "INTEGER"), ("total", "DOUBLE"), ("day", "TIMESTAMP")],
        expect![[r#"
            + total DOUBLE (added; probably `amount` renamed)
            + day TIMESTAMP (added)
            - amount DOUBLE (removed)
            - ts DATE (removed)"#]],
    );
}

#[test]
fn dates_do_not_silently_become_timestamps() {
    check_diff(&[("day", "TIMESTAMP")], &[("day", "DATE")], expect!["~ day TIMESTAMP -> DATE (lossy)"]);
    check_diff(&[("n", "INTEGER")], &[("n", "DOUBLE")], expect!["~ n INTEGER -> DOUBLE (widening)"]);
    check_diff(&[("n", "VARCHAR")], &[("n", "INTEGER")], expect!["~ n VARCHAR -> INTEGER (lossy)"]);
    check_diff(
        &[("n", "DECIMAL(10,2)")],
        &[("n", "DECIMAL(10,3)")],
        expect!["~ n DECIMAL(10,2) -> DECIMAL(10,3) (lossy)"],
    );
}

fn check_decision(table: &[(&str, &str)], query: &[(&str, &str)], expect: Expect) {
    let policies = [
        ("fail", SchemaPolicy::Fail),
        ("append_new_columns", SchemaPolicy::AppendNewColumns),
        ("sync_all_columns", SchemaPolicy::SyncAllColumns),
        ("ignore", SchemaPolicy::Ignore),
    ];
    let columns = |columns: &[Column]| {
        columns.iter().map(|column| format!("{} {}", column.name, column.data_type)).collect::<Vec<_>>().join(", ")
    };
    let line = |(word, policy): (&str, SchemaPolicy)| {
        let decision = match decide(diff(&Schema::of(table), &Schema::of(query)), policy) {
            SchemaDecision::Write => "write".to_owned(),
            SchemaDecision::AddColumns(added) => format!("add {}", columns(&added)),
            SchemaDecision::Rebuild { columns: shape, .. } => format!("rebuild as {}", columns(&shape)),
            SchemaDecision::WriteOnlyKnown { dropped, missing } => {
                format!("write known, without [{}], NULL in [{}]", columns(&dropped), columns(&missing))
            }
            SchemaDecision::Refuse { .. } => "refuse".to_owned(),
        };
        format!("{word}: {decision}\n")
    };
    expect.assert_eq(&policies.into_iter().map(line).collect::<String>());
}

#[test]
fn every_policy_writes_what_does_not_differ() {
    check_decision(
        &[("a", "BIGINT"), ("b", "DATE")],
        &[("B", "DATE"), ("a", "INTEGER")],
        expect![[r#"
        fail: write
        append_new_columns: write
        sync_all_columns: write
        ignore: write
    "#]],
    );
}

#[test]
fn an_added_column_is_added_where_the_policy_says_so() {
    check_decision(
        &[("a", "BIGINT")],
        &[("b", "DATE"), ("a", "BIGINT")],
        expect![[r#"
        fail: refuse
        append_new_columns: add b DATE
        sync_all_columns: add b DATE
        ignore: write known, without [b DATE], NULL in []
    "#]],
    );
}

#[test]
fn a_removed_column_is_never_silently_null() {
    check_decision(
        &[("a", "BIGINT"), ("b", "DATE")],
        &[("a", "INTEGER"), ("c", "DATE")],
        expect![[r#"
        fail: refuse
        append_new_columns: refuse
        sync_all_columns: rebuild as a BIGINT, c DATE
        ignore: write known, without [c DATE], NULL in [b DATE]
    "#]],
    );
}

#[test]
fn a_retyped_column_is_written_only_by_a_new_table() {
    check_decision(
        &[("a", "INTEGER")],
        &[("a", "BIGINT")],
        expect![[r#"
        fail: refuse
        append_new_columns: refuse
        sync_all_columns: rebuild as a BIGINT
        ignore: refuse
    "#]],
    );
    check_decision(
        &[("a", "BIGINT"), ("b", "DOUBLE")],
        &[("a", "VARCHAR"), ("b", "FLOAT")],
        expect![[r#"
        fail: refuse
        append_new_columns: refuse
        sync_all_columns: rebuild as a VARCHAR, b DOUBLE
        ignore: refuse
    "#]],
    );
}

fn check_lake_type(data_type: &str, declared: Option<&str>, expect: Expect) {
    expect.assert_eq(&match lake_type(data_type, declared) {
        LakeType::Same => "same".to_owned(),
        LakeType::CastTo(to) => format!("cast to {to}"),
        LakeType::Refused { help } => help,
    });
}

#[test]
fn sums_are_cast_to_a_type_that_keeps_their_digits() {
    check_lake_type("HUGEINT", None, expect!["cast to BIGINT"]);
    check_lake_type("UHUGEINT", None, expect!["cast to BIGINT"]);
    check_lake_type("HUGEINT", Some("DECIMAL(38,0)"), expect!["cast to DECIMAL(38,0)"]);
    check_lake_type("HUGEINT", Some("DOUBLE"), expect!["cast to BIGINT"]);
    check_lake_type(
        "STRUCT(n HUGEINT, m HUGEINT)",
        Some("STRUCT(n DECIMAL(38,0), m BIGINT)"),
        expect!["cast to STRUCT(n DECIMAL(38,0), m BIGINT)"],
    );
}

#[test]
fn types_that_the_lake_cannot_hold_are_cast_or_refused_with_the_cast_to_write() {
    check_lake_type("ENUM('a')", None, expect!["cast to VARCHAR"]);
    check_lake_type("INTEGER[3]", None, expect!["cast to INTEGER[]"]);
    check_lake_type(
        "STRUCT(a ENUM('x'), \"b\" INTEGER[2][])",
        None,
        expect![[r#"cast to STRUCT(a VARCHAR, "b" INTEGER[][])"#]],
    );
    check_lake_type("MAP(ENUM('x'), HUGEINT)", None, expect!["cast to MAP(VARCHAR, BIGINT)"]);
    check_lake_type("BIT", None, expect!["cast the column to VARCHAR, or to BLOB"]);
    check_lake_type("BIGNUM", None, expect!["cast the column to DECIMAL(38,0), or to VARCHAR when it is larger"]);
    check_lake_type(
        "UNION(a INTEGER)",
        None,
        expect!["take one member with `union_extract(…)`, or cast the column to VARCHAR"],
    );
    check_lake_type(
        "TIME WITH TIME ZONE",
        None,
        expect!["cast the column to TIME, or keep a TIMESTAMP WITH TIME ZONE"],
    );
    check_lake_type(
        "STRUCT(a STRUCT(b BIT))",
        None,
        expect!["in field `a`: in field `b`: cast the column to VARCHAR, or to BLOB"],
    );
    check_lake_type(
        "\"NULL\"",
        None,
        expect!["give the NULL a type, such as `CAST(NULL AS VARCHAR)`, or declare the column with one"],
    );
    check_lake_type("\"NULL\"", Some("DATE"), expect!["cast to DATE"]);
    check_lake_type("mood", None, expect!["`MOOD` is no built-in type; cast the column to one"]);
}

#[test]
fn everything_else_is_held_as_it_is() {
    for data_type in
        ["INTERVAL", "UUID", "JSON", "VARIANT", "BLOB", "DECIMAL(38,0)", "TIMESTAMP_NS", "UBIGINT", "GEOMETRY"]
    {
        check_lake_type(data_type, None, expect!["same"]);
    }
}

#[test]
fn a_schema_names_every_cast_and_every_refusal() {
    let query = Schema::of(&[("n", "HUGEINT"), ("s", "HUGEINT"), ("k", "INTEGER")]);
    let cast = lake_schema(&query, &declared(&[("S", "DECIMAL(38,0)")])).unwrap();
    assert_eq!(cast.casts, Schema::of(&[("n", "BIGINT"), ("s", "DECIMAL(38,0)")]).columns);
    assert_eq!(cast.schema, Schema::of(&[("n", "BIGINT"), ("s", "DECIMAL(38,0)"), ("k", "INTEGER")]));

    let refused = lake_schema(&Schema::of(&[("a", "BIT"), ("b", "INTEGER"), ("c", "BIGNUM")]), &[]).unwrap_err();
    assert_eq!(refused.iter().map(|refused| refused.column.name.as_str()).collect::<Vec<_>>(), ["a", "c"]);
}

fn check_contract(lines: &[(&str, &str)], actual: &[(&str, &str)], enforced: bool, expect: Expect) {
    expect.assert_eq(&contract_diff(&declared(lines), &Schema::of(actual), enforced).to_string());
}

#[test]
fn an_enforced_contract_is_exact_and_ordered() {
    check_contract(&[("id", "INT"), ("name", "TEXT")], &[("ID", "INTEGER"), ("name", "VARCHAR")], true, expect![[""]]);
    check_contract(
        &[("id", "BIGINT"), ("amuont", "DECIMAL(18,2)"), ("name", ""), ("odd", "INTEGR"), ("day", "DATE")],
        &[("day", "DATE"), ("id", "INTEGER"), ("amount", "DECIMAL(18,2)"), ("name", "VARCHAR"), ("odd", "INTEGER")],
        true,
        expect![[r#"
            `id` is declared BIGINT but selected as INTEGER
            `amuont` is declared but not selected; did you mean `amount`?
            `odd` is declared `INTEGR`: unknown type `INTEGR`; did you mean `INTEGER`?
            `amount` DECIMAL(18,2) is selected but not declared
            the declared order is id, name, odd, day but the query's is day, id, name, odd"#]],
    );
}

#[test]
fn a_contract_that_is_not_enforced_is_about_its_own_columns() {
    check_contract(
        &[("b", "DECIMAL(18,2)")],
        &[("a", "DATE"), ("b", "DECIMAL(18,3)")],
        false,
        expect!["`b` is declared DECIMAL(18,2) but selected as DECIMAL(18,3)"],
    );
    check_contract(&[("b", "")], &[("a", "DATE"), ("b", "DECIMAL(18,3)")], false, expect![[""]]);
}

fn any_type() -> impl Strategy<Value = DataType> {
    let scalars = [
        "INT",
        "UTINYINT",
        "BIGINT",
        "HUGEINT",
        "DOUBLE",
        "VARCHAR",
        "DATE",
        "TIMESTAMPTZ",
        "TIMETZ",
        "BIT",
        "BOOLEAN",
        "\"NULL\"",
    ];
    let scalar = prop::sample::select(scalars.to_vec()).prop_map(|text| DataType::parse(text).unwrap());
    let decimal = (1_u8..=38).prop_flat_map(|precision| {
        (Just(precision), 0..=precision).prop_map(|(precision, scale)| DataType::Decimal { precision, scale })
    });
    let values = prop::collection::vec("\\PC{0,3}", 1..3).prop_map(DataType::Enum);
    prop_oneof![4 => scalar, 2 => decimal, 1 => values].prop_recursive(4, 12, 3, |inner| {
        let field = ("\\PC{0,4}", inner.clone()).prop_map(|(name, data_type)| Field { name, quoted: true, data_type });
        prop_oneof![
            inner.clone().prop_map(|element| DataType::List(Box::new(element))),
            (inner.clone(), 1_u32..9).prop_map(|(element, size)| DataType::Array(Box::new(element), size)),
            (inner.clone(), inner).prop_map(|(key, value)| DataType::Map(Box::new(key), Box::new(value))),
            prop::collection::vec(field.clone(), 1..4).prop_map(DataType::Struct),
            prop::collection::vec(field, 1..4).prop_map(DataType::Union),
        ]
    })
}

fn any_number() -> impl Strategy<Value = DataType> {
    let wholes =
        ["TINYINT", "SMALLINT", "INT", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"];
    let others = ["FLOAT", "DOUBLE", "BIGNUM"];
    let scalar = prop::sample::select([&wholes[..], &others].concat()).prop_map(|text| DataType::parse(text).unwrap());
    let decimal = (1_u8..=38, prop_oneof![Just(0_u8), 0_u8..=38])
        .prop_map(|(precision, scale)| DataType::Decimal { precision, scale: scale.min(precision) });
    prop_oneof![scalar, decimal]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_type_is_read_as_it_is_printed(data_type in any_type()) {
        prop_assert_eq!(DataType::parse(&data_type.to_string()), Ok(data_type));
    }

    #[test]
    fn what_the_lake_holds_it_holds_again(data_type in any_type()) {
        if let LakeType::CastTo(held) = lake_type(&data_type.to_string(), None) {
            prop_assert_eq!(lake_type(&held, None), LakeType::Same);
        }
    }

    #[test]
    fn widening_is_transitive(one in any_number(), two in any_number(), three in any_number()) {
        let wide = |from, to| cast_class(from, to) <= CastClass::Widening;
        if wide(&one, &two) && wide(&two, &three) {
            prop_assert!(wide(&one, &three), "{one} -> {two} -> {three}");
        }
    }

    #[test]
    fn a_query_never_differs_from_the_shape_that_it_asks_for(
        table in prop::collection::vec(("[a-d]", any_type()), 0..4), query in prop::collection::vec(("[a-d]", any_type()), 0..4),
    ) {
        let schema = |columns: Vec<(String, DataType)>| {
            let mut schema = Schema::default();
            for (name, data_type) in columns {
                if schema.column(&name).is_none() {
                    schema.columns.push(Column { name, data_type: data_type.to_string() });
                }
            }
            schema
        };
        let (table, query) = (schema(table), schema(query));
        let shape = Schema { columns: diff(&table, &query).shape };
        let again = diff(&shape, &query);
        prop_assert!(again.is_empty() && !again.reordered, "{again}");
        prop_assert!(diff(&table, &table).is_empty());
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,20}", word in "(STRUCT|MAP|DECIMAL|ENUM|INT)?[\\[\\]()',\" a-z0-9]{0,12}") {
        let _ = DataType::parse(&text);
        let _ = DataType::parse(&word);
    }
}
