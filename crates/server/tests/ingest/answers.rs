//! The answers: 202 means in the log, and every other one says why and what to do.

use std::time::Duration;

use expect_test::expect;
use pintail_telemetry::cloudevents::Payload;
use pintail_telemetry::log::Record;
use pintail_telemetry::sink::LakeState;
use pintail_telemetry::sources::Reach;
use serde_json::json;

use crate::harness::{Server, Setup, serve};

const ONE: (&str, &str) = ("content-type", "application/cloudevents+json");
const BATCH: (&str, &str) = ("content-type", "application/cloudevents-batch+json; charset=utf-8");
const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"a":1.10}}"#;

#[tokio::test]
async fn all_three_modes_are_in_the_log_when_they_are_answered() {
    let server = serve(Setup::default()).await;
    assert_eq!(server.post(&[ONE], EVENT).await, (202, json!({"accepted": 1})));
    assert_eq!(server.post(&[BATCH], &format!("[{EVENT},{EVENT}]")).await, (202, json!({"accepted": 2})));
    assert_eq!(server.post(&[BATCH], "[]").await, (202, json!({"accepted": 0})));
    let binary = [
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "/s"),
        ("ce-type", "t"),
        ("ce-subject", "Caf%C3%A9 %25"),
        ("content-type", "application/json"),
    ];
    assert_eq!(server.post(&binary, r#"{"a":1.10}"#).await.0, 202);
    let logged = server.logged().await;
    assert_eq!(logged.len(), 4);
    for record in &logged {
        let Record::Event(arrival) = record else { panic!("{record:?}") };
        assert_eq!(arrival.event.data, Payload::Json(r#"{"a":1.10}"#.to_owned()));
        assert_eq!(arrival.received_micros, 1_767_323_045_000_000);
    }
    let Record::Event(last) = &logged[3] else { panic!() };
    assert_eq!(last.event.subject.as_deref(), Some("Café %"));
}

#[tokio::test]
async fn what_is_no_event_is_400_with_its_place_and_is_not_kept() {
    let server = serve(Setup::default()).await;
    let (status, answer) = server.post(&[ONE], "{\"specversion\":\"1.0\",\n\"id\":7}").await;
    assert_eq!(status, 400);
    expect![[r#"{"error":{"message":"line 2, column 6: `id` must be text, found a number","place":{"byte":27,"line":2,"column":6},"attribute":"id"}}"#]]
        .assert_eq(&answer.to_string());
    assert_eq!(server.post(&[BATCH], "[{},").await.0, 400);
    assert_eq!(server.logged().await, []);
}

#[tokio::test]
async fn a_type_that_is_no_name_of_a_folder_is_400_or_a_dead_letter() {
    let server = serve(Setup::default()).await;
    let long = EVENT.replace(r#""type":"t""#, &format!(r#""type":"{}""#, "t".repeat(300)));
    let (status, answer) = server.post(&[ONE], &long).await;
    assert_eq!((status, &answer["error"]["attribute"]), (400, &json!("type")), "{answer}");
    assert_eq!(answer["error"]["place"]["column"], 52);
    let (status, answer) = server.post(&[BATCH], &format!("[{long}, {EVENT}]")).await;
    assert_eq!((status, &answer["accepted"], &answer["refused"][0]["index"]), (202, &json!(1), &json!(0)));
    let long = "t".repeat(300);
    let binary = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-source", "/s"), ("ce-type", &long)];
    assert_eq!(server.post(&binary, "").await.0, 400);
}

#[tokio::test]
async fn bad_elements_of_a_batch_are_kept_beside_the_good_ones() {
    let server = serve(Setup::default()).await;
    let (status, answer) = server.post(&[BATCH], &format!("[{EVENT}, {{\"id\": 7}}, {EVENT}]")).await;
    assert_eq!((status, &answer["accepted"], &answer["refused"][0]["index"]), (202, &json!(2), &json!(1)));
    let logged = server.logged().await;
    let Record::Refused(refused) = &logged[1] else { panic!("{logged:?}") };
    assert_eq!(refused.raw, b"{\"id\": 7}");
    assert_eq!(refused.part.as_deref(), Some("element 1 of the batch"));
    assert!(refused.reason.contains("`id` must be text"), "{refused:?}");
    // A batch without any event is no success.
    let (status, answer) = server.post(&[BATCH], "[1]").await;
    assert_eq!((status, &answer["accepted"]), (400, &json!(0)));
}

#[tokio::test]
async fn a_request_in_no_mode_is_told_the_modes() {
    let server = serve(Setup::default()).await;
    for (content_type, expected) in [
        ("application/json", "application/cloudevents-batch+json"),
        ("application/cloudevents+avro", "are not read; send them as JSON"),
    ] {
        let (status, answer) = server.post(&[("content-type", content_type)], EVENT).await;
        assert_eq!(status, 415);
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
    let binary = [("ce-specversion", "1.0"), ("ce-id", "1"), ("ce-type", "t")];
    let (status, answer) = server.post(&binary, "").await;
    assert_eq!((status, &answer["error"]["message"]), (400, &json!("the event has no `source`")));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_413_with_and_without_a_length() {
    let server = serve(Setup { body_limit: Some(100), ..Setup::default() }).await;
    let large = "x".repeat(101);
    assert_eq!(server.post(&[ONE], &large).await.0, 413);
    // Without a length the body is read, up to the limit.
    let chunked = reqwest::Body::wrap(http_body_util::StreamBody::new(futures_util::stream::iter(
        std::iter::repeat_with(|| Ok::<_, std::io::Error>(axum::body::Bytes::from_static(b"xxxxxxxxxx")))
            .take(11)
            .map(|chunk| chunk.map(http_body::Frame::data)),
    )));
    let request = reqwest::Client::new().post(&server.url).header(ONE.0, ONE.1).body(chunked);
    assert_eq!(request.send().await.unwrap().status().as_u16(), 413);
}

#[tokio::test]
async fn a_full_log_is_503_with_the_time_to_come_again() {
    let server = serve(Setup { log_limit: Some(10), ..Setup::default() }).await;
    let request = reqwest::Client::new().post(&server.url).header(ONE.0, ONE.1).body(EVENT);
    let response = request.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    let answer: serde_json::Value = response.json().await.unwrap();
    expect!["0 bytes wait for the lake, and the log may hold 10; nothing of this request was kept, send it again"]
        .assert_eq(answer["error"]["message"].as_str().unwrap());
    assert_eq!(server.logged().await, []);
}

#[tokio::test]
async fn with_tokens_only_who_has_one_may_send() {
    let server = serve(Setup { tokens: vec!["first-token", "second-token"], ..Setup::default() }).await;
    for header in ["", "Bearer", "Bearer first", "Basic second-token", "Bearer first-token2"] {
        let (status, answer) = server.post(&[ONE, ("authorization", header)], EVENT).await;
        assert_eq!(status, 401, "{header}");
        assert!(!answer.to_string().contains("first-token"), "{answer}");
    }
    for header in ["Bearer first-token", "bearer second-token"] {
        assert_eq!(server.post(&[ONE, ("authorization", header)], EVENT).await.0, 202, "{header}");
    }
}

#[tokio::test]
async fn health_readiness_and_metrics_are_told() {
    let server = serve(Setup::default()).await;
    let get = async |path: &str| {
        let response = reqwest::get(format!("{}{path}", server.url)).await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    assert_eq!(get("/health").await, (200, r#"{"status":"ok"}"#.to_owned()));
    assert_eq!(get("/metrics").await.0, 200);
    let (status, ready) = get("/ready").await;
    assert_eq!(status, 200);
    expect![[r#"{"ready":true,"reasons":[],"lake":"ok","log_bytes":0,"log_limit":1048576,"sources":[{"source":"nats","state":"connecting"}]}"#]].assert_eq(&ready);
    server.source.set(Reach::Away);
    let (status, ready) = get("/ready").await;
    assert!(status == 200 && ready.contains(r#"{"source":"nats","state":"away"}"#), "{ready}");
    server.sink.set(LakeState::Refuses);
    let (status, ready) = get("/ready").await;
    assert!(status == 503 && ready.contains("the lake refuses what is in the log"), "{ready}");
    server.sink.set(LakeState::Well);
    assert_eq!(get("/ready").await.0, 200);
    server.routes.drain();
    let (status, ready) = get("/ready").await;
    assert_eq!(status, 503);
    assert!(ready.contains("the server is stopping"), "{ready}");
}

#[tokio::test]
async fn a_lake_that_is_away_for_too_long_or_a_log_that_is_nearly_full_is_not_ready() {
    let ready = async |server: &Server| {
        let response = reqwest::get(format!("{}/ready", server.url)).await.unwrap();
        (response.status().as_u16(), response.json::<serde_json::Value>().await.unwrap())
    };
    let server = serve(Setup { lake_patience: Some(Duration::ZERO), ..Setup::default() }).await;
    server.sink.set(LakeState::Away);
    let (status, told) = ready(&server).await;
    assert_eq!((status, &told["lake"]), (200, &json!("behind")), "nothing waits for it: {told}");
    assert_eq!(server.post(&[ONE], EVENT).await.0, 202);
    let (status, told) = ready(&server).await;
    assert!(status == 503 && told["reasons"][0].as_str().unwrap().contains("has been away"), "{told}");
    let server = serve(Setup { log_limit: Some(170), ..Setup::default() }).await;
    assert_eq!(server.post(&[ONE], EVENT).await.0, 202);
    let (status, told) = ready(&server).await;
    assert!(status == 503 && told["reasons"][0].as_str().unwrap().contains("% full"), "{told}");
}

#[tokio::test]
async fn the_end_waits_for_requests_that_have_begun() {
    let server = serve(Setup::default()).await;
    let (begin, begun) = tokio::sync::oneshot::channel::<()>();
    let (go_on, waiting) = tokio::sync::oneshot::channel::<()>();
    let (first, rest) = EVENT.split_at(20);
    let parts = futures_util::stream::unfold(
        (0, Some(begin), Some(waiting)),
        move |(step, mut begin, mut waiting)| async move {
            let data = match step {
                0 => first,
                1 => {
                    // The second part is asked for when the first is on its way.
                    begin.take().unwrap().send(()).unwrap();
                    waiting.take().unwrap().await.unwrap();
                    rest
                }
                _ => return None,
            };
            let frame = http_body::Frame::data(axum::body::Bytes::from_static(data.as_bytes()));
            Some((Ok::<_, std::io::Error>(frame), (step + 1, begin, waiting)))
        },
    );
    let body = reqwest::Body::wrap(http_body_util::StreamBody::new(Box::pin(parts)));
    let request = reqwest::Client::new().post(&server.url).header(ONE.0, ONE.1).body(body);
    let sending = tokio::spawn(request.send());
    begun.await.unwrap();
    server.stop.send_replace(true);
    go_on.send(()).unwrap();
    let response = tokio::time::timeout(Duration::from_secs(30), sending).await.unwrap().unwrap();
    // Either the request had begun and is served to its end, or its connection was never taken.
    assert_eq!(response.unwrap().status().as_u16(), 202);
    server.serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn headers_without_an_end_are_refused() {
    let server = serve(Setup::default()).await;
    let endless = "x".repeat(100_000);
    let request = reqwest::Client::new().post(&server.url).header(ONE.0, ONE.1).header("ce-note", endless).body(EVENT);
    let status = request.send().await.map(|response| response.status().as_u16());
    assert!(!matches!(status, Ok(202)), "{status:?}");
    assert_eq!(server.logged().await, []);
}

#[tokio::test]
async fn a_large_batch_is_one_entry_of_the_log() {
    let server = serve(Setup { log_limit: Some(1 << 30), body_limit: Some(8 << 20), ..Setup::default() }).await;
    let batch = format!("[{}]", vec![EVENT; 10_000].join(","));
    assert_eq!(server.post(&[BATCH], &batch).await, (202, json!({"accepted": 10_000})));
    assert_eq!((server.logged().await.len(), server.log.last_given().0), (10_000, 1));
    assert_eq!(server.post(&[BATCH], &batch[..batch.len() - 1]).await.0, 400);
}
