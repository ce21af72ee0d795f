//! Which crate may use which: the picture in ARCHITECTURE.md, held against `cargo metadata`.
//!
//! Only normal dependencies count: tests may look anywhere. DuckDB is linked by the engine alone, because everything
//! above it must build and be tested without asking which version is loaded. `anyhow` hides what failed from a caller
//! that has to classify it, so libraries do not have it.

use serde::Deserialize;

use super::Finding;

/// A crate of ours and the crates of ours that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("pintail-core", &[]),
    ("pintail-engine", &["pintail-core"]),
    ("pintail-store", &["pintail-core"]),
    ("pintail-triggers", &["pintail-core"]),
    ("pintail-streams", &["pintail-core", "pintail-engine"]),
    ("pintail-runner", &["pintail-core", "pintail-engine", "pintail-store", "pintail-triggers", "pintail-streams"]),
    ("pintail-telemetry", &["pintail-core", "pintail-engine", "pintail-streams"]),
    ("pintail-server", &["pintail-core", "pintail-engine", "pintail-store", "pintail-runner", "pintail-telemetry"]),
    (
        "pintail",
        &[
            "pintail-core",
            "pintail-engine",
            "pintail-store",
            "pintail-streams",
            "pintail-telemetry",
            "pintail-runner",
            "pintail-server",
        ],
    ),
    ("pintail-testkit", &["pintail-core", "pintail-engine", "pintail-store", "pintail-runner"]),
    ("xtask", &["pintail-core", "pintail-testkit"]),
];

/// A crate of others and the crates of ours that may use it.
const ONLY_IN: &[(&str, &[&str])] =
    &[("duckdb", &["pintail-engine"]), ("anyhow", &["pintail", "pintail-testkit", "xtask"])];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// Returns every dependency that the tables above do not allow; `metadata` is what `cargo metadata` prints.
pub fn check(metadata: &str) -> anyhow::Result<Vec<Finding>> {
    let metadata: Metadata = serde_json::from_str(metadata)?;
    let mut findings = Vec::new();
    for package in &metadata.packages {
        let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == package.name) else {
            findings.push(Finding::error(
                &package.name,
                None,
                "is a new crate: add it to ARCHITECTURE.md and to the table in xtask/src/tidy/crate_edges.rs",
            ));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind.is_none()) {
            if let Some(message) = objection(&package.name, allowed, &dependency.name) {
                findings.push(Finding::error(&package.name, None, message));
            }
        }
    }
    Ok(findings)
}

fn objection(package: &str, allowed: &[&str], dependency: &str) -> Option<String> {
    let is_ours = MAY_USE.iter().any(|(name, _)| *name == dependency);
    if is_ours && !allowed.contains(&dependency) {
        return Some(format!("may not use {dependency}"));
    }
    let (_, homes) = ONLY_IN.iter().find(|(name, _)| *name == dependency)?;
    (!homes.contains(&package)).then(|| format!("may not use {dependency}, which only {} may", homes.join(", ")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::render;
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> serde_json::Value {
        let dependencies: Vec<_> =
            dependencies.iter().map(|(name, kind)| serde_json::json!({"name": name, "kind": kind})).collect();
        serde_json::json!({"name": name, "dependencies": dependencies})
    }

    fn check_packages(packages: &[serde_json::Value], expected: &expect_test::Expect) {
        let metadata = serde_json::json!({ "packages": packages }).to_string();
        expected.assert_eq(&render(&check(&metadata).unwrap()));
    }

    #[test]
    fn edges_of_the_picture_pass() {
        check_packages(
            &[
                package("pintail-core", &[("chrono", None)]),
                package("pintail-engine", &[("pintail-core", None), ("duckdb", None)]),
                package("pintail", &[("pintail-runner", None), ("anyhow", None)]),
            ],
            &expect![""],
        );
    }

    #[test]
    fn other_edges_are_named() {
        check_packages(
            &[
                package("pintail-store", &[("pintail-engine", None)]),
                package("pintail-core", &[("duckdb", None)]),
                package("pintail-runner", &[("anyhow", None), ("pintail-testkit", None)]),
            ],
            &expect![[r"
                error: pintail-store: may not use pintail-engine
                error: pintail-core: may not use duckdb, which only pintail-engine may
                error: pintail-runner: may not use anyhow, which only pintail, pintail-testkit, xtask may
                error: pintail-runner: may not use pintail-testkit
            "]],
        );
    }

    #[test]
    fn dev_dependencies_are_free() {
        check_packages(&[package("pintail-store", &[("pintail-testkit", Some("dev"))])], &expect![""]);
    }

    #[test]
    fn a_crate_that_the_picture_does_not_know_is_named() {
        check_packages(
            &[package("pintail-misc", &[])],
            &expect![[r"
                error: pintail-misc: is a new crate: add it to ARCHITECTURE.md and to the table in xtask/src/tidy/crate_edges.rs
            "]],
        );
    }
}
