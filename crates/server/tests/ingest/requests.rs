//! What a request may be besides an event: another path, another method, packed, or one too many.

use std::io::Write as _;
use std::num::NonZeroU32;

use expect_test::expect;
use flate2::Compression;
use flate2::write::GzEncoder;
use pintail_server::ingest::RateLimit;

use crate::harness::{Setup, serve};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1.10}}"#;

/// Sends a request with `body` in the encoding `encoding`, and returns its status and message.
async fn send(url: &str, encoding: &str, body: Vec<u8>) -> (u16, String) {
    let request = reqwest::Client::new().post(url).header("content-type", "application/cloudevents+json");
    let response = request.header("content-encoding", encoding).body(body).send().await.unwrap();
    let status = response.status().as_u16();
    let answer: serde_json::Value = response.json().await.unwrap();
    (status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn another_path_or_method_is_told_what_there_is() {
    let server = serve(Setup::default()).await;
    let client = reqwest::Client::new();
    let answer = client.post(format!("{}/event", server.url)).body(EVENT).send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 404);
    expect![[r#"{"error":{"message":"there is nothing at `/event`: events are taken by POST at `/` and `/events`; `/health`, `/ready` and `/metrics` are read by GET"}}"#]].assert_eq(&answer.text().await.unwrap());
    let answer = client.get(format!("{}/events", server.url)).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["allow"]), (405, &"POST".parse().unwrap()));
    expect![[r#"{"error":{"message":"`/events` does not take GET: events are taken by POST at `/` and `/events`; `/health`, `/ready` and `/metrics` are read by GET"}}"#]].assert_eq(&answer.text().await.unwrap());
    let answer = client.post(format!("{}/ready", server.url)).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["allow"]), (405, &"GET,HEAD".parse().unwrap()));
    assert_eq!(server.logged().await, []);
}

#[tokio::test]
async fn a_packed_body_is_unpacked_up_to_the_limit() {
    let server = serve(Setup { body_limit: Some(1_000), ..Setup::default() }).await;
    assert_eq!(send(&server.url, "gzip", packed(EVENT)).await.0, 202);
    assert_eq!(send(&server.url, "identity", EVENT.into()).await.0, 202);
    // A thousand times smaller when it is packed.
    let (status, message) = send(&server.url, "gzip", packed(&"x".repeat(1_000_000))).await;
    assert!(status == 413 && message.contains("larger than 1000 bytes"), "{status} {message}");
    let (status, message) = send(&server.url, "gzip", EVENT.into()).await;
    assert!(status == 400 && message.starts_with("the body was broken off"), "{status} {message}");
    for encoding in ["br", "zstd", "gzip, br"] {
        let (status, message) = send(&server.url, encoding, packed(EVENT)).await;
        assert_eq!(status, 415, "{encoding}");
        assert!(message.ends_with("is not read; send it as it is, or as `gzip`"), "{message}");
    }
    assert_eq!(server.logged().await.len(), 2);
}

#[tokio::test]
async fn a_client_that_sends_too_often_is_told_when_to_come_again() {
    let [per_second, burst] = [1, 3].map(|number| NonZeroU32::new(number).unwrap());
    let server = serve(Setup { rate_limit: Some(RateLimit { per_second, burst }), ..Setup::default() }).await;
    for _ in 0..3 {
        assert_eq!(send(&server.url, "identity", EVENT.into()).await.0, 202);
    }
    let request = reqwest::Client::new().post(&server.url).body(EVENT);
    let answer = request.send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert!(answer.text().await.unwrap().contains("than `rate_limit` allows; nothing of this request was kept"));
    // Who only looks is not counted.
    assert_eq!(reqwest::get(format!("{}/ready", server.url)).await.unwrap().status().as_u16(), 200);
    assert_eq!(server.logged().await.len(), 3);
}
