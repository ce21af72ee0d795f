//! Brokers behind TLS that ask who we are.

use std::path::Path;
use std::sync::Arc;

use pintail_telemetry::sources::{ClientTls, KafkaOptions, NatsOptions, Reach, Source, SourceOptions};
use pintail_testkit::authority::{Authority, Identity, write};
use pintail_testkit::services::{free_address, private_kafka, private_nats, unique_name};
use pintail_testkit::wait_until;
use rskafka::client::ClientBuilder;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use secrecy::SecretString;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{context, kafka_options, nats_options, refusal, run_while};
use crate::harness::{On, Place};

const RIGHT: &str = "the right one";

fn texts(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Runs a source until it is known whether its broker takes it.
fn is_let_in(place: &Place, options: SourceOptions) -> bool {
    let mut reach = Reach::Connecting;
    let ended = run_while(Source::new(options, context(place, "")), |status| {
        wait_until("it is known", || {
            reach = status.reach();
            reach != Reach::Connecting
        });
    });
    ended.unwrap();
    reach == Reach::Up
}

#[test]
fn a_nats_server_with_tls_takes_who_shows_a_certificate_and_knows_the_password() {
    let place = Place::new(On::Sqlite);
    let (folder, authority) = (place.folder.path(), Authority::new());
    let (certificate, key) = authority.sign().write(folder, "server");
    let ca = write(folder, "ca.pem", authority.pem());
    let more = [
        texts(&["--tlsverify", "--tlscert", &shown(&certificate), "--tlskey", &shown(&key)]),
        texts(&["--tlscacert", &shown(&ca), "--user", "pintail", "--pass", RIGHT]),
    ];
    let address = free_address();
    let _server = private_nats(&folder.join("nats"), &address, &more.concat());
    let right = NatsOptions {
        user: Some(("pintail".to_owned(), SecretString::from(RIGHT))),
        tls: Some(ClientTls { authority: Some(ca.clone()), identity: Some(authority.sign().write(folder, "us")) }),
        ..nats_options(&format!("nats://{address}"), &unique_name())
    };
    // The client of this test chooses none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    make_stream(&place, &right);
    assert!(is_let_in(&place, SourceOptions::Nats(right.clone())));
    let stranger = Authority::new();
    let wrong = [
        NatsOptions { user: Some(("pintail".to_owned(), SecretString::from("another"))), ..right.clone() },
        NatsOptions { user: None, ..right.clone() },
        NatsOptions { tls: Some(ClientTls { authority: Some(ca.clone()), identity: None }), ..right.clone() },
        NatsOptions { tls: Some(with(&ca, &stranger.sign(), folder)), ..right.clone() },
        NatsOptions {
            tls: Some(ClientTls { authority: None, identity: right.tls.clone().unwrap().identity }),
            ..right
        },
    ];
    for options in wrong {
        let told = format!("{options:?}");
        assert!(!is_let_in(&place, SourceOptions::Nats(options)), "{told}");
        assert!(!told.contains(RIGHT), "passwords do not print");
    }
}

fn with(ca: &Path, identity: &Identity, folder: &Path) -> ClientTls {
    ClientTls { authority: Some(ca.to_owned()), identity: Some(identity.write(folder, "stranger")) }
}

/// Makes the stream as a client of the same user does.
fn make_stream(place: &Place, options: &NatsOptions) {
    let tls = options.tls.clone().unwrap();
    let (certificate, key) = tls.identity.unwrap();
    let stream = async_nats::jetstream::stream::Config {
        name: options.stream.clone(),
        subjects: vec![format!("{}.>", options.stream)],
        ..Default::default()
    };
    place.runtime.block_on(async {
        let connect = async_nats::ConnectOptions::with_user_and_password("pintail".to_owned(), RIGHT.to_owned())
            .add_root_certificates(tls.authority.unwrap())
            .add_client_certificate(certificate, key);
        let url = secrecy::ExposeSecret::expose_secret(&options.url);
        let client = connect.connect(url).await.unwrap();
        async_nats::jetstream::new(client).create_stream(stream).await.unwrap();
    });
}

/// Puts TLS before the broker at `upstream`, and returns where.
fn tls_before(place: &Place, upstream: &str, identity: &Identity) -> String {
    let chain = CertificateDer::pem_slice_iter(identity.certificate.as_bytes()).collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = place.runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let (address, upstream) = (listener.local_addr().unwrap().to_string(), upstream.to_owned());
    place.runtime.spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (acceptor, upstream) = (acceptor.clone(), upstream.clone());
            tokio::spawn(async move {
                // Who does not trust the certificate has gone.
                let Ok(mut client) = acceptor.accept(client).await else { return };
                let mut broker = TcpStream::connect(upstream).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut broker).await;
            });
        }
    });
    address
}

/// Makes the topic as a client that trusts `authority` does.
fn make_topic(place: &Place, broker: &str, authority: &Authority, topic: &str) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    place.runtime.block_on(async {
        let client = ClientBuilder::new(vec![broker.to_owned()]).tls_config(config).build().await.unwrap();
        client.controller_client().unwrap().create_topic(topic, 1, 1, 5_000).await.unwrap();
    });
}

#[test]
fn a_broker_of_kafka_with_tls_is_read_when_its_authority_is_trusted() {
    let place = Place::new(On::Sqlite);
    let (folder, authority) = (place.folder.path(), Authority::new());
    let address = free_address();
    let proxy = tls_before(&place, &address, &authority.sign());
    let _server = private_kafka(&folder.join("kafka"), &address, &proxy);
    let topic = unique_name();
    make_topic(&place, &proxy, &authority, &topic);
    let trusting = |authority: &Authority, name: &str| KafkaOptions {
        tls: Some(ClientTls { authority: Some(write(folder, name, authority.pem())), identity: None }),
        ..kafka_options(&proxy, &topic)
    };
    // Also the partitions are asked through the proxy, which the broker names as its own address.
    assert!(is_let_in(&place, SourceOptions::Kafka(trusting(&authority, "ca.pem"))));
    let of_another = trusting(&Authority::new(), "other.pem");
    assert!(!is_let_in(&place, SourceOptions::Kafka(of_another)));
}

#[test]
fn a_file_that_cannot_be_used_ends_the_source_and_is_named() {
    let place = Place::new(On::Sqlite);
    let folder = place.folder.path();
    let no_key = write(folder, "no-key.pem", "");
    let (certificate, _) = Authority::new().sign().write(folder, "us");
    let tls = |authority: Option<&Path>| ClientTls {
        authority: authority.map(Path::to_owned),
        identity: Some((certificate.clone(), no_key.clone())),
    };
    let kafka = |tls| SourceOptions::Kafka(KafkaOptions { tls: Some(tls), ..kafka_options("127.0.0.1:1", "t") });
    let nats = NatsOptions { credentials: Some(certificate.clone()), ..nats_options("nats://127.0.0.1:1", "S") };
    let cases = [
        (kafka(tls(Some(&folder.join("none.pem")))), "cannot read a certificate authority in"),
        (kafka(tls(Some(&certificate))), "cannot read a private key in"),
        (SourceOptions::Nats(nats), "it is no credentials file"),
    ];
    for (options, expected) in cases {
        let error = refusal(Source::new(options, context(&place, "")));
        assert!(error.contains(expected), "{error}");
    }
}
