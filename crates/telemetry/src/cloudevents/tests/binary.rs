//! Binary mode: headers and a body.

use expect_test::expect;

use crate::cloudevents::{Payload, from_binary};

fn attributes(more: &[(&str, &str)]) -> Vec<(String, String)> {
    let all = [("specversion", "1.0"), ("id", "1"), ("source", "/s"), ("type", "t")];
    all.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_body_is_json_where_it_is_said_to_be_or_where_nothing_is_said_and_it_is() {
    let read = |content_type, body: &[u8]| from_binary(&attributes(&[]), content_type, body).unwrap().data;
    let json = |text: &str| Payload::Json(text.to_owned());
    let base64 = |text: &str| Payload::Base64(text.to_owned());
    assert_eq!(read(Some("application/json"), b"{\"a\":1.10}"), json("{\"a\":1.10}"));
    assert_eq!(read(Some("application/vnd.x+json; charset=utf-8"), b"1e400"), json("1e400"));
    assert_eq!(read(None, b"[1]"), json("[1]"));
    assert_eq!(read(None, b"plain"), base64("cGxhaW4="));
    assert_eq!(read(Some("text/plain"), b"1"), base64("MQ=="));
    assert_eq!(read(Some("application/json"), b""), Payload::None);
}

#[test]
fn a_body_that_is_not_what_it_is_said_to_be_is_refused() {
    let error = from_binary(&attributes(&[]), Some("application/json"), b"{\n!").unwrap_err();
    expect!["the payload is said to be JSON and is not: key must be a string at line 2 column 1 (line 2, column 1 of the payload)"]
        .assert_eq(&error.to_string());
}

#[test]
fn attributes_of_headers_are_texts_and_the_first_of_two_counts() {
    let event =
        from_binary(&attributes(&[("ext", "5"), ("ext", "6"), ("time", "2026-01-01T00:00:00Z")]), None, b"").unwrap();
    assert_eq!(event.extras, [("ext".to_owned(), "\"5\"".to_owned())]);
    assert_eq!(event.identity(), "!2026-01-01T00:00:00Z!t!/s!1");
    let error = from_binary(&attributes(&[("datacontenttype", "a/b")]), None, b"").unwrap_err();
    assert!(error.to_string().contains("`datacontenttype` is no attribute of binary mode"), "{error}");
    let error = from_binary(&attributes(&[("bad-name", "x")]), None, b"").unwrap_err();
    assert!(error.to_string().contains("such as `badname`"), "{error}");
}
