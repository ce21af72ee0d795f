//! Objects in a folder, sealed and plain, and keys that lead nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;

use super::*;
use crate::cloudevents::from_json;
use crate::intake::{Intake, IntakeError};
use crate::log::{AppendError, Log, LogOptions, Record};

fn ring(ids: &[(&str, u8)], current: Option<&str>) -> KeyRing {
    let key =
        |byte: u8| SecretString::from(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [byte; 32]));
    let keys: BTreeMap<String, SecretString> = ids.iter().map(|(id, byte)| ((*id).to_owned(), key(*byte))).collect();
    KeyRing::new(&keys, current).unwrap()
}

fn arrival(members: &str) -> Arrival {
    let json =
        format!(r#"{{"specversion":"1.0","id":"1","source":"s","type":"t","time":"2026-03-04T05:06:07Z",{members}}}"#);
    Arrival { event: from_json(json.as_bytes()).unwrap(), received_micros: 0 }
}

#[test]
fn the_golden_object_of_the_format_is_opened() {
    let golden: serde_json::Value = serde_json::from_str(include_str!("../../tests/blob_seal.json")).unwrap();
    let text = |name: &str| golden[name].as_str().unwrap().to_owned();
    let keys = BTreeMap::from([
        ("other".to_owned(), SecretString::from("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")),
        ("golden".to_owned(), SecretString::from(text("key_base64"))),
    ]);
    let ring = KeyRing::new(&keys, None).unwrap();
    let sealed = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, text("sealed_base64")).unwrap();
    assert_eq!(ring.open(&text("aad"), sealed.clone()).unwrap(), text("plaintext").into_bytes());
    assert_eq!(ring.open("cloudevent/blobs/another", sealed.clone()), Err(SealError::Broken));
    assert_eq!(KeyRing::default().open(&text("aad"), sealed), Err(SealError::NoKeys));
}

#[test]
fn a_new_key_seals_and_the_old_one_still_opens() {
    let (old, new) = (ring(&[("a", 1)], Some("a")), ring(&[("a", 1), ("b", 2)], Some("b")));
    let (first, second) = (old.seal("k", b"x").unwrap(), new.seal("k", b"x").unwrap());
    assert_eq!(new.open("k", first.clone()).unwrap(), b"x");
    assert_eq!(new.open("k", second.clone()).unwrap(), b"x");
    assert_eq!(old.open("k", second), Err(SealError::NoKey { id: "b".to_owned() }));
    let mut changed = first;
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(new.open("k", changed), Err(SealError::Broken));
    assert_eq!(ring(&[], None).seal("k", b"plain").unwrap(), b"plain");
    assert!(!format!("{new:?}").contains("AQEB"), "keys do not print");
}

#[test]
fn keys_that_are_none_are_refused() {
    let one = |id: &str, key: &str| BTreeMap::from([(id.to_owned(), SecretString::from(key))]);
    let bad = SealError::BadKey { id: "a".to_owned() };
    assert_eq!(KeyRing::new(&one("a", "short"), None).unwrap_err(), bad);
    assert_eq!(KeyRing::new(&one("a", "AAAA"), None).unwrap_err(), bad);
    assert_eq!(KeyRing::new(&one("", "AAAA"), None).unwrap_err(), SealError::BadId);
    assert_eq!(KeyRing::new(&BTreeMap::new(), Some("a")).unwrap_err(), SealError::NoKey { id: "a".to_owned() });
}

