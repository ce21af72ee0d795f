//! Projects on disk: what is found, named, hashed and refused.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use pintail_core::source::Language;

use super::{Project, find_root, load_project};
use crate::workspace::Environment;

/// Writes the files of `fixture`; each begins with a line `//- path`.
fn write_files(root: &Path, fixture: &str) {
    for file in fixture.split("//- ").skip(1) {
        let (path, text) = file.split_once('\n').unwrap();
        write_file(root, path, text.as_bytes());
    }
}

fn write_file(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn load(root: &Path) -> Project {
    load_project(root, None, &Environment::default())
}

fn print(project: &Project) -> String {
    let mut out = String::new();
    for script in &project.scripts {
        writeln!(out, "script {} ({}) {}", script.name, script.language, script.source.path).unwrap();
    }
    for test in &project.tests {
        writeln!(out, "test {} {}", test.name, test.source.path).unwrap();
    }
    for file in &project.macros {
        writeln!(out, "macros {}", file.path).unwrap();
    }
    for found in &project.diagnostics {
        writeln!(out, "{} [{}] {}", found.code, found.path, found.message).unwrap();
    }
    out
}

fn check(fixture: &str, expected: Expect) {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), fixture);
    expected.assert_eq(&print(&load(folder.path())));
}

#[test]
fn scripts_tests_and_macros_are_found_in_order() {
    check(
        "\
//- pipelines/orders/daily.sql
SELECT 1
//- pipelines/orders.py
print()
//- pipelines/b.pg.sql
SELECT 1
//- pipelines/c.duckdb.sql
SELECT 1
//- pipelines/a.ts
//- pipelines/d.sh
//- pipelines/README.md
Read me.
//- pipelines/.hidden.sql
SELECT 1
//- tests/no_orphans.sql
SELECT 1
//- tests/deep/er.sql
SELECT 1
//- tests/er.unit.toml
//- macros/dates.sql
CREATE MACRO …
//- hooks/notify.sh
//- elsewhere.sql
SELECT 1
",
        expect![[r#"
            script a (TypeScript) pipelines/a.ts
            script b (Postgres SQL) pipelines/b.pg.sql
            script c (DuckDB SQL) pipelines/c.duckdb.sql
            script d (Bash) pipelines/d.sh
            script orders (Python) pipelines/orders.py
            script orders/daily (DuckDB SQL) pipelines/orders/daily.sql
            test deep/er tests/deep/er.sql
            test no_orphans tests/no_orphans.sql
            macros macros/dates.sql
        "#]],
    );
}

#[test]
fn a_folder_without_pipelines_takes_its_scripts_from_the_root() {
    check(
        "\
//- orders.sql
SELECT 1
//- f/daily.py
//- tests/t.sql
SELECT 1
//- macros/m.sql
SELECT 1
//- hooks/h.sh
//- f/tests/kept.sql
SELECT 1
//- .pintail/x.sql
SELECT 1
",
        expect![[r#"
            script f/daily (Python) f/daily.py
            script f/tests/kept (DuckDB SQL) f/tests/kept.sql
            script orders (DuckDB SQL) orders.sql
            test t tests/t.sql
            macros macros/m.sql
        "#]],
    );
}

#[test]
fn ignored_files_are_left_out_without_a_git_repository() {
    check(
        "\
//- .gitignore
scratch/
*.tmp.sql
//- pipelines/kept.sql
SELECT 1
//- pipelines/scratch/gone.sql
SELECT 1
//- pipelines/gone.tmp.sql
SELECT 1
//- pipelines/sub/.gitignore
local.sql
//- pipelines/sub/local.sql
SELECT 1
",
        expect![[r#"
            script kept (DuckDB SQL) pipelines/kept.sql
        "#]],
    );
}

#[test]
fn an_ignored_folder_can_be_a_project() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path(), "//- .gitignore\n/demo/\n//- demo/pipelines/a.sql\nSELECT 1\n");
    fs::create_dir(folder.path().join(".git")).unwrap();
    expect![[r#"
        script a (DuckDB SQL) pipelines/a.sql
    "#]]
    .assert_eq(&print(&load(&folder.path().join("demo"))));
}

#[test]
fn a_thousand_scripts_are_loaded_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..1000 {
        write_file(
            folder.path(),
            &format!("pipelines/f{}/s{n:03}.sql", n % 10),
            b"-- materialize ducklake\nSELECT 1\n",
        );
    }
    let project = load(folder.path());
    let names: Vec<&str> = project.scripts.iter().map(|script| script.name.as_str()).collect();
    assert_eq!(names.len(), 1000);
    assert!(names.is_sorted());
    assert_eq!(names[..2], ["f0/s000", "f0/s010"]);
}

#[test]
fn two_files_with_one_name_are_named() {
    check(
        "\
//- pipelines/a.py
//- pipelines/a.sql
SELECT 1
//- pipelines/a.pg.sql
SELECT 1
",
        expect![[r#"
            script a (Postgres SQL) pipelines/a.pg.sql
            P007 [pipelines/a.py] two scripts have the name `a`: pipelines/a.pg.sql and pipelines/a.py
            P007 [pipelines/a.sql] two scripts have the name `a`: pipelines/a.pg.sql and pipelines/a.sql
        "#]],
    );
}

#[test]
fn an_empty_project_says_where_scripts_go() {
    check(
        "",
        expect![[r#"
        P013 [] no scripts found
    "#]],
    );
    check(
        "//- pipelines/README.md\n",
        expect![[r#"
        P013 [] no scripts found
    "#]],
    );
}

#[test]
fn diagnostics_of_the_configuration_are_among_those_of_the_project() {
    check(
        "//- pintail.toml\n[run]\nslot = 1\n//- pipelines/a.sql\n",
        expect![[r#"
        script a (DuckDB SQL) pipelines/a.sql
        P002 [pintail.toml] unknown key `slot` in [run]
    "#]],
    );
}

#[test]
fn files_that_are_not_utf8_or_cannot_be_read_are_named_and_the_rest_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    write_file(folder.path(), "pipelines/bad.sql", b"SELECT 1\n-- caf\xe9\n");
    write_file(folder.path(), "pipelines/good.sql", b"SELECT 1");
    write_file(folder.path(), "pintail.toml", b"\xff");
    std::os::unix::fs::symlink("nowhere", folder.path().join("pipelines/gone.sql")).unwrap();
    expect![[r#"
        script good (DuckDB SQL) pipelines/good.sql
        P009 [pintail.toml] is not UTF-8: the first bad byte is in line 1
        P009 [pipelines/bad.sql] is not UTF-8: the first bad byte is in line 2
        P008 [pipelines/gone.sql] cannot be read: No such file or directory (os error 2)
    "#]]
    .assert_eq(&print(&load(folder.path())));
}

#[test]
fn hashes_do_not_depend_on_line_ends_or_a_byte_order_mark() {
    let folder = tempfile::tempdir().unwrap();
    write_file(folder.path(), "pipelines/a.sql", b"-- x\nSELECT 1\n");
    write_file(folder.path(), "pipelines/b.sql", b"\xef\xbb\xbf-- x\r\nSELECT 1\r\n");
    write_file(folder.path(), "pipelines/c.sql", b"-- x\nSELECT 2\n");
    let project = load(folder.path());
    let [a, b, c] = project.scripts.as_slice() else { panic!("{project:#?}") };
    assert_eq!(a.hash, b.hash);
    assert_ne!(a.hash, c.hash);
    assert_eq!(b.source.text, "-- x\r\nSELECT 1\r\n");
    assert_eq!(a.hash.as_str(), "5a965d29b04b8c7dad53ad23d602a23916aa5eb7996b8a633b90978ce477625e");
    assert_eq!(a.language, Language::DuckDbSql);
}

#[test]
fn the_root_is_the_nearest_folder_with_a_configuration_or_pipelines() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write_file(root, "shop/pintail.toml", b"");
    write_file(root, "shop/pipelines/orders/a.sql", b"");
    write_file(root, "cellar/pipelines/a.sql", b"");
    fs::create_dir_all(root.join("empty/below")).unwrap();
    assert_eq!(find_root(&root.join("shop/pipelines/orders")), Some(root.join("shop")));
    assert_eq!(find_root(&root.join("cellar/pipelines")), Some(root.join("cellar")));
    assert_eq!(find_root(&root.join("cellar")), Some(root.join("cellar")));
    assert_eq!(find_root(&root.join("empty/below")), None);
}
