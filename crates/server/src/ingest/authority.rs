//! Who may send: bearer tokens.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

/// The tokens that are accepted, as hashes; without any everybody may send.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<[u8; 32]>);

impl Tokens {
    /// Returns the tokens; the texts are not kept.
    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a SecretString>) -> Self {
        Self(tokens.into_iter().map(|token| hash(token.expose_secret())).collect())
    }

    /// Returns whether a request with `headers` may be served.
    pub(super) fn allow(&self, headers: &HeaderMap) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let token =
            value.and_then(|value| value.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        // Hashes are compared, so that the time that it takes says nothing about a token.
        token.is_some_and(|(_, token)| self.0.contains(&hash(token.trim())))
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
