//! What is refused, and what a person is told.

use expect_test::{Expect, expect};

use super::{read, with};
use crate::cloudevents::{from_batch, from_json};

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&read(text).expect_err("the event is refused"));
}

#[test]
fn what_is_no_json_has_its_place() {
    check("{\"id\": \n  \"a\",,}", expect!["line 2, column 7: this is not JSON: key must be a string"]);
    check(r#"{"specversion":"#, expect!["line 1, column 15: this is not JSON: EOF while parsing a value"]);
    check("", expect!["line 1, column 1: this is not JSON: EOF while parsing a value"]);
    check("[]", expect!["line 1, column 1: an event must be an object, found a list"]);
    check("{} {}", expect!["line 1, column 4: this is not JSON: trailing characters"]);
    expect!["line 1, column 3: the text must be UTF-8"].assert_eq(&from_json(b"{\"\xff\"}").unwrap_err().to_string());
    expect!["line 1, column 1: a batch must be a list of events, found an object"]
        .assert_eq(&from_batch(b"{}").unwrap_err().to_string());
}

#[test]
fn an_attribute_has_its_place_what_was_expected_and_what_is_there() {
    check("{}", expect!["line 1, column 1: the event has no `specversion`, `id`, `source`, `type`"]);
    check("{\"specversion\": \"1.0\",\n \"id\": 7}", expect!["line 2, column 8: `id` must be text, found a number"]);
    check(
        &with(r#""subject":"""#),
        expect![[r#"line 1, column 65: `subject` must be text that is not empty, found """#]],
    );
    check(
        &with(r#""subject":"a\u0000b""#),
        expect!["line 1, column 65: `subject` must be text without control characters, found U+0000"],
    );
    check(&with(r#""time":1767225600"#), expect!["line 1, column 62: `time` must be RFC 3339 text, found a number"]);
    check(
        &with(r#""time":"2026-01-02 03:04:05Z""#),
        expect![
            "line 1, column 62: `time` must be RFC 3339 such as `2026-01-02T03:04:05Z`, found `2026-01-02 03:04:05Z`: `T` between date and time was expected at character 11"
        ],
    );
    check(
        &with(r#""datacontenttype":"json""#),
        expect!["line 1, column 73: `datacontenttype` must be a media type such as `application/json`, found `json`"],
    );
    check(
        &with(r#""dataschema":"schema""#),
        expect!["line 1, column 68: `dataschema` must be an absolute URI, found `schema`"],
    );
}

#[test]
fn a_type_is_bounded_by_what_a_folder_may_be_called() {
    let with_type = |kind: &str| format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"{kind}"}}"#);
    for kind in ["t".repeat(200), "é".repeat(33), "-_.~".repeat(50)] {
        assert_eq!(read(&with_type(&kind)).unwrap().kind, kind);
    }
    for kind in ["t".repeat(201), "é".repeat(34), "/".repeat(67)] {
        assert!(read(&with_type(&kind)).unwrap_err().contains("must be of at most 200 bytes"), "{kind}");
    }
    check(
        &with_type(&"t".repeat(300)),
        expect![
            "line 1, column 51: `type` must be of at most 200 bytes as a URL writes it (a letter, a digit and each of `-_.~` is one, each other byte is three), because folders are named after it, found 300 in `tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt…`"
        ],
    );
}

#[test]
fn a_name_that_cannot_be_has_the_nearest_that_can() {
    check(
        &with(r#""MyExt":"x""#),
        expect![
            "line 1, column 63: `MyExt` cannot be the name of an attribute: small letters and digits were expected, such as `myext`"
        ],
    );
    check(
        &with(r#""":"x""#),
        expect!["line 1, column 58: `` cannot be the name of an attribute: small letters and digits were expected"],
    );
    // What the lake adds to an event cannot be sent by a client.
    check(
        &with(r#""data_index_key":"x""#),
        expect![
            "line 1, column 72: `data_index_key` cannot be the name of an attribute: small letters and digits were expected, such as `dataindexkey`"
        ],
    );
}

#[test]
fn extensions_are_texts_booleans_and_whole_numbers() {
    for value in ["1.5", "1e3", "{}", "[1]"] {
        let error = read(&with(&format!("\"ext\":{value}"))).unwrap_err();
        assert!(error.contains("`ext` must be text, a boolean or a whole number"), "{error}");
    }
    for value in ["\"\"", "true", "-5", "9007199254740993"] {
        assert!(read(&with(&format!("\"ext\":{value}"))).is_ok(), "{value}");
    }
}

#[test]
fn a_payload_has_one_form() {
    check(
        &with(r#""data":"a","data_base64":"YQ==""#),
        expect!["line 1, column 80: an event must have `data` or `data_base64`, not both"],
    );
    check(
        &with(r#""data_base64":"Y!==""#),
        expect!["line 1, column 69: `data_base64` must be base64 text: Invalid symbol 33, offset 1."],
    );
    check(
        &with(r#""data_base64":{}"#),
        expect!["line 1, column 69: `data_base64` must be base64 text, found an object"],
    );
}
