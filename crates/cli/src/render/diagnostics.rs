//! Findings and failures in the style of rustc: the message, the place with its line, labels, help.

use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use pintail_core::diagnostic::{Code, Diagnostic, Severity};
use pintail_core::source::Span;
use pintail_runner::executors::StepFailure;
use pintail_runner::executors::failure::Sample;

use super::table::{Align, listing};

/// Returns a finding with the part of `source` that it is about.
pub fn render(diagnostic: &Diagnostic, source: Option<&str>, has_color: bool) -> String {
    let mut group = level(diagnostic.severity)
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code.as_str())
        .elements(Vec::<Element<'_>>::new());
    group = match (diagnostic.span, source) {
        (Some(span), Some(text)) => {
            let mut snippet = snippet(&diagnostic.path, text, span);
            for label in &diagnostic.labels {
                let span = within(text, label.span);
                snippet = snippet
                    .annotation(AnnotationKind::Context.span(span.start..span.end).label(label.message.as_str()));
            }
            group.element(snippet)
        }
        _ if diagnostic.path.is_empty() => return without_place(diagnostic, group, has_color),
        _ => group.element(Origin::path(diagnostic.path.as_str())),
    };
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    draw(group, has_color)
}

/// A finding about the project as a whole has no place, so there is nothing to draw under its title.
fn without_place(diagnostic: &Diagnostic, group: Group<'_>, has_color: bool) -> String {
    let title = draw(group, has_color);
    match &diagnostic.help {
        Some(help) => format!("{title}\n  = help: {help}"),
        None => title,
    }
}

/// Returns a failed step: what and where, and then the stage, what is committed now, and what to do next.
pub fn step_failure(failure: &StepFailure, step: &str, source: Option<(&str, &str)>, has_color: bool) -> String {
    let title = format!("{step}: {}", failure.message);
    let stage = format!("failed to {}", failure.stage);
    let committed = format!("committed now: {}", failure.committed);
    let mut notes = vec![stage];
    if !failure.committed.is_empty() {
        notes.push(committed);
    }
    failure_text(failure, &title, &notes, source, has_color)
}

/// Returns a failed question.
pub fn question_failure(failure: &StepFailure, source: Option<(&str, &str)>, has_color: bool) -> String {
    let notes = [format!("failed to {}", failure.stage)];
    failure_text(failure, &failure.message, &notes, source, has_color)
}

fn failure_text(
    failure: &StepFailure,
    title: &str,
    notes: &[String],
    source: Option<(&str, &str)>,
    has_color: bool,
) -> String {
    let mut title = Level::ERROR.primary_title(title);
    if failure.code != Code::ENGINE_ERROR {
        title = title.id(failure.code.as_str());
    }
    let mut group = title.elements(Vec::<Element<'_>>::new());
    group = match (failure.span, source) {
        (Some(span), Some((path, text))) => group.element(snippet(path, text, span)),
        (None, Some((path, _))) => group.element(Origin::path(path)),
        (_, None) => group,
    };
    for note in notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    if let Some(help) = &failure.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let mut text = draw(group, has_color);
    if let Some(sample) = &failure.sample {
        let _ = write!(text, "\n{}", sample_rows(sample));
    }
    text
}

/// Returns sample rows as a list, indented under what they show.
pub fn sample_rows(sample: &Sample) -> String {
    let columns: Vec<(&str, Align)> = sample.columns.iter().map(|name| (name.as_str(), Align::Left)).collect();
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
    let (shown, more) = sample.shown();
    let rows = shown.iter().map(|row| row.iter().map(cell).collect()).collect();
    let listed = listing(&columns, rows);
    let lines: Vec<String> = listed.lines().chain(more.as_deref()).map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    }
}

fn snippet<'a>(path: &'a str, text: &'a str, span: Span) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let span = within(text, span);
    Snippet::source(text).path(path).fold(true).annotation(AnnotationKind::Primary.span(span.start..span.end))
}

/// Returns `span` cut to `text` and to whole characters, so that a wrong place cannot stop a message.
fn within(text: &str, span: Span) -> Span {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(span.start), floor(span.end));
    // A caret needs something to stand under.
    let end = if start == end { text[start..].chars().next().map_or(end, |c| start + c.len_utf8()) } else { end };
    // A span of several lines is shown by its first.
    let end = text[start..end].find('\n').filter(|at| 0 < *at).map_or(end, |at| start + at);
    Span::new(start, end.max(start))
}

fn draw(group: Group<'_>, has_color: bool) -> String {
    let renderer = if has_color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&[group])
}
