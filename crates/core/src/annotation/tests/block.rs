//! Where the header starts and ends, and what counts as a comment line.

use expect_test::expect;
use proptest::prelude::*;

use crate::annotation::parse_header;
use crate::source::{Language, SourceFile};

use super::{check, check_file, declared, found};

#[test]
fn every_comment_marker_is_accepted_in_sql() {
    check_file(
        "-- tag a\n// tag b\n# tag c\n--tag d\n  \t-- tag e\n--- tag f\n\nSELECT 1 -- tag x\n",
        expect![[r#"
        tag: "a"
        tag: "b"
        tag: "c"
        tag: "d"
        tag: "e"
        tag: "f"
    "#]],
    );
}

#[test]
fn the_header_ends_at_the_first_code_line() {
    check_file(
        "-- tag a\n\n\nSELECT 1;\nSELECT 2\n",
        expect![[r#"
        tag: "a"
    "#]],
    );
}

#[test]
fn a_rule_ends_the_header_silently() {
    check_file(
        "-- tag a\n-- ---\n-- tag b\n-- tag c\nSELECT 1\n",
        expect![[r#"
        tag: "a"
    "#]],
    );
}

#[test]
fn a_bare_rule_ends_the_header() {
    check_file(
        "-- tag a\n---\n-- tag b\nSELECT 1\n",
        expect![[r#"
        tag: "a"
    "#]],
    );
}

#[test]
fn longer_rules_are_decoration() {
    check_file(
        "-- ------------\n-- tag a\n------------\n-- tag b\nSELECT 1\n",
        expect![[r#"
        tag: "a"
        tag: "b"
    "#]],
    );
}

#[test]
fn crlf_a_byte_order_mark_and_tabs_change_nothing() {
    check_file(
        "\u{feff}--\ttag\ta\r\n\r\n-- retry 3\t10s\r\n-- Two\r\n-- lines.\r\nSELECT 1\r\n",
        expect![[r#"
        description: "Two\nlines."
        retry: Retry { times: 3, delay: 10s, exponential: false }
        tag: "a"
    "#]],
    );
}

#[test]
fn a_shebang_may_stand_first() {
    check_file(
        "#!/usr/bin/env pintail\n-- tag a\nSELECT 1\n",
        expect![[r#"
        tag: "a"
    "#]],
    );
}

#[test]
fn a_header_may_be_the_whole_file() {
    check_file(
        "-- tag a",
        expect![[r#"
        tag: "a"
    "#]],
    );
}

#[test]
fn an_empty_file_declares_nothing() {
    check_file("", expect![[""]]);
}

#[test]
fn block_comments_are_stepped_over_and_reported_when_they_hold_annotations() {
    check_file(
        "/* Licence /* nested */\n * materialize ducklake://main/x\n * on the whole, prose\n */\n-- tag a\n/* short */\n-- tag b\nSELECT 1\n",
        expect![[r#"
            tag: "a"
            tag: "b"
            warning P131 at "materialize": `materialize` stands in a block comment, where annotations are not read
              help: start the line with `--`, `//` or `#` outside the block comment
        "#]],
    );
}

#[test]
fn code_after_a_block_comment_ends_the_header() {
    check_file("/* a */ SELECT 1\n-- tag a\n", expect![[""]]);
}

#[test]
fn an_unclosed_block_comment_ends_the_header() {
    check_file(
        "-- tag a\n/* never\n-- tag b\n",
        expect![[r#"
        tag: "a"
    "#]],
    );
}

#[test]
fn annotations_after_the_first_code_line_are_reported() {
    check_file(
        "SET threads = 2;\n-- materialize ducklake://main/x\n-- on the other hand, prose\nSELECT 1\n",
        expect![[r#"
            warning P132 at "materialize": `materialize` stands after the first code line, where annotations are not read
              help: move the line above the first code line
        "#]],
    );
}

#[test]
fn annotations_inside_strings_never_count() {
    check_file("SELECT 'a\n-- materialize ducklake://main/x\n' AS text\n-- tag nightly\n", expect![[""]]);
}

#[test]
fn prose_becomes_the_description() {
    check(
        "Orders per day.
Cancelled ones count as zero.

-----

description Kept for ten years.
tag a
(see the handbook)",
        expect![[r#"
            description: "Orders per day.\nCancelled ones count as zero.\n\nKept for ten years.\n(see the handbook)"
            tag: "a"
        "#]],
    );
}

#[test]
fn blanking_keeps_length_line_ends_and_body() {
    let text = "\u{feff}#!x\r\n-- tag é\r\n\n/* kept */\n--\ttag b\n\tSELECT 'é' -- c\r\n";
    let parsed = super::parse(text);
    assert_eq!(parsed.blanked.len(), text.len());
    assert_eq!(parsed.blanked, "      \r\n        \u{20}\r\n\n/* kept */\n        \n\tSELECT 'é' -- c\r\n");
    assert_eq!(&text[parsed.body_start..], "\tSELECT 'é' -- c\r\n");
}

#[test]
fn languages_other_than_duckdb_sql_are_checked_and_say_so() {
    let file = SourceFile {
        path: "pipelines/load.py".to_owned(),
        text: "#!/usr/bin/env python\n# tag a\n# partitioned daily\n/* x\nimport os\n".to_owned(),
    };
    let parsed = parse_header(&file, Language::Python);
    assert_eq!(&file.text[parsed.body_start..], "/* x\nimport os\n");
    expect![[r#"
        tag: "a"
        partitioned: Time(TimeSpec { unit: Day, by: None, tz: None, start: None, retention: None })
        info P126 at the file: this version checks the header of Python scripts, but does not run them yet
    "#]]
    .assert_eq(&(declared(&parsed.header) + &found(&file.text, &parsed)));
}

proptest! {
    #[test]
    fn any_text_parses_and_keeps_its_length(text in "(--|//|#|/\\*|---|\\*/|'|\"| |=|\n|\r\n|on|test|column|materialize|key=|ducklake://main/x|[a-z]{1,3}|\\PC){0,40}") {
        let parsed = super::parse(&text);
        prop_assert_eq!(parsed.blanked.len(), text.len());
        prop_assert_eq!(&parsed.blanked[parsed.body_start..], &text[parsed.body_start..]);
        for finding in &parsed.diagnostics {
            let spans = finding.span.iter().chain(finding.labels.iter().map(|label| &label.span));
            for span in spans {
                prop_assert!(text.get(span.start..span.end).is_some(), "{:?} of {:?}", span, text);
            }
        }
    }
}
