//! Every relative link in a page leads to a file or folder of the repository.

use super::Finding;
use super::tree::Tree;

/// Returns the links that lead nowhere.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (index, line) in text.lines().enumerate() {
            for target in targets(line) {
                if let Some(place) = resolve(path, target)
                    && !tree.has(&place)
                {
                    findings.push(Finding::error(path, index + 1, format!("the link to {target} leads nowhere")));
                }
            }
        }
    }
    findings
}

/// Returns what stands in `](…)`, each time.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// Returns the path in the repository that `target` means in the page `page`; `None` for a link to elsewhere.
fn resolve(page: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or_default();
    if target.is_empty() || target.contains("://") || target.contains(char::is_whitespace) {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::render;
    use super::*;

    #[test]
    fn links_are_followed_from_the_page_they_stand_in() {
        let tree = Tree::of(&[
            ("README.md", "[a](docs/a.md), [folder](docs), [web](scheme://host/x), [part](#part)\n[gone](docs/c.md)\n"),
            ("docs/a.md", "[b](b.md#part) and [up](../README.md) and [lost](../b.md)\n"),
            ("docs/b.md", ""),
        ]);
        expect![[r"
            error: README.md:2: the link to docs/c.md leads nowhere
            error: docs/a.md:1: the link to ../b.md leads nowhere
        "]]
        .assert_eq(&render(&check(&tree)));
    }
}
