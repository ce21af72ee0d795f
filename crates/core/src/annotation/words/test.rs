//! `test`: what must hold for the rows that a step writes.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{OptionSpec, Repeats, Runtime, Shape, Word};
use crate::annotation::spec::{TestCheck, TestDecl, TestScope, TestSeverity};
use crate::annotation::tokens::{Token, Value, quote_length};
use crate::annotation::values::{
    check_sql, read_choice, read_column, read_column_of_asset, read_columns, read_script_path, read_sql,
};
use crate::diagnostic::{Code, nearest};
use crate::source::{Located, Span};

pub const WORD: Word = Word {
    name: "test",
    aliases: &["data_test"],
    syntax: "test unique a,b\n\
             test not_null a\n\
             test accepted_values a = x,'y z'\n\
             test relationships a -> <uri>.<column>\n\
             test expression \"<sql>\"\n\
             test row_count <min>..<max>\n\
             test <name> [<argument>…]",
    doc: "Checks the written rows before they are published: when a test fails, the old version stays live. `unique`, \
          `accepted_values` and `relationships` ignore rows with NULL and say how many there are; `NULL` in a list of \
          accepted values allows NULL. An `expression` must not be false for any row. `row_count` may leave out one end \
          (`1..`). `<name>` is a test script of the project or of a package. `data_test` is another spelling. The options \
          stand at the end of the line.",
    example: "test unique order_id\ntest accepted_values status = open,paid,'in doubt' severity=warn\n\
              test relationships customer_id -> ducklake://main/customers.id where=\"customer_id > 0\"\n\
              test expression \"amount >= 0\"\ntest row_count 1..",
    options: &[
        OptionSpec {
            name: "severity",
            value: "warn|error",
            doc: "With `warn`, a failure is recorded and does not stop the write; `error` when absent.",
        },
        OptionSpec { name: "where", value: "\"<sql>\"", doc: "The rows that the test is about." },
        OptionSpec {
            name: "scope",
            value: "slice|table",
            doc: "Whether the test is about the written partition (when absent and partitioned) or the whole table.",
        },
    ],
    keywords: &["unique", "not_null", "accepted_values", "relationships", "expression", "row_count"],
    repeats: Repeats::Freely,
    runtime: Runtime::Here,
    shape: &[Shape::Uri],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let tokens = line.tokens()?;
    let Some((kind, rest)) = tokens.split_first() else { return Err(line.missing("a kind of test")) };
    let (arguments, options) = split_options(kind.raw, rest);
    let form = Form { line, kind: *kind, arguments };
    let checks = match kind.raw {
        "unique" => form.unique(draft)?,
        "not_null" => form.not_null(draft)?,
        "accepted_values" => form.accepted_values(draft)?,
        "relationships" => form.relationships(draft)?,
        "expression" => form.expression()?,
        "row_count" => form.row_count()?,
        _ => form.named()?,
    };
    let mut args = Args::from_tokens(line, options, WORD.options, draft);
    let severities = [("warn", TestSeverity::Warn), ("error", TestSeverity::Error)];
    let severity = args.option_as("severity", draft, |value| read_choice(value, "a severity", &severities));
    let filter = args.option_as("where", draft, read_sql);
    let scope = args.option_as("scope", draft, |value| {
        let scope = read_choice(value, "a scope", &[("slice", TestScope::Slice), ("table", TestScope::Table)])?;
        Ok(Located { value: scope, span: value.span })
    });
    args.finish(line, draft);
    if let Some(Located { value: TestScope::Slice, span }) = scope {
        draft.slice_scopes.push(span);
    }
    for check in checks {
        let test = TestDecl {
            check,
            severity: severity.unwrap_or_default(),
            filter: filter.clone(),
            scope: scope.as_ref().map(|scope| scope.value),
        };
        draft.header.tests.push(Located { value: test, span: line.span() });
    }
    Ok(())
}

