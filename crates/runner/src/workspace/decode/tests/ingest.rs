//! `[ingest]`: defaults, every key, every mistake.

use std::path::Path;

use expect_test::expect;

use super::{check, good, print, read};
use crate::workspace::BrokerTls;

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
source_from_certificate = true
rate_limit = 50
rate_burst = 200
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
user = "pintail"
password = "${S3_SECRET}"
tls = true
[ingest.kafka]
brokers = ["a:9092", "b:9092"]
topics = "events"
from = "end"
ca = "tls/kafka.pem"
certificate = "tls/us.pem"
key = "tls/us.key"
sasl = "scram-sha-512"
user = "us"
password = "${S3_SECRET}"
"#;
    let config = good(text, None).ingest;
    let nats = config.nats.clone().unwrap();
    let kafka = config.kafka.clone().unwrap();
    assert_eq!((config.schema.as_str(), config.table.as_str(), config.tokens.len()), ("raw", "events", 1));
    assert_eq!((nats.stream.as_str(), nats.consumer.as_str(), nats.max_tries), ("EVENTS", "pintail", 10));
    assert_eq!((kafka.brokers.len(), kafka.topics, kafka.from_start), (2, vec!["events".to_owned()], false));
    assert_eq!((nats.user.map(|(user, _)| user), nats.tls), (Some("pintail".to_owned()), Some(BrokerTls::default())));
    let identity = Some((Path::new("/p/tls/us.pem").to_owned(), Path::new("/p/tls/us.key").to_owned()));
    assert_eq!(kafka.tls, Some(BrokerTls { ca: Some("/p/tls/kafka.pem".into()), identity }));
    assert_eq!(kafka.sasl.map(|sasl| (sasl.mechanism, sasl.user)), Some(("scram-sha-512", "us".to_owned())));
    let limit = config.rate_limit.map(|limit| (limit.per_second.get(), limit.burst.get()));
    assert_eq!((config.source_from_certificate, limit), (true, Some((50, 200))));
    let files: Vec<&str> = config.files.iter().map(|file| file.key).collect();
    assert_eq!(files, ["certificate", "key", "client_ca", "ca", "certificate", "key"]);
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
            7:15 P004 "a.pem": `certificate` and `key` go together (name the files of both, in PEM)
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

