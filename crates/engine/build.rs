//! Says in one line what to do when libduckdb is not there; the linker's own message is a page of text.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    let folder = std::env::var_os("DUCKDB_LIB_DIR").map_or_else(|| PathBuf::from("vendor/duckdb"), PathBuf::from);
    let library = folder.join("libduckdb.so");
    println!("cargo::rerun-if-changed={}", library.display());
    if !library.exists() {
        println!(
            "cargo::error=libduckdb 1.5.5 is not at {}: run `cargo xtask setup` once, then build again",
            library.display()
        );
    }
}
