//! Tells prose from lines that were meant as annotations: a mistyped word, a wrong case, a colon, a wrong place.
//!
//! A near name alone proves nothing ("one row per order" is near `on`), so a line must also have the shape that the
//! word's arguments have: a URI, one of its options, its keywords, a duration. Such a line is an error. A near word that
//! stands almost alone is a warning, and stays prose.

use crate::diagnostic::{Code, nearest};
use crate::source::{Language, Span};

use super::draft::Problem;
use super::registry::{self, Shape, Word};
use super::values::parse_duration_text;

/// Words of other tools, and forms of ours without their first word: written, meant, whose shape it has.
const SYNONYMS: [(&str, &str, &str); 8] = [
    ("schedule", "on schedule", "on"),
    ("cron", "on schedule", "on"),
    ("depends_on", "on", "on"),
    ("history", "materialize history", "materialize"),
    ("scd2", "materialize history", "materialize"),
    ("view", "materialize view", "materialize"),
    ("manual", "materialize manual", "materialize"),
    ("partition_by", "partitioned", "partitioned"),
];

/// Returns what is wrong with a line that is no annotation but was probably meant as one; `start` is its offset.
pub(super) fn suspicious_line(line: &str, start: usize) -> Option<Problem> {
    let tokens: Vec<&str> = line.split_whitespace().collect();
    let (&first, rest) = tokens.split_first()?;
    let span = Span::new(start, start + first.len());
    if let Some(name) = first.strip_prefix('$') {
        return script_argument(name, rest, span);
    }
    if let Some(before) = first.strip_suffix(':') {
        return colon_after_word(before, rest, span);
    }
    let lower = first.to_lowercase();
    if let Some((_, meant, shape)) = SYNONYMS.into_iter().find(|(written, ..)| *written == lower) {
        let word = registry::find(shape).expect("synonyms name words of the registry");
        let is_meant = has_uri(rest) || has_option(word, rest) || rest.first().is_some_and(|arg| arg.starts_with('"'));
        return is_meant.then(|| unknown(first, Some(meant), span));
    }
    if let Some((spelling, word)) = nearest_spelling(first) {
        return near_word(first, spelling, word, rest, span);
    }
    let only_options = !rest.is_empty() && rest.iter().all(|token| token.contains('=') || token.contains("://"));
    let looks_written = first.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (only_options && looks_written && has_any_option(rest)).then(|| unknown(first, None, span))
}

/// Judges a line whose first word is near the spelling of `word`, or equal to it but for case.
fn near_word(first: &str, spelling: &'static str, word: &Word, rest: &[&str], span: Span) -> Option<Problem> {
    let inflected = is_inflection(&first.to_lowercase(), spelling);
    let keyword_follows = rest.first().is_some_and(|next| word.keywords.contains(next));
    // "an email arrives" is near `on email`, and "tests unique ids" near `test unique`: a keyword alone proves nothing
    // after a short or inflected word.
    let keyword_counts = (first.len() > 3 && !inflected) || rest.get(1).is_some_and(|next| next.starts_with('"'));
    if has_arguments(word, rest) || (keyword_follows && keyword_counts) {
        return Some(unknown(first, Some(spelling), span));
    }
    let differs_by_case = first.eq_ignore_ascii_case(spelling) && rest.len() == 1 && keyword_follows;
    let stands_alone = rest.len() <= 1 && first.len() >= 4 && !inflected;
    (differs_by_case || stands_alone).then(|| {
        let message = format!("`{first}` looks like the annotation `{spelling}`, but is read as prose");
        Problem::new(Code::LOOKS_LIKE_ANNOTATION, span, message)
            .with_help(format!("write `{spelling}` in lower case for the annotation, or add words to make it prose"))
    })
}

fn unknown(first: &str, meant: Option<&str>, span: Span) -> Problem {
    match meant {
        Some(meant) => {
            let message = format!("unknown annotation `{first}`; did you mean `{meant}`?");
            Problem::new(Code::UNKNOWN_ANNOTATION, span, message)
                .with_help(format!("write `{meant}` in its place; annotation words are lower case"))
        }
        None => Problem::new(Code::UNKNOWN_ANNOTATION, span, format!("unknown annotation `{first}`"))
            .with_help("add words that are not `key=value` to make the line prose"),
    }
}

/// `-- $cutoff (date)`: Windmill's declaration of a script argument.
fn script_argument(name: &str, rest: &[&str], span: Span) -> Option<Problem> {
    let declares = rest.first().is_some_and(|token| token.starts_with('(')) && !name.is_empty();
    declares.then(|| {
        Problem::new(Code::WINDMILL_IGNORED, span, format!("the declaration of `${name}` has no meaning here"))
            .with_help(format!("give `{name}` a value under `[vars]` in pintail.toml"))
    })
}

