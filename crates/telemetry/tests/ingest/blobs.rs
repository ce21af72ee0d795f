//! Payloads in S3: one PUT each, sealed or plain, found again by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use pintail_telemetry::blob::{BlobError, Blobs, KeyRing};
use pintail_testkit::services::{ObjectPrefix, object_prefix};
use secrecy::SecretString;

/// Returns a client of the store at `endpoint`, which may be a proxy before it.
fn client(place: &ObjectPrefix, endpoint: &str) -> Arc<dyn ObjectStore> {
    let (bucket, _) = place.url.trim_start_matches("s3://").split_once('/').unwrap();
    let store = AmazonS3Builder::new()
        .with_bucket_name(bucket)
        .with_endpoint(format!("http://{endpoint}"))
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_access_key_id(&place.key)
        .with_secret_access_key(&place.secret);
    Arc::new(store.build().unwrap())
}

fn prefix_of(place: &ObjectPrefix) -> &str {
    place.url.trim_start_matches("s3://").split_once('/').unwrap().1
}

#[test]
fn payloads_in_s3_are_put_whole_and_found_by_key() {
    let place = object_prefix();
    let (store, prefix) = (client(&place, &place.endpoint), prefix_of(&place));
    let keys = BTreeMap::from([("a".to_owned(), SecretString::from("KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio="))]);
    let sealed = Blobs::in_store(store.clone(), prefix, 1, KeyRing::new(&keys, Some("a")).unwrap());
    let plain = Blobs::in_store(store, prefix, 1, KeyRing::default());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let large = vec![7_u8; 3 << 20];
    runtime.block_on(async {
        plain.put("cloudevent/blobs/car:7/2026/01/02/x", &large).await.unwrap();
        sealed.put("cloudevent/blobs/s/2026/01/02/y", b"secret").await.unwrap();
        // A reader with keys reads both; one without sees that it lacks one.
        assert_eq!(sealed.get("cloudevent/blobs/car:7/2026/01/02/x").await.unwrap(), large);
        assert_eq!(sealed.get("cloudevent/blobs/s/2026/01/02/y").await.unwrap(), b"secret");
        let error = plain.get("cloudevent/blobs/s/2026/01/02/y").await.unwrap_err();
        assert!(error.to_string().contains("sealed with the key `a`"), "{error}");
        let error = plain.get("cloudevent/blobs/s/2026/01/02/z").await.unwrap_err();
        assert!(matches!(error, BlobError::Missing { .. }), "{error}");
    });
}
