//! Object stores: which one a place lies in, and the secret by which DuckDB reaches it.

use pintail_core::sql::{Ident, Literal};
use secrecy::{ExposeSecret as _, SecretString};

use crate::error::EngineError;
use crate::session::Session;

/// One configured object store.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    /// Its name.
    pub name: String,
    /// `s3://bucket/prefix`, without a slash at its end.
    pub url: String,
    /// `host:port`; AWS when absent.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// `path` or `vhost`.
    pub url_style: Option<String>,
    /// Whether it is reached over TLS.
    pub use_ssl: Option<bool>,
    /// The access key; anonymous when absent.
    pub key: Option<SecretString>,
    /// Its secret.
    pub secret: Option<SecretString>,
}

impl ObjectStore {
    /// Returns whether `url` lies in the store.
    pub fn holds(&self, url: &str) -> bool {
        let own = self.url.trim_end_matches('/');
        url.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns the statement that gives DuckDB the store's key, for the store's own places only.
    pub(crate) fn secret(&self) -> String {
        let mut options = vec!["TYPE s3".to_owned()];
        let texts = [
            ("SCOPE", Some(format!("{}/", self.url.trim_end_matches('/')))),
            ("ENDPOINT", self.endpoint.clone()),
            ("REGION", self.region.clone()),
            ("URL_STYLE", self.url_style.clone()),
            ("KEY_ID", self.key.as_ref().map(|key| key.expose_secret().to_owned())),
            ("SECRET", self.secret.as_ref().map(|secret| secret.expose_secret().to_owned())),
        ];
        options.extend(texts.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", Literal::new(value?)))));
        options.extend(self.use_ssl.map(|use_ssl| format!("USE_SSL {use_ssl}")));
        let name = Ident::new(format!("_pt_store_{}", self.name));
        format!("CREATE OR REPLACE TEMPORARY SECRET {name} ({})", options.join(", "))
    }
}

/// Returns what the objects at `address`, which may be a glob, look like: their names, sizes and times of change. No object
/// has a fingerprint too. Nothing is read of their content.
pub fn fingerprint(session: &Session, address: &str) -> Result<String, EngineError> {
    let sql = format!(
        "SELECT coalesce(md5(string_agg(concat_ws(' ', filename, size, epoch_us(last_modified)), ',' ORDER BY filename)), '')
         FROM read_blob({})",
        Literal::new(address)
    );
    match session.one("look at the objects", &sql, |row| row.get(0)) {
        Err(error) if error.failure().is_some_and(|failure| failure.message.is_no_object()) => Ok(String::new()),
        found => found,
    }
}

/// Returns the error of a place that lies in no store.
pub(crate) fn none_for(url: &str, stores: &[ObjectStore]) -> EngineError {
    let configured: Vec<String> = stores.iter().map(|store| format!("`{}` ({})", store.name, store.url)).collect();
    let hint = if configured.is_empty() { String::new() } else { format!("; there are {}", configured.join(", ")) };
    EngineError::NoObjectStore { url: url.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::{ObjectStore, none_for};

    fn store(url: &str) -> ObjectStore {
        ObjectStore {
            name: "raw".to_owned(),
            url: url.to_owned(),
            endpoint: Some("127.0.0.1:9000".to_owned()),
            region: None,
            url_style: Some("path".to_owned()),
            use_ssl: Some(false),
            key: Some(SecretString::from("k'ey")),
            secret: Some(SecretString::from("s")),
        }
    }

    #[test]
    fn a_store_holds_what_lies_below_its_url() {
        let store = store("s3://bucket/raw/");
        assert!(store.holds("s3://bucket/raw/a.csv") && store.holds("s3://bucket/raw"));
        assert!(!store.holds("s3://bucket/rawer/a.csv") && !store.holds("s3://bucket"));
    }

    #[test]
    fn the_secret_is_for_the_stores_own_places() {
        assert_eq!(
            store("s3://bucket/raw").secret(),
            "CREATE OR REPLACE TEMPORARY SECRET \"_pt_store_raw\" (TYPE s3, SCOPE 's3://bucket/raw/', \
             ENDPOINT '127.0.0.1:9000', URL_STYLE 'path', KEY_ID 'k''ey', SECRET 's', USE_SSL false)"
        );
    }

    #[test]
    fn a_place_in_no_store_is_told_with_the_stores_that_there_are() {
        assert_eq!(
            none_for("s3://other/x", &[store("s3://bucket/raw")]).to_string(),
            "s3://other/x lies in no object store that pintail.toml configures; there are `raw` (s3://bucket/raw); \
             add `[object_store.<name>]` with its `url`"
        );
    }
}