#[test]
fn who_we_are_and_whom_we_trust_is_whole_or_has_its_place() {
    check(
        r#"
[ingest]
tokens = ["${EMPTY}"]
client_ca = "ca.pem"
source_from_certificate = true
rate_burst = 5
[ingest.nats]
url = "http://nats:4222,tls://b"
stream = "in.put"
consumer = ""
user = "me"
token = "${S3_KEY}"
tls = false
ca = "ca.pem"
ack_wait = "0s"
[ingest.kafka]
brokers = ["kafka://a:9092", "b", "c:9092"]
topics = [""]
certificate = "us.pem"
sasl = "scram-256"
"#,
        expect![[r#"
            3:11 P004 "${EMPTY}": `tokens` must not be empty (who sends no token would be let in)
            4:13 P004 "ca.pem": `client_ca` needs a `certificate` and its `key`: only TLS asks for certificates (name the files of both, in PEM)
            5:27 P004 true: `source_from_certificate` needs `client_ca`: otherwise clients show no certificate (name the authority of the clients' certificates as `client_ca`)
            6:14 P004 5: `rate_burst` has no meaning without `rate_limit` (add `rate_limit`, requests of a client a second)
            8:7 P004 "http://nats:4222,tls://b": `url` must be servers of NATS, separated by commas, found `http://nats:4222,tls://b` (such as `nats://127.0.0.1:4222` or `tls://nats.example.com:4222`)
            9:10 P004 "in.put": `stream` must be a name without spaces and `. * > / \`, found `in.put`
            10:12 P004 "": `consumer` must not be empty (remove it, or say which)
            11:8 P004 "me": `user` and `password` go together (`password = "${NAME}"` takes it from the environment)
            11:8 P004 "me": `token` and `user` both say who Pintail is (keep the one that the server asks for)
            14:6 P004 "ca.pem": files of TLS are named, and `tls` says that there is none (remove one of the two)
            15:12 P004 "0s": `ack_wait` must be longer than nothing, found `0s` (after so long the server delivers again what has not landed)
            17:12 P004 "kafka://a:9092": `brokers` must be `host:port`, without a scheme, found `kafka://a:9092` (such as `kafka.example.com:9092`)
            17:30 P004 "b": `brokers` must be `host:port`, without a scheme, found `b` (such as `kafka.example.com:9092`)
            18:11 P004 "": `topics` must not be empty (name a topic)
            19:15 P004 "us.pem": `certificate` and `key` go together (name the files of both, in PEM)
            20:8 P004 "scram-256": `sasl` must be one of `plain`, `scram-sha-256`, `scram-sha-512`, found `scram-256`
        "#]],
    );
    check(
        "[ingest.nats]\nurl = \"nats://me:pw@nats:4222\"\nstream = \"A\"\npassword = \"plain\"\n[ingest.kafka]\nbrokers = \"a:1\"\ntopics = \"t\"\nuser = \"u\"\n",
        expect![[r#"
            2:7 P004 "nats://me:pw@nats:4222": `url` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
            4:12 P004 "plain": `password` holds a secret, which must come from the environment (write `${NAME}` and set the environment variable `NAME`)
            4:12 P004 "plain": `user` and `password` go together (`password = "${NAME}"` takes it from the environment)
            8:8 P004 "u": `user` and `password` go together (`password = "${NAME}"` takes it from the environment)
            8:8 P004 "u": `user` needs `sasl`, which says how the password is shown (one of `plain`, `scram-sha-256`, `scram-sha-512`)
        "#]],
    );
    check(
        "[ingest.kafka]\nbrokers = \"a:1\"\ntopics = \"t\"\nsasl = \"plain\"\n",
        expect![[r#"
            4:8 P004 "plain": `sasl = "plain"` without TLS shows the password to everybody on the way (add `tls = true`, or use `scram-sha-512`)
            4:8 P004 "plain": `sasl` needs a `user` and the `password` (`password = "${NAME}"`)
        "#]],
    );
}

#[test]
fn a_file_that_is_not_there_has_its_place_and_is_asked_for_only_by_who_needs_it() {
    let text = "[ingest]\ncertificate = \"/proc/none.pem\"\nkey = \"/proc\"\nclient_ca = \"/proc/version\"\n";
    let (config, found) = read(text, None);
    assert_eq!(print(text, &found), "");
    expect![[r#"
        2:15 P576 "/proc/none.pem": `certificate` names /proc/none.pem, which cannot be read: No such file or directory (os error 2) (paths are below the project's folder; put the file there, or name the right one)
        3:7 P576 "/proc": `key` names /proc, which cannot be read: it is no file (paths are below the project's folder; put the file there, or name the right one)
    "#]].assert_eq(&print(text, &config.ingest.missing()));
}

#[test]
fn a_variable_that_is_not_set_is_asked_for_only_by_who_needs_it_and_leaves_no_second_error() {
    let text = "[ingest]\ntokens = [\"${NOPE}\"]\nlisten = \"0.0.0.0:1\"\nrate_limit = \"x\"\nblob_key = \"k1\"\n\
                [ingest.blob_keys]\nk1 = \"${NO_KEY}\"\n\
                [ingest.kafka]\nbrokers = \"b\"\ntopics = \"t\"\nsasl = \"plain\"\nuser = \"me\"\npassword = \"${NOPE}\"\n";
    let (config, found) = read(text, None);
    // The form is checked all the same.
    expect![[r#"
        4:14 P003 "x": `rate_limit` must be an integer, found a string
        9:11 P004 "b": `brokers` must be `host:port`, without a scheme, found `b` (such as `kafka.example.com:9092`)
    "#]]
    .assert_eq(&print(text, &found));
    expect![[r#"
        2:12 P005 ${NOPE}: environment variable `NOPE` is not set (set it, or write `$${NOPE}` for the text itself)
        13:13 P005 ${NOPE}: environment variable `NOPE` is not set (set it, or write `$${NOPE}` for the text itself)
        7:7 P005 ${NO_KEY}: environment variable `NO_KEY` is not set (did you mean `S3_KEY`?)
    "#]]
    .assert_eq(&print(text, &config.ingest.missing()));
    expect![[r#"
        7:7 P005 ${NO_KEY}: environment variable `NO_KEY` is not set (did you mean `S3_KEY`?)
    "#]]
    .assert_eq(&print(text, &config.ingest.blobs_unset));
}