/// Splits the options, which end the line, from the arguments. What a test of the project takes as `key=value` stays
/// its argument unless the key is near one of ours.
fn split_options<'t, 'a>(kind: &str, rest: &'t [Token<'a>]) -> (&'t [Token<'a>], &'t [Token<'a>]) {
    let is_known = |name: &str| WORD.options.iter().any(|option| option.name == name);
    let is_near = |name: &str| nearest(name, WORD.options.iter().map(|option| option.name)).is_some();
    let is_generic = WORD.keywords.contains(&kind);
    let is_option = |(at, token): (usize, &Token<'_>)| {
        token.as_option().is_some_and(|(name, _)| match at {
            // `accepted_values a=x,y` written without spaces.
            0 if kind == "accepted_values" => is_known(name.raw),
            _ => is_known(name.raw) || is_generic || is_near(name.raw),
        })
    };
    let first_option = rest.iter().enumerate().position(is_option).unwrap_or(rest.len());
    rest.split_at(first_option)
}

/// The kind and the arguments of one test line.
struct Form<'l, 'a, 't> {
    line: &'l Line<'a>,
    kind: Token<'a>,
    arguments: &'t [Token<'a>],
}

impl<'a> Form<'_, 'a, '_> {
    /// Returns the one argument, which is `what`.
    fn only_argument(&self, what: &str) -> Result<Value<'a>, Problem> {
        match self.arguments {
            [] => Err(self.missing(what)),
            [argument] => Ok(argument.value()),
            [_, second, ..] => {
                let message = format!("unexpected `{}`; `test {}` takes {what}", second.raw, self.kind.raw);
                Err(Problem::new(Code::UNEXPECTED_ARGUMENT, second.span, message)
                    .with_help("a list stands without white space: `a,b`"))
            }
        }
    }

    fn missing(&self, what: &str) -> Problem {
        let message = format!("`test {}` needs {what}", self.kind.raw);
        let form = WORD.syntax.lines().find(|form| form.contains(self.kind.raw)).unwrap_or(WORD.syntax);
        Problem::new(Code::MISSING_ARGUMENT, self.kind.span, message).with_help(format!("write `{form}`"))
    }

    fn unique(&self, draft: &mut Draft<'_>) -> Result<Vec<TestCheck>, Problem> {
        let columns = read_columns(&self.only_argument("columns")?)?;
        draft.column_uses.extend(columns.iter().cloned());
        Ok(vec![TestCheck::Unique(columns.into_iter().map(|column| column.value).collect())])
    }

    /// Reads `not_null a`; a list is one test per column.
    fn not_null(&self, draft: &mut Draft<'_>) -> Result<Vec<TestCheck>, Problem> {
        let columns = read_columns(&self.only_argument("a column")?)?;
        draft.column_uses.extend(columns.iter().cloned());
        Ok(columns.into_iter().map(|column| TestCheck::NotNull(column.value)).collect())
    }

    /// Splits `left <separator> right` in the text of all arguments.
    fn split_at(&self, separator: &str, what: &str) -> Result<(Value<'a>, Value<'a>), Problem> {
        let (Some(first), Some(last)) = (self.arguments.first(), self.arguments.last()) else {
            return Err(self.missing(what));
        };
        let text = &self.line.text[first.span.start..last.span.end];
        // A quoted name may hold the separator.
        let quoted = if text.starts_with('"') { quote_length(text).unwrap_or(0) } else { 0 };
        let Some(at) = text[quoted..].find(separator).map(|at| at + quoted) else {
            return Err(self.missing(what));
        };
        let (left, right) = (text[..at].trim_end(), text[at + separator.len()..].trim_start());
        if left.is_empty() || right.is_empty() {
            return Err(self.missing(what));
        }
        Ok((Value::new(left, first.span.start), Value::new(right, last.span.end - right.len())))
    }

    fn accepted_values(&self, draft: &mut Draft<'_>) -> Result<Vec<TestCheck>, Problem> {
        let (left, right) = self.split_at("=", "`<column> = <values>`")?;
        let column = read_column(&left)?;
        let values = split_values(right.raw, right.span.start)?;
        draft.column_uses.push(column.clone());
        Ok(vec![TestCheck::AcceptedValues { column: column.value, values }])
    }

    fn relationships(&self, draft: &mut Draft<'_>) -> Result<Vec<TestCheck>, Problem> {
        let (left, right) = self.split_at("->", "`<column> -> <uri>.<column>`")?;
        let column = read_column(&left)?;
        let (parent, parent_column) = read_column_of_asset(&right)?;
        draft.column_uses.push(column.clone());
        Ok(vec![TestCheck::Relationships { column: column.value, parent, parent_column }])
    }

    /// Reads the condition; without quotes, everything up to the options.
    fn expression(&self) -> Result<Vec<TestCheck>, Problem> {
        let (Some(first), Some(last)) = (self.arguments.first(), self.arguments.last()) else {
            return Err(self.missing("an SQL condition in quotes"));
        };
        if let [argument] = self.arguments {
            return Ok(vec![TestCheck::Expression(read_sql(&argument.value())?)]);
        }
        let text = &self.line.text[first.span.start..last.span.end];
        check_sql(text, first.span.start)?;
        Err(Problem::new(
            Code::UNEXPECTED_ARGUMENT,
            Span::new(first.span.start, last.span.end),
            "the condition must stand in quotes",
        )
        .with_help(format!("write `test expression \"{}\"`", text.replace('"', "\\\""))))
    }

    fn row_count(&self) -> Result<Vec<TestCheck>, Problem> {
        let value = self.only_argument("a range of numbers of rows")?;
        let refuse = |message: String| {
            Problem::new(Code::BAD_VALUE, value.span, message)
                .with_help("write `<min>..<max>`, `<min>..`, `..<max>` or one number")
        };
        let bound = |text: &str| match text {
            "" => Ok(None),
            _ => text.parse::<u64>().map(Some).map_err(|_| refuse(format!("`{text}` is not a number of rows"))),
        };
        let (min, max) = match value.text.split_once("..") {
            Some((min, max)) => (bound(min)?, bound(max)?),
            None => (bound(&value.text)?, bound(&value.text)?),
        };
        match (min, max) {
            (None, None) => Err(refuse("the range has neither end".to_owned())),
            (Some(min), Some(max)) if max < min => Err(refuse(format!("no number of rows lies in {min}..{max}"))),
            _ => Ok(vec![TestCheck::RowCount { min, max }]),
        }
    }

    /// Reads a test script's or package test's name and arguments.
    fn named(&self) -> Result<Vec<TestCheck>, Problem> {
        let value = self.kind.value();
        if let Some(near) = nearest(&value.text, WORD.keywords.iter().copied())
            && !self.arguments.is_empty()
        {
            return Err(Problem::new(Code::BAD_VALUE, value.span, format!("unknown test `{}`", value.text))
                .with_help(format!("did you mean `{near}`?")));
        }
        let name = read_script_path(&value)?;
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
        if let Some(stranger) = name.chars().find(|c| !is_plain(*c)) {
            let message = format!("`{stranger}` cannot stand in the name of a test");
            return Err(Problem::new(Code::BAD_VALUE, value.span, message).with_help(self.line.usage()));
        }
        let arguments = self.arguments.iter().map(|argument| argument.value().text.into_owned()).collect();
        Ok(vec![TestCheck::Named { name, arguments }])
    }
}

/// Splits `x, 'y z', NULL` at commas outside quotes.
fn split_values(text: &str, start: usize) -> Result<Vec<String>, Problem> {
    let mut values = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = start + text.len() - rest.len();
        let length = match rest.starts_with(['\'', '"']) {
            true => quote_length(rest).unwrap_or(rest.len()),
            false => rest.find(',').unwrap_or(rest.len()),
        };
        let value = Value::new(rest[..length].trim_end(), at);
        if value.raw.is_empty() {
            let span = Span::new(start, start + text.len());
            return Err(Problem::new(Code::BAD_VALUE, span, "a value is missing between the commas")
                .with_help("the empty text is `''`"));
        }
        let after = rest[length..].trim_start();
        values.push(value.text.into_owned());
        if after.is_empty() {
            return Ok(values);
        }
        let Some(next) = after.strip_prefix(',') else {
            let span = Span::new(start + text.len() - after.len(), start + text.len());
            return Err(Problem::new(Code::BAD_VALUE, span, "expected a comma between the values"));
        };
        rest = next;
    }
}
