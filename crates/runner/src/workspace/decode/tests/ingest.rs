//! `[ingest]`: defaults, every key, every mistake.

use std::path::Path;

use expect_test::expect;

use super::{check, good};

#[test]
fn ingest_has_defaults_and_takes_what_is_said() {
    let config = good("", None).ingest;
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.log, Path::new("/p/.pintail/ingest/log.sqlite"));
    let text = r#"
[lake.telemetry]
[ingest]
lake = "telemetry"
table = "raw.events"
listen = "0.0.0.0:9443"
tokens = ["${S3_SECRET}"]
certificate = "tls/server.pem"
key = "tls/server.key"
client_ca = "tls/ca.pem"
body_limit = "1MiB"
log = "/var/log.sqlite"
log_limit = "2GiB"
flush_rows = 10
flush_bytes = "1MB"
flush_age = "30s"
blobs = "s3://bucket/blobs"
blob_threshold = "10KB"
blob_key = "new"
[ingest.blob_keys]
old = "${S3_KEY}"
new = "${S3_SECRET}"
[ingest.nats]
stream = "EVENTS"
subject = "in.>"
[ingest.kafka]
brokers = ["a:9092", "b:9092"]
topics = "events"
from = "end"
"#;
    let config = good(text, None).ingest;
    let nats = config.nats.clone().unwrap();
    let kafka = config.kafka.clone().unwrap();
    assert_eq!((config.schema.as_str(), config.table.as_str(), config.tokens.len()), ("raw", "events", 1));
    assert_eq!((nats.stream.as_str(), nats.consumer.as_str(), nats.max_tries), ("EVENTS", "pintail", 10));
    assert_eq!((kafka.brokers.len(), kafka.topics, kafka.from_start), (2, vec!["events".to_owned()], false));
    assert!(!format!("{config:?}").contains("shh"), "secrets do not print");
}

#[test]
fn what_is_wrong_in_ingest_has_its_place() {
    check(
        r#"
[ingest]
lake = "mian"
table = "a.b.c"
listen = "localhost:80"
tokens = ["plain"]
certificate = "a.pem"
flush_row = 1
blobs = "gs://x"
blob_key = "none"
log_limit = "1MB"
[ingest.nats]
subject = "x"
[ingest.kafka]
topics = ["t"]
from = "middle"
"#,
        expect![[r#"
            3:8 P004 "mian": `lake` must be one of the lakes, found `mian` (did you mean `main`?)
            4:9 P004 "a.b.c": `table` must be a table, found `a.b.c` (such as `raw_events` or `telemetry.raw_events`)
            5:10 P004 "localhost:80": `listen` must be an address and a port, found `localhost:80` (such as `127.0.0.1:8080`)
            6:11 P004 "plain": `tokens` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
            7:15 P004 "a.pem": TLS needs both `certificate` and `key` (name the files of both, in PEM)
            8:1 P002 flush_row: unknown key `flush_row` in [ingest] (did you mean `flush_rows`?)
            9:9 P004 "gs://x": `blobs` must be a folder or `s3://bucket/prefix`, found `gs://x`
            10:12 P004 "none": `blob_key` must be the id of one of `blob_keys`, found `none` (add it under `[ingest.blob_keys]`, as base64 of 32 bytes from the environment)
            11:13 P004 "1MB": `log_limit` must be at least as much as `body_limit`, found `1MB` (a request of the largest size must fit into the log)
            12:9 P004 nats: `[ingest.nats]` needs `stream` (add `stream = "…"`)
            14:9 P004 kafka: `[ingest.kafka]` needs `brokers` (such as `brokers = ["127.0.0.1:9092"]`)
            16:8 P004 "middle": `from` must be `start` or `end`, found `middle`
        "#]],
    );
    check(
        "[ingest]\nlisten = \"0.0.0.0:80\"\n",
        expect![[r#"
        1:2 P575 ingest: ingest would listen on 0.0.0.0:80 and take events from anybody (add `tokens = ["${INGEST_TOKEN}"]` or a `client_ca`; `open = true` says that it is meant)
    "#]],
    );
    check("[ingest]\nlisten = \"0.0.0.0:80\"\nopen = true\n", expect![[""]]);
}