fn colon_after_word(before: &str, rest: &[&str], span: Span) -> Option<Problem> {
    let lower = before.to_lowercase();
    let word = registry::find(&lower)?;
    if has_shape(word, rest) {
        return Some(unknown(&format!("{before}:"), Some(&lower), span));
    }
    let message = format!("`{before}:` looks like the annotation `{lower}`, but is read as prose");
    Some(
        Problem::new(Code::LOOKS_LIKE_ANNOTATION, span, message)
            .with_help(format!("annotations have no colon: write `{lower} …`")),
    )
}

fn nearest_spelling(first: &str) -> Option<(&'static str, &'static Word)> {
    let spelling = nearest(first, registry::spellings().map(|(spelling, _)| spelling))?;
    registry::spellings().find(|(known, _)| *known == spelling)
}

/// Returns whether `first` is an English form of `word` (`tests`, `partitions`, `materialized`).
fn is_inflection(first: &str, word: &str) -> bool {
    const ENDINGS: [&str; 9] = ["s", "es", "d", "ed", "r", "er", "ing", "ion", "ions"];
    let has_ending = |stem: &str| first.strip_prefix(stem).is_some_and(|ending| ENDINGS.contains(&ending));
    if first == word {
        return false;
    }
    let is_stem = [word.strip_suffix("ed"), word.strip_suffix('s')].contains(&Some(first)) && !word.ends_with("ss");
    let stems = [Some(word), word.strip_suffix('e'), word.strip_suffix("ed"), word.strip_suffix('s')];
    is_stem || stems.into_iter().flatten().any(has_ending)
}

/// Returns whether what follows a word looks like its arguments.
fn has_shape(word: &Word, rest: &[&str]) -> bool {
    has_arguments(word, rest) || rest.first().is_some_and(|first| word.keywords.contains(first))
}

/// Returns whether what follows a word has something that prose has not: a URI, an option, a duration.
fn has_arguments(word: &Word, rest: &[&str]) -> bool {
    let first = rest.first().copied().unwrap_or_default();
    let fits = |shape: &Shape| match shape {
        Shape::Uri => has_uri(rest),
        Shape::Duration => parse_duration_text(first).is_ok(),
        Shape::Number => first.parse::<u32>().is_ok(),
        Shape::Assignment => rest.get(1) == Some(&"="),
    };
    word.shape.iter().any(fits) || has_option(word, rest)
}

fn has_uri(rest: &[&str]) -> bool {
    const SCHEMES: [&str; 4] = ["ducklake://", "datatable://", "s3://", "volume://"];
    rest.iter().any(|token| SCHEMES.iter().any(|scheme| token.starts_with(scheme)))
}

fn has_option(word: &Word, rest: &[&str]) -> bool {
    rest.iter()
        .filter_map(|token| token.split_once('='))
        .any(|(name, value)| !value.is_empty() && word.options.iter().any(|option| option.name == name))
}

fn has_any_option(rest: &[&str]) -> bool {
    registry::spellings().any(|(_, word)| has_option(word, rest))
}

/// Returns the annotations, by word and place, that stand in a block comment.
pub(super) fn annotations_in_block_comment(text: &str, comment: Span) -> Vec<(&'static str, Span)> {
    lines_of(text, comment.start, comment.end)
        .filter_map(|(line, start)| {
            let content = line.trim_start_matches(|c: char| c.is_whitespace() || c == '*' || c == '/');
            annotation_at(content, start + line.len() - content.len())
        })
        .collect()
}

/// Returns the annotations, by word and place, in comment lines of the body. Looks only as far as no quote and no block
/// comment opened, so that a line inside a string never counts.
pub(super) fn annotations_in_body(text: &str, body_start: usize, language: Language) -> Vec<(&'static str, Span)> {
    let marker = match language {
        Language::DuckDbSql | Language::PostgresSql => "--",
        Language::TypeScript => "//",
        Language::Python | Language::Bash => "#",
    };
    let mut found = Vec::new();
    for (line, start) in lines_of(text, body_start, text.len()) {
        if let Some(comment) = line.trim_start().strip_prefix(marker) {
            let content = comment.trim_start();
            found.extend(annotation_at(content, start + line.len() - content.len()));
        } else if line.contains(['\'', '"', '`', '$']) || line.contains("/*") || line.contains("<<") {
            break;
        }
    }
    found
}

fn annotation_at(content: &str, start: usize) -> Option<(&'static str, Span)> {
    let tokens: Vec<&str> = content.split_whitespace().collect();
    let (first, rest) = tokens.split_first()?;
    let word = registry::find(first)?;
    has_shape(word, rest).then(|| (word.name, Span::new(start, start + first.len())))
}

/// Returns the lines of `text[from..to]` with their offsets, without line ends.
fn lines_of(text: &str, from: usize, to: usize) -> impl Iterator<Item = (&str, usize)> {
    let mut start = from;
    text[from..to].split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        (line.trim_end(), at)
    })
}
