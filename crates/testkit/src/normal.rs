//! Output without what differs from run to run: ids, times, durations, the project's folder.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// What is replaced, in this order.
static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    let rule = |pattern: &str, name: &'static str| (Regex::new(pattern).expect("our own patterns are right"), name);
    vec![
        rule(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<id>"),
        rule(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", "<when>"),
        rule(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}", "<when>"),
        rule(r#"("seconds": ?)[0-9.e-]+"#, "${1}<seconds>"),
        rule(r"\bprocess \d+\b", "process <pid>"),
        rule(r"\b\d+ min \d+ s\b", "<time>"),
        rule(r"\b\d+(\.\d+)? m?s\b", "<time>"),
    ]
});

/// Returns `text` with ids, times, durations and the folder `root` replaced by names.
pub fn normalised(text: &str, root: &Path) -> String {
    let mut text = text.replace(&root.display().to_string(), "<project>");
    for (pattern, name) in RULES.iter() {
        text = pattern.replace_all(&text, *name).into_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::normalised;

    #[test]
    fn what_differs_is_named_and_the_rest_is_kept() {
        let text = "run 01a22815-d702-7602-9ac8-f0fd5f884dff of 2026-06-01 at 2026-11-29 16:14:09 took 1.2 s (33 ms, \
                    3 min 20 s) in /a/b/.pintail {\"seconds\": 0.25} 2026-11-29T16:14:09.123Z 4 rows";
        assert_eq!(
            normalised(text, Path::new("/a/b")),
            "run <id> of 2026-06-01 at <when> took <time> (<time>, <time>) in <project>/.pintail \
             {\"seconds\": <seconds>} <when> 4 rows"
        );
    }
}
