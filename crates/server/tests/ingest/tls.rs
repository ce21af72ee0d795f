//! TLS: encrypted, and with an authority only for clients that show a certificate of it.

use std::num::NonZeroU32;
use std::path::Path;

use pintail_server::ingest::RateLimit;
use pintail_server::listen::{ListenError, Listener, Tls};
use pintail_telemetry::log::Record;
use pintail_testkit::authority::{Authority, Identity, write};

use crate::harness::{Setup, serve};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

fn files(folder: &Path, server: &Authority, clients: Option<&Authority>) -> Tls {
    let (certificate, key) = server.sign().write(folder, "server");
    let client_authority = clients.map(|clients| write(folder, "clients.pem", clients.pem()));
    Tls { certificate, key, client_authority }
}

fn client(server: &Authority, identity: Option<Identity>) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(server.pem().as_bytes()).unwrap();
    let mut builder = reqwest::Client::builder().tls_certs_only([root]);
    if let Some(Identity { certificate, key }) = identity {
        builder = builder.identity(reqwest::Identity::from_pem(format!("{certificate}{key}").as_bytes()).unwrap());
    }
    builder.build().unwrap()
}

async fn post(client: reqwest::Client, url: &str) -> Option<u16> {
    let request = client.post(url).header("content-type", "application/cloudevents+json").body(EVENT);
    request.send().await.ok().map(|response| response.status().as_u16())
}

#[tokio::test]
async fn events_come_over_tls() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let server = serve(Setup { tls: Some(files(folder.path(), &authority, None)), ..Setup::default() }).await;
    assert!(server.url.starts_with("https://"), "{}", server.url);
    assert_eq!(post(client(&authority, None), &server.url).await, Some(202));
    assert_eq!(post(client(&authority, None), &server.url.replace("https", "http")).await, None);
}

#[tokio::test]
async fn with_an_authority_only_its_clients_may_send() {
    let (folder, authority, clients) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let server = serve(Setup { tls: Some(files(folder.path(), &authority, Some(&clients))), ..Setup::default() }).await;
    assert_eq!(post(client(&authority, None), &server.url).await, None);
    assert_eq!(post(client(&authority, Some(authority.sign())), &server.url).await, None);
    assert_eq!(post(client(&authority, Some(clients.sign())), &server.url).await, Some(202));
    assert_eq!(server.logged().await.len(), 1);
}

#[tokio::test]
async fn the_certificate_of_a_client_says_which_source_it_may_send() {
    let (folder, authority, clients) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let tls = Some(files(folder.path(), &authority, Some(&clients)));
    let server = serve(Setup { tls, source_from_certificate: true, ..Setup::default() }).await;
    let send = async |identity: Identity, kind: &str, body: String| {
        let request = client(&authority, Some(identity)).post(&server.url).header("content-type", kind).body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json::<serde_json::Value>().await.unwrap())
    };
    const ONE: &str = "application/cloudevents+json";
    const BATCH: &str = "application/cloudevents-batch+json";
    let event = |source: &str| {
        let source = if source.is_empty() { String::new() } else { format!(r#""source":"{source}","#) };
        format!(r#"{{"specversion":"1.0","id":"1",{source}"type":"t"}}"#)
    };
    let car = clients.sign_for(Some("car-7"), &["urn:fleet:7"]);
    for source in ["", "car-7", "urn:fleet:7"] {
        assert_eq!(send(car.clone(), ONE, event(source)).await.0, 202, "{source}");
    }
    let (status, told) = send(car.clone(), ONE, event("car-8")).await;
    assert_eq!((status, &told["error"]["attribute"]), (403, &"source".into()));
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("`source` is `car-8`, and your certificate is of `car-7`, `urn:fleet:7`"), "{message}");
    // One that is forged is enough to refuse the batch; bad elements are dead letters as ever.
    let (status, told) = send(car.clone(), BATCH, format!("[{}, 1, {}]", event(""), event("car-8"))).await;
    assert_eq!(status, 403);
    assert!(told["error"]["message"].as_str().unwrap().starts_with("`source` of element 2 is `car-8`"), "{told}");
    assert_eq!(send(car, BATCH, format!("[{}, 1]", event(""))).await.0, 202);
    let urn = clients.sign_for(None, &["urn:fleet:9"]);
    assert_eq!(send(urn, ONE, event("")).await.0, 202);
    let (status, told) = send(clients.sign(), ONE, event("car-7")).await;
    assert!(status == 403 && told["error"]["message"].as_str().unwrap().contains("neither a common name"), "{told}");
    let sources = |record: &Record| match record {
        Record::Event(arrival) => arrival.event.source.clone(),
        Record::Refused(_) => "refused".to_owned(),
    };
    let logged: Vec<String> = server.logged().await.iter().map(sources).collect();
    assert_eq!(logged, ["car-7", "car-7", "urn:fleet:7", "car-7", "refused", "urn:fleet:9"]);
}

#[tokio::test]
async fn clients_with_certificates_have_a_limit_each() {
    let (folder, authority, clients) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let one = NonZeroU32::new(1).unwrap();
    let tls = Some(files(folder.path(), &authority, Some(&clients)));
    let rate_limit = Some(RateLimit { per_second: one, burst: one });
    let server = serve(Setup { tls, rate_limit, ..Setup::default() }).await;
    for (name, expected) in [("a", 202), ("b", 202), ("a", 429)] {
        let identity = clients.sign_for(Some(name), &[]);
        assert_eq!(post(client(&authority, Some(identity)), &server.url).await, Some(expected), "{name}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let good = files(folder.path(), &authority, None);
    let address = "127.0.0.1:0".parse().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let cases = [
        (Tls { certificate: folder.path().join("none.pem"), ..good.clone() }, "cannot read a certificate in"),
        (Tls { certificate: empty.clone(), ..good.clone() }, "it holds none"),
        (Tls { key: empty.clone(), ..good.clone() }, "cannot read a private key in"),
        (Tls { client_authority: Some(empty), ..good }, "cannot read a certificate authority in"),
    ];
    for (tls, expected) in cases {
        let error = Listener::bind(address, Some(&tls)).unwrap_err();
        assert!(matches!(&error, ListenError::TlsFile { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = Listener::bind(taken.local_addr().unwrap(), None).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
}
