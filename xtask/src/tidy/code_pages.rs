//! Every diagnostic code has a page in docs/diagnostics, and every page there has a code.

use super::Finding;
use super::tree::Tree;

const FOLDER: &str = "docs/diagnostics/";

/// Returns codes without a page and pages without a code.
pub fn check(codes: &[String], tree: &Tree) -> Vec<Finding> {
    let pages: Vec<&str> = tree
        .files()
        .filter_map(|(path, _)| path.strip_prefix(FOLDER)?.strip_suffix(".md"))
        .filter(|page| *page != "README")
        .collect();
    let missing = codes
        .iter()
        .filter(|code| !pages.contains(&code.as_str()))
        .map(|code| Finding::error(&format!("{FOLDER}{code}.md"), None, format!("code {code} has no page")));
    let orphans = pages
        .iter()
        .filter(|page| !codes.iter().any(|code| code == *page))
        .map(|page| Finding::error(&format!("{FOLDER}{page}.md"), None, "is the page of no code"));
    missing.chain(orphans).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::render;
    use super::*;

    #[test]
    fn codes_and_pages_are_paired() {
        let tree = Tree::of(&[("docs/diagnostics/P101.md", ""), ("docs/diagnostics/P999.md", "")]);
        expect![[r"
            error: docs/diagnostics/P102.md: code P102 has no page
            error: docs/diagnostics/P999.md: is the page of no code
        "]]
        .assert_eq(&render(&check(&["P101".into(), "P102".into()], &tree)));
    }
}
