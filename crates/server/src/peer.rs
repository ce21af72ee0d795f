//! Who is at the other end of a connection with TLS: the names in the certificate that the handshake has proved.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use axum::Extension;
use axum::middleware::AddExtension;
use axum_server::accept::Accept;
use axum_server::tls_rustls::RustlsAcceptor;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tower_layer::Layer as _;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// The client of a connection, as its certificate names it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// The common name, then the URIs among the other names; none when it has shown no certificate.
    pub(crate) names: Arc<[String]>,
}

impl Peer {
    fn of(certificates: Option<&[CertificateDer<'_>]>) -> Self {
        let first = certificates.and_then(<[_]>::first);
        // The handshake has read it, so it can be read.
        let parsed = first.and_then(|certificate| X509Certificate::from_der(certificate).ok());
        Self { names: parsed.map(|(_, certificate)| names(&certificate)).unwrap_or_default().into() }
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let common = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let others = certificate.subject_alternative_name().ok().flatten();
    let others = others.iter().flat_map(|others| &others.value.general_names);
    let uris = others.filter_map(|name| if let GeneralName::URI(uri) = name { Some(*uri) } else { None });
    common.chain(uris).filter(|name| !name.trim().is_empty()).map(str::to_owned).collect()
}

/// Does the handshake, and tells every request of the connection who its client is.
#[derive(Clone)]
pub(crate) struct PeerAcceptor(pub(crate) RustlsAcceptor);

type Accepted<S> = io::Result<(TlsStream<TcpStream>, AddExtension<S, Peer>)>;

impl<S: Send + 'static> Accept<TcpStream, S> for PeerAcceptor {
    type Stream = TlsStream<TcpStream>;
    type Service = AddExtension<S, Peer>;
    type Future = Pin<Box<dyn Future<Output = Accepted<S>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let accepting = self.0.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepting.await?;
            let peer = Peer::of(stream.get_ref().1.peer_certificates());
            Ok((stream, Extension(peer).layer(service)))
        })
    }
}
