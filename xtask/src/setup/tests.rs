//! Tests of set-up that need no network: the manifest, the folder of native files, hashes, stamps, platforms.

use std::collections::BTreeSet;

use super::*;

/// The SHA-256 of `right`.
const RIGHT: &str = "27042f4e6eca7d0b2a7ee4026df2ecfa51d3339e6d122aa099118ecd8563bad9";

fn package_of(file: &str, sha256: &str) -> Package {
    toml::from_str(&format!(
        r#"
registry = "npm"
name = "library"
version = "1.0"
licence = "MIT"
set = "engine"
[[file]]
name = "library"
member = "package/{file}"
to = "duckdb/{file}"
sha256 = "{sha256}"
"#
    ))
    .unwrap()
}

fn installation(vendor: &Path, native_dir: &Path) -> Installation {
    Installation { vendor: vendor.to_path_buf(), native_dir: Some(native_dir.to_path_buf()), talk: Talk::ChangesOnly }
}

#[test]
fn every_file_of_the_manifest_has_a_place_of_its_own_and_a_hash() {
    let manifest = Manifest::read();
    let mut places = BTreeSet::new();
    for file in manifest.packages.iter().flat_map(|package| &package.files) {
        assert!(places.insert(&file.to), "{} is written twice", file.to);
        assert!(file.sha256.len() == 64 && file.sha256.chars().all(|c| c.is_ascii_hexdigit()), "{}", file.name);
    }
    for needed in
        ["duckdb/libduckdb.so", "duckdb/extensions/ducklake.duckdb_extension", "data/nycflights13/flights.csv"]
    {
        assert!(places.contains(&needed.to_owned()), "{needed} is missing");
    }
}

#[test]
fn library_and_extensions_are_of_one_version() {
    let manifest = Manifest::read();
    let versions: BTreeSet<&str> = manifest
        .packages
        .iter()
        .filter(|package| package.set == Set::Engine)
        .map(|package| package.version.split('-').next().unwrap())
        .collect();
    assert_eq!(versions, BTreeSet::from(["1.5.5"]));
}

#[test]
fn a_folder_of_native_files_is_installed_after_its_hash_was_checked() {
    let vendor = tempfile::tempdir().unwrap();
    let native = tempfile::tempdir().unwrap();
    fs::write(native.path().join("library.so"), "right").unwrap();
    let package = package_of("library.so", RIGHT);

    let mut stamps = Stamps::load(vendor.path());
    installation(vendor.path(), native.path()).install_package(&package, &mut stamps).unwrap();

    assert_eq!(fs::read_to_string(vendor.path().join("duckdb/library.so")).unwrap(), "right");
    assert!(Stamps::load(vendor.path()).fits(&package.files[0]).unwrap());
    assert_no_scratch_is_left(vendor.path());
}

#[test]
fn a_wrong_file_is_refused_and_nothing_is_put_in_place() {
    let vendor = tempfile::tempdir().unwrap();
    let native = tempfile::tempdir().unwrap();
    fs::create_dir(native.path().join("extensions")).unwrap();
    fs::write(native.path().join("extensions/library.so"), "wrong").unwrap();

    let error = installation(vendor.path(), native.path())
        .install_package(&package_of("library.so", RIGHT), &mut Stamps::load(vendor.path()))
        .unwrap_err()
        .to_string();

    assert!(error.contains("is not the file that Pintail is built for (version 1.0)"), "{error}");
    assert!(error.contains(&format!("expected sha256 {RIGHT}")), "{error}");
    assert!(!vendor.path().join("duckdb/library.so").exists());
    assert_no_scratch_is_left(vendor.path());
}

#[test]
fn a_file_missing_from_the_folder_is_named() {
    let vendor = tempfile::tempdir().unwrap();
    let native = tempfile::tempdir().unwrap();
    let error = installation(vendor.path(), native.path())
        .install_package(&package_of("library.so", RIGHT), &mut Stamps::load(vendor.path()))
        .unwrap_err()
        .to_string();
    assert!(error.contains("library.so is not in it"), "{error}");
    assert!(error.contains("unset PINTAIL_NATIVE_DIR"), "{error}");
}

#[test]
fn a_changed_file_is_noticed_in_spite_of_its_stamp() {
    let vendor = tempfile::tempdir().unwrap();
    let place = vendor.path().join("duckdb/library.so");
    fs::create_dir(vendor.path().join("duckdb")).unwrap();
    fs::write(&place, "right").unwrap();
    let package = package_of("library.so", RIGHT);
    assert!(Stamps::load(vendor.path()).fits(&package.files[0]).unwrap());

    fs::write(&place, "changed").unwrap();
    assert!(!Stamps::load(vendor.path()).fits(&package.files[0]).unwrap());
}

#[test]
fn a_stamp_of_an_older_version_does_not_vouch_for_a_newer_one() {
    let vendor = tempfile::tempdir().unwrap();
    fs::create_dir(vendor.path().join("duckdb")).unwrap();
    fs::write(vendor.path().join("duckdb/library.so"), "right").unwrap();
    assert!(Stamps::load(vendor.path()).fits(&package_of("library.so", RIGHT).files[0]).unwrap());

    let newer = package_of("library.so", &"0".repeat(64));
    assert!(!Stamps::load(vendor.path()).fits(&newer.files[0]).unwrap());
}

#[test]
fn an_unreadable_stamp_file_costs_a_hash_only() {
    let vendor = tempfile::tempdir().unwrap();
    fs::create_dir(vendor.path().join("duckdb")).unwrap();
    fs::write(vendor.path().join("duckdb/library.so"), "right").unwrap();
    fs::write(vendor.path().join(".setup-stamps.json"), "{ half").unwrap();
    assert!(Stamps::load(vendor.path()).fits(&package_of("library.so", RIGHT).files[0]).unwrap());
}

#[test]
fn other_platforms_are_refused_in_a_sentence() {
    platform::require_supported("linux", "x86_64").unwrap();
    assert_eq!(
        platform::require_supported("macos", "aarch64").unwrap_err().to_string(),
        "Pintail is built for Linux on x86_64 only, for now; this machine is macos on aarch64"
    );
}

#[test]
fn a_failed_fetch_says_how_to_go_on_without_a_network() {
    assert_eq!(
        cannot_fetch(&package_of("library.so", RIGHT)),
        "cannot fetch library@1.0 by npm; without a network, set PINTAIL_NATIVE_DIR to a folder that holds \
         libduckdb.so and the *.duckdb_extension files"
    );
}

fn assert_no_scratch_is_left(vendor: &Path) {
    let left: Vec<_> = fs::read_dir(vendor).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".scratch")), "{left:?}");
}
