//! Sealing: AES-256-GCM, with the object's key as what must match, so that an object cannot be put in another's place.
//!
//! Two formats are read. `DBE1` is nonce (12 bytes), then ciphertext and tag; it does not say which key it needs, so every
//! key of the ring is tried. `DBE2` has the key's id (its length in one byte, then the text) before the nonce, and is what
//! is written. Anything else is plain.

use std::collections::BTreeMap;
use std::fmt;

use aes_gcm::aead::{Aead as _, OsRng, Payload};
use aes_gcm::{AeadCore as _, Aes256Gcm, Key, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

const WITHOUT_ID: &[u8; 4] = b"DBE1";
const WITH_ID: &[u8; 4] = b"DBE2";
const NONCE: usize = 12;

/// Tells what names are made of from the key itself.
const NAMING: &[u8] = b"names of objects";

/// An object that cannot be sealed or opened, or a key that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The ring lacks the key.
    #[error("it is sealed with the key `{id}`, which the key ring does not have")]
    NoKey {
        /// The key's id.
        id: String,
    },
    /// There is no key at all.
    #[error("it is sealed, and there are no keys")]
    NoKeys,
    /// No key fits, or the bytes were changed.
    #[error("it cannot be opened: the key is another one, or its bytes were changed or belong to another object")]
    Broken,
    /// A key is not 32 bytes of base64.
    #[error("the key `{id}` must be 32 bytes in base64")]
    BadKey {
        /// The key's id.
        id: String,
    },
    /// The id cannot be written into an object.
    #[error("a key's id has from 1 to 255 bytes")]
    BadId,
}

/// Keys by id, and the one that seals.
#[derive(Clone, Default)]
pub struct KeyRing {
    keys: BTreeMap<String, Aes256Gcm>,
    current: Option<String>,
    /// Made of the current key, for the names of objects; empty without one.
    naming: Vec<u8>,
}

impl KeyRing {
    /// Returns a ring of `keys`, base64 by id; new objects are sealed with `current`, and not at all without it.
    pub fn new(keys: &BTreeMap<String, SecretString>, current: Option<&str>) -> Result<Self, SealError> {
        let mut ring = Self { keys: BTreeMap::new(), current: current.map(str::to_owned), naming: Vec::new() };
        for (id, secret) in keys {
            let bad = || SealError::BadKey { id: id.clone() };
            if u8::try_from(id.len()).is_err() || id.is_empty() {
                return Err(SealError::BadId);
            }
            let bytes = STANDARD.decode(secret.expose_secret()).map_err(|_| bad())?;
            let bytes: [u8; 32] = bytes.try_into().map_err(|_| bad())?;
            if current == Some(id) {
                ring.naming = Sha256::digest([NAMING, &bytes].concat()).to_vec();
            }
            ring.keys.insert(id.clone(), Aes256Gcm::new(&Key::<Aes256Gcm>::from(bytes)));
        }
        match current {
            Some(id) if !ring.keys.contains_key(id) => Err(SealError::NoKey { id: id.to_owned() }),
            _ => Ok(ring),
        }
    }

    /// Returns what goes before that of which the name of a sealed object is a hash: who lacks the key cannot tell from the
    /// name that a guess at the content is right.
    pub(super) fn naming(&self) -> &[u8] {
        &self.naming
    }

    /// Returns the content of the object `key` that holds `plain`.
    pub fn seal(&self, key: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let Some(id) = &self.current else { return Ok(plain.to_vec()) };
        let cipher = self.keys.get(id).ok_or_else(|| SealError::NoKey { id: id.clone() })?;
        let nonce = Aes256Gcm::generate_nonce(&mut OsRng);
        let payload = Payload { msg: plain, aad: key.as_bytes() };
        let sealed = cipher.encrypt(&nonce, payload).map_err(|_| SealError::Broken)?;
        let length = u8::try_from(id.len()).map_err(|_| SealError::BadId)?;
        Ok([WITH_ID.as_slice(), &[length], id.as_bytes(), &nonce, &sealed].concat())
    }

    /// Returns what the object `key` with `content` holds.
    pub fn open(&self, key: &str, content: Vec<u8>) -> Result<Vec<u8>, SealError> {
        let Some((magic, rest)) = content.split_first_chunk::<4>() else { return Ok(content) };
        match magic {
            WITHOUT_ID => {
                if self.keys.is_empty() {
                    return Err(SealError::NoKeys);
                }
                let opened = self.keys.values().find_map(|cipher| decrypt(cipher, key, rest));
                opened.ok_or(SealError::Broken)
            }
            WITH_ID => {
                let (length, rest) = rest.split_first().ok_or(SealError::Broken)?;
                let (id, rest) = rest.split_at_checked(usize::from(*length)).ok_or(SealError::Broken)?;
                let id = String::from_utf8_lossy(id).into_owned();
                let cipher = self.keys.get(&id).ok_or(SealError::NoKey { id })?;
                decrypt(cipher, key, rest).ok_or(SealError::Broken)
            }
            _ => Ok(content),
        }
    }
}

fn decrypt(cipher: &Aes256Gcm, key: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE>()?;
    cipher.decrypt(&Nonce::from(*nonce), Payload { msg: sealed, aad: key.as_bytes() }).ok()
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").field("ids", &self.keys.keys()).field("current", &self.current).finish()
    }
}
