//! TLS: encrypted, and with an authority only for clients that show a certificate of it.

use std::path::Path;

use pintail_server::listen::{ListenError, Listener, Tls};
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
