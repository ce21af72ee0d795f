//! Embeds the pages of the diagnostics, so that `pintail explain` needs no files.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    // Asked when it runs, not when it was compiled: a checkout may have been moved or copied with its target folder.
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let folder = here.join("../../docs/diagnostics");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut pages: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("docs/diagnostics lies in the checkout")
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    let mut code = String::from("&[\n");
    for page in pages {
        let name = page.file_stem().expect("a page has a name").to_string_lossy();
        writeln!(code, "    ({name:?}, include_str!({page:?})),").expect("writing to a String never fails");
    }
    code.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("pages.rs"), code).expect("OUT_DIR can be written");
}
