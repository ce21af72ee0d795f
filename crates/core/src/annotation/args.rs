//! The arguments of one annotation line: positional values in order, and `key=value` options checked by name.

use std::collections::VecDeque;

use crate::diagnostic::{Code, nearest};
use crate::source::Span;

use super::draft::{Draft, Problem};
use super::registry::{OptionSpec, Word};
use super::tokens::{Token, Value, tokenize};

/// One annotation line.
pub(super) struct Line<'a> {
    /// The whole file.
    pub text: &'a str,
    /// The word that it starts with.
    pub word: &'static Word,
    /// Where the word stands.
    pub word_span: Span,
    /// What follows the word, trimmed.
    pub rest: Span,
}

impl<'a> Line<'a> {
    /// Returns the annotation as a whole.
    pub fn span(&self) -> Span {
        Span::new(self.word_span.start, self.rest.end.max(self.word_span.end))
    }

    /// Returns what follows the word.
    pub fn rest_text(&self) -> &'a str {
        &self.text[self.rest.start..self.rest.end]
    }

    /// Splits what follows the word.
    pub fn tokens(&self) -> Result<Vec<Token<'a>>, Problem> {
        tokenize(self.text, self.rest)
    }

    /// Returns the problem that `what` is missing.
    pub fn missing(&self, what: &str) -> Problem {
        Problem::new(Code::MISSING_ARGUMENT, self.span(), format!("`{}` needs {what}", self.word.name))
            .with_help(self.usage())
    }

    /// Returns the problem that an argument stands where none belongs.
    pub fn unexpected(&self, value: &Value<'_>) -> Problem {
        let message = format!("unexpected `{}` after `{}`", value.raw, self.word.name);
        let problem = Problem::new(Code::UNEXPECTED_ARGUMENT, value.span, message);
        match nearest(value.raw, self.word.keywords.iter().copied()) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None => problem.with_help(self.usage()),
        }
    }

    /// Returns the form of the annotation, and how to keep the line as prose.
    pub fn usage(&self) -> String {
        const MOST_FORMS: usize = 3;
        let mut forms: Vec<String> = self.word.syntax.lines().map(|form| format!("`{form}`")).collect();
        if forms.len() > MOST_FORMS {
            forms.truncate(MOST_FORMS);
            forms.push("another of its forms".to_owned());
        }
        format!("write {}; a line of prose must not start with `{}`", forms.join(" or "), self.word.name)
    }
}

/// The arguments that are left to read.
pub(super) struct Args<'a> {
    positionals: VecDeque<Value<'a>>,
    options: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Args<'a> {
    /// Splits the line and checks its options against the word's.
    pub fn of(line: &Line<'a>, draft: &mut Draft<'_>) -> Result<Self, Problem> {
        Ok(Self::from_tokens(line, &line.tokens()?, line.word.options, draft))
    }

    /// Sorts tokens into positional values and options; reports options that are unknown, repeated or empty.
    pub fn from_tokens(line: &Line<'a>, tokens: &[Token<'a>], known: &[OptionSpec], draft: &mut Draft<'_>) -> Self {
        let mut args = Self { positionals: VecDeque::new(), options: Vec::new() };
        for token in tokens {
            match token.as_option() {
                Some((name, value)) => {
                    if let Err(problem) = args.add_option(line, name, value, known) {
                        draft.report(problem);
                    }
                }
                None => args.positionals.push_back(token.value()),
            }
        }
        args
    }

    fn add_option(
        &mut self,
        line: &Line<'_>,
        name: Token<'a>,
        value: Value<'a>,
        known: &[OptionSpec],
    ) -> Result<(), Problem> {
        if !known.iter().any(|option| option.name == name.raw) {
            return Err(unknown_option(line, name, known));
        }
        if self.options.iter().any(|(given, _)| *given == name.raw) {
            let message = format!("the option `{}` is given twice", name.raw);
            return Err(Problem::new(Code::REPEATED_OPTION, name.span, message).with_help("keep one of them"));
        }
        if value.text.trim().is_empty() {
            let span = Span::new(name.span.start, value.span.end);
            let message = format!("the option `{}=` has no value", name.raw);
            return Err(Problem::new(Code::MISSING_ARGUMENT, span, message)
                .with_help("write the value directly after `=`, in quotes when it holds white space"));
        }
        self.options.push((name.raw, value));
        Ok(())
    }

    /// Takes the next positional value.
    pub fn next(&mut self) -> Option<Value<'a>> {
        self.positionals.pop_front()
    }

    /// Takes the next positional value, which is `what`.
    pub fn require(&mut self, line: &Line<'_>, what: &str) -> Result<Value<'a>, Problem> {
        self.next().ok_or_else(|| line.missing(what))
    }

    /// Takes the option `name`.
    pub fn option(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.options.iter().position(|(given, _)| *given == name)?;
        Some(self.options.remove(at).1)
    }

    /// Reads the option `name` with `read`; reports what is wrong with it.
    pub fn option_as<T>(
        &mut self,
        name: &str,
        draft: &mut Draft<'_>,
        read: impl FnOnce(&Value<'a>) -> Result<T, Problem>,
    ) -> Option<T> {
        let value = self.option(name)?;
        draft.keep(read(&value))
    }

    /// Returns the positional values that are left.
    pub fn rest(&mut self) -> impl Iterator<Item = Value<'a>> + '_ {
        self.positionals.drain(..)
    }

    /// Reports the positional values that nothing asked for.
    pub fn finish(mut self, line: &Line<'_>, draft: &mut Draft<'_>) {
        debug_assert!(self.options.is_empty(), "every known option of `{}` is read", line.word.name);
        for value in self.rest() {
            draft.report(line.unexpected(&value));
        }
    }
}

fn unknown_option(line: &Line<'_>, name: Token<'_>, known: &[OptionSpec]) -> Problem {
    let word = line.word.name;
    if line.word.keywords.contains(&name.raw) {
        let message = format!("`{}` takes no value", name.raw);
        return Problem::new(Code::UNKNOWN_OPTION, name.span, message).with_help(format!("write `{}` alone", name.raw));
    }
    let problem = Problem::new(Code::UNKNOWN_OPTION, name.span, format!("unknown option `{}` of `{word}`", name.raw));
    let names = known.iter().map(|option| option.name);
    if let Some(near) = nearest(name.raw, names) {
        return problem.with_help(format!("did you mean `{near}=`?"));
    }
    if known.is_empty() {
        return problem.with_help(format!("`{word}` has no options here"));
    }
    let list: Vec<String> = known.iter().map(|option| format!("`{}=`", option.name)).collect();
    problem.with_help(format!("the options are {}", list.join(", ")))
}
