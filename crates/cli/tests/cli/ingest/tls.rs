//! TLS of the running server: encrypted, with certificates of clients, and with what these say about the source.

use std::path::Path;
use std::process::Command;

use pintail_testkit::authority::{Authority, Identity, write};
use pintail_testkit::{Project, pintail};

use super::{address_of, event, query, stop};

/// Sends an event by curl and returns the status; `None` when there was no connection.
fn curl(folder: &Path, address: &str, identity: Option<&Identity>, body: &str) -> Option<u16> {
    let mut command = Command::new("curl");
    command.args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "20"]);
    command.arg("--cacert").arg(folder.join("ca.pem"));
    if let Some(identity) = identity {
        let (certificate, key) = identity.write(folder, "client");
        command.arg("--cert").arg(certificate).arg("--key").arg(key);
    }
    command.args(["--header", "Content-Type: application/cloudevents+json", "--data", body]);
    let output = command.arg(format!("https://{address}/")).output().expect("curl is installed");
    let status = String::from_utf8_lossy(&output.stdout).parse().ok();
    status.filter(|status| *status != 0)
}

#[test]
fn a_server_with_tls_takes_events_of_clients_with_a_certificate_as_what_it_names() {
    let project = Project::new(
        r#"
//- /pintail.toml
[ingest]
flush_age = "0s"
certificate = "server.pem"
key = "server.key"
client_ca = "clients.pem"
source_from_certificate = true
"#,
    );
    let (root, authority, clients) = (project.root(), Authority::new(), Authority::new());
    authority.sign().write(root, "server");
    write(root, "ca.pem", authority.pem());
    write(root, "clients.pem", clients.pem());
    let running = pintail(&project).words("ingest --listen 127.0.0.1:0").start();
    let address = address_of(&running);
    assert!(running.talk().contains("https://"), "{}", running.talk());
    let car = clients.sign_for(Some("/test"), &[]);
    assert_eq!(curl(root, &address, Some(&car), &event("mine")), Some(202));
    let nameless = event("nameless").replace("\"source\":\"/test\",", "");
    assert_eq!(curl(root, &address, Some(&car), &nameless), Some(202));
    let other = clients.sign_for(Some("/other"), &[]);
    assert_eq!(curl(root, &address, Some(&other), &event("forged")), Some(403));
    assert_eq!(curl(root, &address, Some(&authority.sign_for(Some("/test"), &[])), &event("stranger")), None);
    assert_eq!(curl(root, &address, None, &event("anybody")), None);
    stop(running);
    let rows = query(&project, "SELECT id, source FROM raw_events ORDER BY id");
    assert_eq!(
        serde_json::Value::from(rows),
        serde_json::json!([{"id": "mine", "source": "/test"}, {"id": "nameless", "source": "/test"}])
    );
}
