//! The reference page and help.

use expect_test::expect_file;

use crate::annotation::{ParsedHeader, WORDS, reference_markdown, syntax_of};
use crate::diagnostic::Severity;

use super::{found, parse};

/// `UPDATE_EXPECT=1` rewrites the page.
#[test]
fn the_reference_page_is_the_registry_s() {
    expect_file!["../../../../../docs/reference/annotations.md"].assert_eq(&reference_markdown());
}

#[test]
fn every_example_is_free_of_errors() {
    for word in WORDS {
        let text: String = word.example.lines().map(|line| format!("-- {line}\n")).collect();
        let parsed: ParsedHeader = parse(&text);
        let has_error = parsed.diagnostics.iter().any(|finding| finding.severity == Severity::Error);
        assert!(!has_error, "{}: {}", word.name, found(&text, &parsed));
    }
}

#[test]
fn every_form_starts_with_its_word() {
    for word in WORDS {
        for form in word.syntax.lines() {
            assert_eq!(form.split(' ').next(), Some(word.name), "{form}");
        }
    }
}

#[test]
fn words_and_spellings_are_unique() {
    let mut spellings: Vec<&str> =
        WORDS.iter().flat_map(|word| word.aliases.iter().chain([&word.name])).copied().collect();
    let count = spellings.len();
    spellings.sort_unstable();
    spellings.dedup();
    assert_eq!(spellings.len(), count);
}

#[test]
fn help_knows_the_syntax_of_every_word() {
    assert_eq!(syntax_of("unique_key"), Some("unique_key a,b"));
    assert_eq!(syntax_of("data_test"), syntax_of("test"));
    assert_eq!(syntax_of("materialise"), None);
}
