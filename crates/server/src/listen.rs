//! Listening: an address, TLS when there is a certificate, and an orderly end.
//!
//! Invariant: a connection is served only after its handshake, and with a client authority only when the client has shown
//! a certificate of it. The end waits for requests that have begun.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::watch;

use crate::peer::PeerAcceptor;

/// How long requests that have begun may take at the end.
const DRAIN: Duration = Duration::from_secs(30);

/// A connection whose next headers take longer is closed.
const HEADERS: Duration = Duration::from_secs(20);

/// Headers may have so many bytes.
const HEADER_BYTES: usize = 64 << 10;

/// The files of TLS, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The server's certificate, with those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authority whose certificates clients must show; any client may come without it.
    pub client_authority: Option<PathBuf>,
}

/// A server that could not begin, or has broken off.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file of TLS cannot be read.
    #[error("cannot read {what} in {}: {reason}", .path.display())]
    TlsFile {
        /// `a private key`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Certificate and key do not go together.
    #[error("certificate and key cannot be used")]
    Tls(#[source] rustls::Error),
    /// Serving failed.
    #[error("the server has stopped")]
    Serve(#[source] std::io::Error),
}

/// A bound address.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    address: SocketAddr,
}

impl Listener {
    /// Binds `address`; port 0 takes one that is free.
    pub fn bind(address: SocketAddr, tls: Option<&Tls>) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Address { address, source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let tls = tls.map(server_config).transpose()?.map(|config| RustlsConfig::from_config(Arc::new(config)));
        Ok(Self { listener, tls, address: bound })
    }

    /// Returns the address as a person opens it.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Serves `routes` until `stop` says so and the requests that have begun are answered.
    pub async fn serve(self, routes: Router, mut stop: watch::Receiver<bool>) -> Result<(), ListenError> {
        let handle = Handle::new();
        let stopping = handle.clone();
        let waiting = tokio::spawn(async move {
            // The sender that is gone stops the server as well.
            let _ = stop.wait_for(|is_stopped| *is_stopped).await;
            stopping.graceful_shutdown(Some(DRAIN));
        });
        let service = routes.into_make_service_with_connect_info::<SocketAddr>();
        let served = match self.tls {
            Some(tls) => match axum_server::from_tcp_rustls(self.listener, tls) {
                Ok(server) => {
                    let mut server = server.map(PeerAcceptor);
                    bound_headers(server.http_builder());
                    server.handle(handle).serve(service).await
                }
                Err(error) => Err(error),
            },
            None => match axum_server::from_tcp(self.listener) {
                Ok(mut server) => {
                    bound_headers(server.http_builder());
                    server.handle(handle).serve(service).await
                }
                Err(error) => Err(error),
            },
        };
        waiting.abort();
        served.map_err(ListenError::Serve)
    }
}

/// Who sends headers slowly, or without an end, holds a connection and nothing else, and not for long.
fn bound_headers(builder: &mut Builder<TokioExecutor>) {
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES);
}

/// Says once, for the whole process, which library does the cryptography of TLS: two of them are linked, and clients that do
/// not choose would panic at their first connection.
pub fn choose_cryptography() {
    // Whoever was first has chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn server_config(tls: &Tls) -> Result<ServerConfig, ListenError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(ListenError::Tls)?;
    let builder = match &tls.client_authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates("a certificate authority", path)? {
                roots.add(certificate).map_err(ListenError::Tls)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            let verifier = verifier.map_err(|error| ListenError::TlsFile {
                what: "a certificate authority",
                path: path.clone(),
                reason: error.to_string(),
            })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain = certificates("a certificate", &tls.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| ListenError::TlsFile {
        what: "a private key",
        path: tls.key.clone(),
        reason: error.to_string(),
    })?;
    let mut config = builder.with_single_cert(chain, key).map_err(ListenError::Tls)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, ListenError> {
    let failed = |reason: String| ListenError::TlsFile { what, path: path.to_owned(), reason };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))?;
    match found.is_empty() {
        true => Err(failed("it holds none".to_owned())),
        false => Ok(found),
    }
}
