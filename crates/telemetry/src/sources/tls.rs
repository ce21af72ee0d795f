//! TLS towards a broker: whom to trust, and who we are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// TLS towards a broker, files in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// The authority of the broker's certificate; those that the system trusts when absent.
    pub authority: Option<PathBuf>,
    /// Our certificate and its key, for brokers that ask who we are.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A file of TLS that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("cannot read {what} in {}: {reason}", .path.display())]
    File {
        /// `a certificate`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The system has no authorities.
    #[error("the system trusts no certificate authority: {reason}; name the broker's as `ca`")]
    NoAuthorities {
        /// Why.
        reason: String,
    },
    /// Certificate and key do not go together.
    #[error("certificate and key cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl ClientTls {
    /// Reads the files.
    pub(super) fn config(&self) -> Result<ClientConfig, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(TlsError::Unusable)?.with_root_certificates(self.roots()?);
        let Some((certificate, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let chain = certificates("a certificate", certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::File {
            what: "a private key",
            path: key.clone(),
            reason: error.to_string(),
        })?;
        builder.with_client_auth_cert(chain, key).map_err(TlsError::Unusable)
    }

    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.authority {
            Some(path) => {
                for certificate in certificates("a certificate authority", path)? {
                    roots.add(certificate).map_err(TlsError::Unusable)?;
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(found.certs);
                if roots.is_empty() {
                    let reasons: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
                    return Err(TlsError::NoAuthorities { reason: reasons.join("; ") });
                }
            }
        }
        Ok(roots)
    }
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |reason: String| TlsError::File { what, path: path.to_owned(), reason };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| failed(error.to_string()))?;
    match found.is_empty() {
        true => Err(failed("it holds none".to_owned())),
        false => Ok(found),
    }
}
