//! Every dependency in the root Cargo.toml has its reason in a comment above it, or above the group that it stands in.
//!
//! A group is a run of lines without a blank one between them. Crates of the workspace itself need no reason.

use super::Finding;

/// Returns every entry of `[workspace.dependencies]` in `manifest` without a reason.
pub fn check(path: &str, manifest: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_dependencies = false;
    let mut has_reason = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            in_dependencies = line == "[workspace.dependencies]";
        }
        if line.is_empty() || line.starts_with('[') {
            has_reason = false;
        } else if line.starts_with('#') {
            has_reason = true;
        } else if let Some((name, value)) = line.split_once('=')
            && in_dependencies
            && !has_reason
            && !value.contains("path =")
        {
            let message = format!("`{}` needs a comment above it that says what it is for", name.trim());
            findings.push(Finding::error(path, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::render;
    use super::*;

    #[test]
    fn a_dependency_without_a_reason_is_named() {
        let manifest = "\
[workspace]
members = []

[workspace.dependencies]
ours = { path = \"crates/ours\" }

# Calendar.
chrono = \"0.4\"
chrono-tz = \"0.10\"

serde = \"1\"

[profile.dev]
debug = 0
";
        expect![[r"
            error: Cargo.toml:11: `serde` needs a comment above it that says what it is for
        "]]
        .assert_eq(&render(&check("Cargo.toml", manifest)));
    }
}
