//! Reads a file's header: every comment line becomes an annotation, a line of the description, or a diagnostic.

use crate::diagnostic::{Code, Diagnostic};
use crate::source::{Language, SourceFile, Span};

use super::args::Line;
use super::block::{HeaderBlock, HeaderEnd, find_header};
use super::draft::{Draft, Problem};
use super::registry::{self, Repeats, Runtime, Word};
use super::spec::Header;
use super::{fold, looks_like, rules};

/// The header of one script, read.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedHeader {
    /// What it declares.
    pub header: Header,
    /// What is wrong with it, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The file with its header lines replaced by spaces: the same byte length, the same line ends.
    pub blanked: String,
    /// The byte where the body starts.
    pub body_start: usize,
}

/// Reads the header of `file`. Never fails: what cannot be read is a diagnostic, and the rest still stands.
pub fn parse_header(file: &SourceFile, language: Language) -> ParsedHeader {
    let block = find_header(&file.text, language);
    let mut draft = Draft::new(&file.path, default_table(&file.path));
    for line in &block.lines {
        read_line(&file.text, line.content, &mut draft);
    }
    report_unread_annotations(&file.text, &block, language, &mut draft);
    fold::fold_materialize(&mut draft);
    rules::check_lines_together(&mut draft, language);
    note_language(language, &mut draft);

    draft.header.description = draft.description();
    let mut diagnostics = draft.diagnostics;
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
    ParsedHeader { header: draft.header, diagnostics, blanked: block.blanked, body_start: block.body_start }
}

/// Returns the last part of the script's name, without the file's ending.
fn default_table(path: &str) -> &str {
    let file_name = path.rsplit('/').next().unwrap_or(path);
    match Language::of_file_name(file_name) {
        Some((_, stem)) => stem,
        None => file_name.split('.').next().unwrap_or(file_name),
    }
}

fn read_line(text: &str, content: Span, draft: &mut Draft<'_>) {
    let line = &text[content.start..content.end];
    let first = line.split_whitespace().next().unwrap_or_default();
    if let Some(word) = registry::find(first) {
        read_annotation(text, word, content, draft);
    } else if let Some(problem) = looks_like::suspicious_line(line, content.start) {
        // A line that only looks like an annotation is still worth reading; one that was meant as such is not.
        if problem.code == Code::LOOKS_LIKE_ANNOTATION {
            draft.add_prose(line);
        }
        draft.report(problem);
    } else if is_prose(line) {
        draft.add_prose(line);
    } else {
        draft.add_prose("");
    }
}

/// Returns whether a line says something: it is not empty and not only a decoration.
fn is_prose(line: &str) -> bool {
    line.contains(char::is_alphanumeric)
}

fn read_annotation(text: &str, word: &'static Word, content: Span, draft: &mut Draft<'_>) {
    let line = &text[content.start..content.end];
    let first_length = line.find(char::is_whitespace).unwrap_or(line.len());
    let rest = line[first_length..].trim_start();
    let line = Line {
        text,
        word,
        word_span: Span::new(content.start, content.start + first_length),
        rest: Span::new(content.end - rest.len(), content.end),
    };
    if word.repeats == Repeats::Once
        && let Some(first) = draft.place_of(word.name)
    {
        let message = format!("`{}` stands twice", word.name);
        let problem = Problem::new(Code::REPEATED_ANNOTATION, line.word_span, message)
            .with_help("keep one of the two lines")
            .with_label(first, "the first one, which counts");
        draft.report(problem);
        return;
    }
    draft.seen.push((word.name, line.word_span));
    if let Err(mut problem) = (word.parse)(&line, draft) {
        if problem.code == Code::BAD_VALUE {
            // The line may have been meant as prose; the form says how to keep it so.
            problem.help.get_or_insert_with(|| line.usage());
        }
        draft.report(problem);
    } else if word.runtime == Runtime::NotYet {
        draft.note_not_yet(&format!("`{}`", word.name), line.word_span);
    }
}

/// Warns about lines that were meant for the header but stand in a block comment or after the first code line.
fn report_unread_annotations(text: &str, block: &HeaderBlock, language: Language, draft: &mut Draft<'_>) {
    for comment in &block.block_comments {
        for (word, span) in looks_like::annotations_in_block_comment(text, *comment) {
            let message = format!("`{word}` stands in a block comment, where annotations are not read");
            draft.report(
                Problem::new(Code::ANNOTATION_IN_BLOCK_COMMENT, span, message)
                    .with_help("start the line with `--`, `//` or `#` outside the block comment"),
            );
        }
    }
    if block.end == HeaderEnd::Rule {
        return;
    }
    for (word, span) in looks_like::annotations_in_body(text, block.body_start, language) {
        let message = format!("`{word}` stands after the first code line, where annotations are not read");
        draft.report(
            Problem::new(Code::ANNOTATION_AFTER_HEADER, span, message)
                .with_help("move the line above the first code line"),
        );
    }
}

fn note_language(language: Language, draft: &mut Draft<'_>) {
    if matches!(language, Language::DuckDbSql | Language::PostgresSql) {
        return;
    }
    let message = format!("this version checks the header of {language} scripts, but does not run them yet");
    draft.diagnostics.push(Diagnostic::new(Code::LANGUAGE_NOT_YET, draft.path, None, message));
}
