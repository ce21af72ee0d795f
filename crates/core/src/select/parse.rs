//! Lexer and parser of selections.
//!
//! Quotes (`"a b"`, `'a,b'`) make blanks, commas and plus signs part of a name.

use super::{Atom, Depth, Fact, KindFilter, Reach, ScriptKind, SelectError, Selection, StepResult, Subject, Term};
use crate::diagnostic::{Code, nearest};
use crate::plan::State;
use crate::source::{Language, Located, Span};

const METHODS: [&str; 6] = ["tag", "owner", "kind", "source", "state", "result"];

/// A script may well be called `unknown`, so that state has no word of its own.
const FACTS: [(&str, Fact); 6] = [
    ("stale", Fact::State(State::Stale)),
    ("missing", Fact::State(State::Missing)),
    ("failed", Fact::State(State::Failed)),
    ("partial", Fact::State(State::Partial)),
    ("fresh", Fact::State(State::Fresh)),
    ("unchanged", Fact::State(State::Fresh)),
];

const STATES: [(&str, Fact); 8] = [
    ("new", Fact::New),
    ("modified", Fact::Modified),
    ("stale", Fact::State(State::Stale)),
    ("missing", Fact::State(State::Missing)),
    ("failed", Fact::State(State::Failed)),
    ("partial", Fact::State(State::Partial)),
    ("unknown", Fact::State(State::Unknown)),
    ("fresh", Fact::State(State::Fresh)),
];

const RESULTS: [(&str, Fact); 4] = [
    ("materialized", Fact::Result(StepResult::Materialized)),
    ("unchanged", Fact::Result(StepResult::Unchanged)),
    ("failed", Fact::Result(StepResult::Failed)),
    ("rolled_back", Fact::Result(StepResult::RolledBack)),
];

const KINDS: [(&str, KindFilter); 12] = [
    ("replace", KindFilter::Strategy(ScriptKind::Replace)),
    ("merge", KindFilter::Strategy(ScriptKind::Merge)),
    ("append", KindFilter::Strategy(ScriptKind::Append)),
    ("history", KindFilter::Strategy(ScriptKind::History)),
    ("view", KindFilter::Strategy(ScriptKind::View)),
    ("manual", KindFilter::Strategy(ScriptKind::Manual)),
    ("sql", KindFilter::AnySql),
    ("duckdb", KindFilter::Language(Language::DuckDbSql)),
    ("postgres", KindFilter::Language(Language::PostgresSql)),
    ("python", KindFilter::Language(Language::Python)),
    ("typescript", KindFilter::Language(Language::TypeScript)),
    ("bash", KindFilter::Language(Language::Bash)),
];

/// Parses the whole of `text`, or returns every mistake in it.
pub fn parse(text: &str) -> Result<Selection, Vec<SelectError>> {
    let mut errors = Vec::new();
    let mut terms = Vec::new();
    for words in lex(text, &mut errors) {
        let atoms = words.iter().filter_map(|word| parse_atom(word).map_err(|error| errors.push(error)).ok()).collect();
        terms.push(Term { atoms });
    }
    if terms.is_empty() && errors.is_empty() {
        let error = SelectError::new(Code::SELECTION_SYNTAX, Span::new(0, text.len()), "the selection is empty");
        errors.push(error.with_help("name a script, a folder such as `orders/`, or a tag such as `tag:nightly`"));
    }
    errors.sort_by_key(|error| error.span);
    if errors.is_empty() { Ok(Selection { terms }) } else { Err(errors) }
}

/// A letter of a word; a quoted one is never an operator.
#[derive(Clone, Copy)]
struct Letter {
    at: usize,
    value: char,
    quoted: bool,
}

impl Letter {
    fn is(self, operator: char) -> bool {
        self.value == operator && !self.quoted
    }

    fn end(self) -> usize {
        self.at + self.value.len_utf8()
    }
}

/// The text between blanks and commas.
struct Word {
    letters: Vec<Letter>,
    span: Span,
}

