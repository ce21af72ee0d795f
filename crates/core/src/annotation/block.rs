//! Finds the header: the comment lines at the top of a file.
//!
//! The header ends at the first code line or at a comment line `---`. Blank lines belong to it. `--`, `//` and `#` open
//! a comment line in every language. A shebang may stand first. Block comments (`/* … */` in SQL and TypeScript) are
//! stepped over: they neither end the header nor count as header, and stay in the body.
//!
//! Invariant: `blanked` has the byte length and the line ends of the file, so that every offset into it is one into
//! the file.

use crate::source::{Language, Span};

/// The header of one file, found but not yet read.
pub(super) struct HeaderBlock {
    /// The comment lines, in order.
    pub lines: Vec<CommentLine>,
    /// The block comments that were stepped over.
    pub block_comments: Vec<Span>,
    /// The file with its header lines replaced by spaces.
    pub blanked: String,
    /// Where the body starts.
    pub body_start: usize,
    /// Why the header ended.
    pub end: HeaderEnd,
}

/// One comment line of the header.
pub(super) struct CommentLine {
    /// What follows the comment marker, trimmed.
    pub content: Span,
}

/// Why a header ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderEnd {
    /// A code line, or the end of the file.
    Code,
    /// A comment line `---`.
    Rule,
}

const BYTE_ORDER_MARK: char = '\u{feff}';
const MARKERS: [&str; 3] = ["--", "//", "#"];

/// Finds the header of `text`.
pub(super) fn find_header(text: &str, language: Language) -> HeaderBlock {
    let mut block = HeaderBlock {
        lines: Vec::new(),
        block_comments: Vec::new(),
        blanked: String::new(),
        body_start: text.len(),
        end: HeaderEnd::Code,
    };
    let mut at = preamble_end(text);
    let mut blank = vec![Span::new(0, at)];
    while at < text.len() {
        let end = line_end(text, at);
        let line = &text[at..end];
        if line.trim().is_empty() {
            at = end;
        } else if let Some(content) = comment_content(text, at, end) {
            blank.push(Span::new(at, end));
            at = end;
            if is_rule(line, &text[content.start..content.end]) {
                block.end = HeaderEnd::Rule;
                block.body_start = at;
                break;
            }
            block.lines.push(CommentLine { content });
        } else if let Some(comment) = block_comment(text, at, language) {
            block.block_comments.push(comment);
            at = line_end(text, comment.end);
        } else {
            block.body_start = at;
            break;
        }
    }
    block.blanked = blank_out(text, &blank);
    block
}

/// Returns where the byte order mark and the shebang line end, which may stand before everything.
fn preamble_end(text: &str) -> usize {
    let at = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len_utf8() } else { 0 };
    if text[at..].starts_with("#!") { line_end(text, at) } else { at }
}

/// Returns one past the line feed of the line at `at`, or the end of the text.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

/// Returns what follows the comment marker of the line `[start, end)`, when it is a comment line.
fn comment_content(text: &str, start: usize, end: usize) -> Option<Span> {
    let line = text[start..end].trim_end();
    let comment = line.trim_start();
    let marker = MARKERS.into_iter().find(|marker| comment.starts_with(marker))?;
    let repeated = marker.chars().next().expect("a marker has a character");
    let content = comment.trim_start_matches(repeated);
    let content = content.strip_prefix('!').unwrap_or(content).trim_start();
    let content_end = start + line.len();
    Some(Span::new(content_end - content.len(), content_end))
}

fn is_rule(line: &str, content: &str) -> bool {
    line.trim() == "---" || content == "---"
}

/// Returns the block comment that the line at `start` begins with, when nothing but white space follows it on its last
/// line. DuckDB and Postgres nest block comments; TypeScript does not.
fn block_comment(text: &str, start: usize, language: Language) -> Option<Span> {
    let nests = match language {
        Language::DuckDbSql | Language::PostgresSql => true,
        Language::TypeScript => false,
        Language::Python | Language::Bash => return None,
    };
    let open = start + text[start..].len() - text[start..].trim_start().len();
    if !text[open..].starts_with("/*") {
        return None;
    }
    let mut depth = 1;
    let mut at = open + 2;
    while depth > 0 {
        let next = at + text[at..].find(['*', '/'])?;
        if text[next..].starts_with("*/") {
            depth -= 1;
            at = next + 2;
        } else if nests && text[next..].starts_with("/*") {
            depth += 1;
            at = next + 2;
        } else {
            at = next + 1;
        }
    }
    let rest_is_blank = text[at..line_end(text, at)].trim().is_empty();
    rest_is_blank.then(|| Span::new(open, at))
}

/// Replaces every byte of `spans` by a space, save line ends.
fn blank_out(text: &str, spans: &[Span]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for span in spans {
        for at in span.start..span.end {
            let is_line_end = bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) == Some(&b'\n'));
            if !is_line_end {
                bytes[at] = b' ';
            }
        }
    }
    String::from_utf8(bytes).expect("whole lines are replaced, so no character is cut")
}
