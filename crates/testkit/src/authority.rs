//! Certificates for tests, made when they are needed: an authority, and what it signs.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType};

/// A certificate authority that nobody trusts unless told to.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The key.
    pub key: String,
}

impl Authority {
    /// Makes one.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no name is a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let pem = params.self_signed(&key).expect("the key signs").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Returns its certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns a certificate for this machine.
    pub fn sign(&self) -> Identity {
        self.sign_for(None, &[])
    }

    /// Returns a certificate of this machine with a common name and more URIs as names.
    pub fn sign_for(&self, common_name: Option<&str>, uris: &[&str]) -> Identity {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("an address is a name");
        // Without a name there is one by default.
        params.distinguished_name = DistinguishedName::new();
        if let Some(name) = common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        for uri in uris {
            let uri = (*uri).try_into().expect("a URI of a test is ASCII");
            params.subject_alt_names.push(SanType::URI(uri));
        }
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority signs").pem();
        Identity { certificate, key: key.serialize_pem() }
    }
}

impl Identity {
    /// Writes `<name>.pem` and `<name>.key` into `folder` and returns where they are.
    pub fn write(&self, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        (write(folder, &format!("{name}.pem"), &self.certificate), write(folder, &format!("{name}.key"), &self.key))
    }
}

/// Writes a file of PEM and returns where it is.
pub fn write(folder: &Path, name: &str, pem: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, pem).expect("a test's folder can be written");
    path
}