/// Splits `text` into terms of words; an empty word beside a comma is reported.
fn lex(text: &str, errors: &mut Vec<SelectError>) -> Vec<Vec<Word>> {
    let mut lexer = Lexer::new(errors);
    let mut quote: Option<(char, usize)> = None;
    for (at, value) in text.char_indices() {
        match (quote, value) {
            (Some((open, _)), _) if open == value => quote = None,
            (Some(_), _) => lexer.letters.push(Letter { at, value, quoted: true }),
            (None, '"' | '\'') => quote = Some((value, at)),
            (None, ',') => lexer.comma(at),
            (None, _) if value.is_whitespace() => lexer.blank(),
            (None, _) => lexer.letters.push(Letter { at, value, quoted: false }),
        }
    }
    lexer.blank();
    let terms = lexer.terms;
    if let Some((open, at)) = quote {
        errors.push(SelectError::new(
            Code::SELECTION_SYNTAX,
            Span::new(at, text.len()),
            format!("the `{open}` is never closed"),
        ));
    }
    terms
}

/// What the lexer has read so far.
struct Lexer<'a> {
    terms: Vec<Vec<Word>>,
    /// The words of the open term.
    words: Vec<Word>,
    /// The letters of the open word.
    letters: Vec<Letter>,
    /// The comma that waits for a word after it.
    comma: Option<usize>,
    errors: &'a mut Vec<SelectError>,
}

impl<'a> Lexer<'a> {
    fn new(errors: &'a mut Vec<SelectError>) -> Self {
        Self { terms: Vec::new(), words: Vec::new(), letters: Vec::new(), comma: None, errors }
    }

    fn comma(&mut self, at: usize) {
        if !self.end_word() {
            self.errors.push(SelectError::new(
                Code::SELECTION_SYNTAX,
                Span::new(at, at + 1),
                "expected a selector before `,`",
            ));
        }
        self.comma = Some(at);
    }

    fn blank(&mut self) {
        let found_word = self.end_word();
        if let (false, Some(at)) = (found_word, self.comma) {
            let error =
                SelectError::new(Code::SELECTION_SYNTAX, Span::new(at, at + 1), "expected a selector after `,`");
            self.errors.push(error.with_help("write `a,b` without blanks for scripts that are both"));
        }
        self.comma = None;
        if !self.words.is_empty() {
            self.terms.push(std::mem::take(&mut self.words));
        }
    }

    fn end_word(&mut self) -> bool {
        let letters = std::mem::take(&mut self.letters);
        let (Some(first), Some(last)) = (letters.first(), letters.last()) else { return false };
        let span = Span::new(first.at, last.end());
        self.words.push(Word { letters, span });
        true
    }
}

fn parse_atom(word: &Word) -> Result<Atom, SelectError> {
    let (upstream, family, letters) = take_prefix(&word.letters)?;
    let (downstream, letters) = take_suffix(letters)?;
    let (Some(first), Some(last)) = (letters.first(), letters.last()) else {
        return Err(SelectError::new(Code::SELECTION_SYNTAX, word.span, "expected a name beside the operator"));
    };
    let span = Span::new(first.at, last.end());
    let reach = match (family, upstream, downstream) {
        (false, upstream, downstream) => Reach::Steps {
            upstream: upstream.unwrap_or(Depth::Steps(0)),
            downstream: downstream.unwrap_or(Depth::Steps(0)),
        },
        (true, None, None) => Reach::Family,
        (true, ..) => {
            let error = SelectError::new(
                Code::SELECTION_SYNTAX,
                word.span,
                "`@` already reaches up and down, `+` has no place beside it",
            );
            return Err(error.with_help("write `@x`, or `+x+`"));
        }
    };
    Ok(Atom { subject: Located { value: parse_subject(letters, span)?, span }, reach })
}

type Prefix<'a> = (Option<Depth>, bool, &'a [Letter]);

/// Takes `@`, `+` or `2+`.
fn take_prefix(letters: &[Letter]) -> Result<Prefix<'_>, SelectError> {
    if letters.first().is_some_and(|first| first.is('@')) {
        let (upstream, nested, rest) = take_prefix(&letters[1..])?;
        return match (upstream, nested) {
            (None, false) => Ok((None, true, rest)),
            _ => {
                let span = Span::new(letters[0].at, letters[1].end());
                Err(SelectError::new(Code::SELECTION_SYNTAX, span, "one operator is enough before a name"))
            }
        };
    }
    let digits = letters.iter().take_while(|letter| letter.value.is_ascii_digit() && !letter.quoted).count();
    match letters.get(digits) {
        Some(plus) if plus.is('+') => Ok((Some(depth(&letters[..digits])?), false, &letters[digits + 1..])),
        _ => Ok((None, false, letters)),
    }
}