#[tokio::test]
async fn payloads_over_the_threshold_go_out_and_come_back_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::in_folder(folder.path().join("blobs"), 8, ring(&[("a", 1)], Some("a")));
    let mut small = arrival(r#""subject":"car","data":"123456""#);
    let before = small.clone();
    blobs.move_out(&mut small).await.unwrap();
    assert_eq!(small, before);
    // Twelve characters of base64 are eight bytes.
    let mut encoded = arrival(r#""data_base64":"MTIzNDU2Nzg=""#);
    blobs.move_out(&mut encoded).await.unwrap();
    assert_eq!(encoded.event.data, Payload::Base64("MTIzNDU2Nzg=".to_owned()));
    let mut large = arrival(r#""subject":"did:x/../y","data":"1234567""#);
    blobs.move_out(&mut large).await.unwrap();
    let Payload::Stored { key } = &large.event.data else { panic!("{large:?}") };
    assert!(key.starts_with("cloudevent/blobs/did:x_.._y/2026/03/04/"), "{key}");
    assert_eq!(blobs.get(key).await.unwrap(), b"\"1234567\"");
    let on_disk = std::fs::read(folder.path().join("blobs").join(key)).unwrap();
    assert!(on_disk.starts_with(b"DBE2\x01a"), "sealed");
    let missing = blobs.get("cloudevent/blobs/x/2026/01/01/none").await.unwrap_err();
    assert!(matches!(missing, BlobError::Missing { .. }), "{missing}");
}

#[tokio::test]
async fn a_key_that_leads_elsewhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::in_folder(folder.path().to_owned(), 8, KeyRing::default());
    for key in ["", "/etc/passwd", "cloudevent/blobs/../../x", "cloudevent/blobs//x", "cloudevent/blobs/./x", "other/x"]
    {
        assert!(matches!(blobs.get(key).await, Err(BlobError::ForeignKey { .. })), "{key}");
        assert!(matches!(blobs.put(key, b"x").await, Err(BlobError::ForeignKey { .. })), "{key}");
    }
}

#[tokio::test]
async fn what_could_not_be_written_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let blobs = Blobs::in_folder(folder.path().to_owned(), 8, KeyRing::default());
    // The object's name is taken by a folder, so that the rename fails.
    std::fs::create_dir_all(folder.path().join("cloudevent/blobs/x/taken/inside")).unwrap();
    let error = blobs.put("cloudevent/blobs/x/taken", b"x").await.unwrap_err();
    assert!(matches!(error, BlobError::File { operation: "write", .. }), "{error}");
    let left: Vec<_> = std::fs::read_dir(folder.path().join("cloudevent/blobs/x")).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Stores the payload of an event as a process that was just started does, and returns its key.
async fn stored(folder: &std::path::Path, keys: KeyRing, members: &str) -> String {
    let mut arrival = arrival(members);
    Blobs::in_folder(folder.to_owned(), 8, keys).move_out(&mut arrival).await.unwrap();
    let Payload::Stored { key } = arrival.event.data else { panic!("{members}") };
    key
}

#[tokio::test]
async fn an_event_that_comes_again_is_written_over_its_own_object_and_over_no_other_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for sealing in [Some("a"), None] {
        let mut keys = Vec::new();
        for members in [
            r#""data":"123456789""#,
            r#""data":"123456789""#,
            r#""data":"987654321""#,
            r#""subject":"x","data":"123456789""#,
        ] {
            keys.push(stored(folder.path(), ring(&[("a", 1)], sealing), members).await);
        }
        assert_eq!(keys[0], keys[1]);
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 3);
        let blobs = Blobs::in_folder(folder.path().to_owned(), 8, ring(&[("a", 1)], None));
        assert_eq!(blobs.get(&keys[0]).await.unwrap(), b"\"123456789\"");
        assert_eq!(blobs.get(&keys[2]).await.unwrap(), b"\"987654321\"");
    }
}

#[tokio::test]
async fn the_name_of_a_sealed_object_does_not_confirm_a_guess_at_its_payload() {
    let folder = tempfile::tempdir().unwrap();
    let members = r#""data":"123456789""#;
    let plain = stored(folder.path(), KeyRing::default(), members).await;
    let sealed = stored(folder.path(), ring(&[("a", 1)], Some("a")), members).await;
    let other = stored(folder.path(), ring(&[("a", 2)], Some("a")), members).await;
    assert_eq!(BTreeSet::from([&plain, &sealed, &other]).len(), 3);
}

#[tokio::test]
async fn a_full_log_stores_no_payload() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("blobs");
    let blobs = Blobs::in_folder(store.clone(), 8, KeyRing::default());
    let options = LogOptions { path: folder.path().join("log.sqlite"), limit: 10 };
    let intake = Intake::new(Log::open(&options).await.unwrap(), Some(blobs));
    let large = arrival(r#""data":"123456789""#);
    let refused = intake.accept(vec![Record::Event(large)]).await;
    assert!(matches!(refused, Err(IntakeError::Log(AppendError::Full { .. }))), "{refused:?}");
    assert!(!store.exists());
}