/// Takes `+` or `+2`.
fn take_suffix(letters: &[Letter]) -> Result<(Option<Depth>, &[Letter]), SelectError> {
    let digits = letters.iter().rev().take_while(|letter| letter.value.is_ascii_digit() && !letter.quoted).count();
    let before = letters.len() - digits;
    match before.checked_sub(1).map(|plus| letters[plus]) {
        Some(plus) if plus.is('+') => Ok((Some(depth(&letters[before..])?), &letters[..before - 1])),
        _ => Ok((None, letters)),
    }
}

fn depth(digits: &[Letter]) -> Result<Depth, SelectError> {
    let (Some(first), Some(last)) = (digits.first(), digits.last()) else { return Ok(Depth::All) };
    let text: String = digits.iter().map(|digit| digit.value).collect();
    match text.parse() {
        Ok(steps) => Ok(Depth::Steps(steps)),
        Err(_) => Err(SelectError::new(
            Code::SELECTION_SYNTAX,
            Span::new(first.at, last.end()),
            format!("`{text}` steps are too many"),
        )),
    }
}

fn parse_subject(letters: &[Letter], span: Span) -> Result<Subject, SelectError> {
    let text: String = letters.iter().map(|letter| letter.value).collect();
    let is_plain = letters.iter().all(|letter| !letter.quoted);
    if is_plain && let Some((_, fact)) = FACTS.iter().find(|(name, _)| *name == text) {
        return Ok(Subject::Fact(*fact));
    }
    let colon = letters.iter().position(|letter| letter.is(':'));
    let Some(colon) = colon.filter(|_| !text.contains("://") || METHODS.iter().any(|method| is_method(&text, method)))
    else {
        return Ok(Subject::Name(text));
    };
    let method: String = letters[..colon].iter().map(|letter| letter.value).collect();
    let value: String = letters[colon + 1..].iter().map(|letter| letter.value).collect();
    let method_span = Span::new(span.start, letters[colon].at);
    if value.is_empty() && METHODS.contains(&method.as_str()) {
        return Err(SelectError::new(Code::SELECTION_SYNTAX, span, format!("expected a value after `{method}:`")));
    }
    let value_span = Span::new(letters[colon].end(), span.end);
    match method.as_str() {
        "tag" => Ok(Subject::Tag(value)),
        "owner" => Ok(Subject::Owner(value)),
        "source" => Ok(Subject::Source(value)),
        "kind" => one_of(&KINDS, &value, "kind", value_span).map(Subject::Kind),
        "state" => one_of(&STATES, &value, "state", value_span).map(Subject::Fact),
        "result" => one_of(&RESULTS, &value, "result", value_span).map(Subject::Fact),
        _ => {
            let error =
                SelectError::new(Code::UNKNOWN_SELECTION_METHOD, method_span, format!("unknown method `{method}:`"));
            Err(match nearest(&method, METHODS) {
                Some(near) => error.with_help(format!("did you mean `{near}:`?")),
                None => {
                    error.with_help(format!("the methods are {}", METHODS.map(|name| format!("`{name}:`")).join(", ")))
                }
            })
        }
    }
}

fn is_method(text: &str, method: &str) -> bool {
    text.strip_prefix(method).is_some_and(|rest| rest.starts_with(':') && !rest.starts_with("://"))
}

fn one_of<T: Copy>(known: &[(&str, T)], value: &str, method: &str, span: Span) -> Result<T, SelectError> {
    if let Some((_, found)) = known.iter().find(|(name, _)| *name == value) {
        return Ok(*found);
    }
    let error = SelectError::new(Code::SELECTION_SYNTAX, span, format!("unknown {method} `{value}`"));
    Err(match nearest(value, known.iter().map(|(name, _)| *name)) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => {
            let names: Vec<String> = known.iter().map(|(name, _)| format!("`{name}`")).collect();
            error.with_help(format!("expected one of {}", names.join(", ")))
        }
    })
}
