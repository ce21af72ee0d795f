//! `column`: a declared column, and where its values come from.

use crate::annotation::args::Line;
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::spec::ColumnDecl;
use crate::annotation::tokens::{Value, quote_length};
use crate::annotation::type_text::check_type;
use crate::annotation::values::{read_column, read_column_of_asset};
use crate::asset::Asset;
use crate::diagnostic::Code;
use crate::source::{Located, Span};

pub const WORD: Word = Word {
    name: "column",
    aliases: &[],
    syntax: "column <name> [<type>] [not_null] [\"<description>\"] [<- <uri>.<column>, …]",
    doc: "Declares a column of the result. The declared columns document the asset, are checked exactly under `contract \
          enforced`, and make the empty table for the first run of a script that reads its own target. `<-` says where \
          the values come from, and overrides the inferred lineage. A name that is not a plain word stands in double \
          quotes.",
    example: "column order_id BIGINT not_null \"The shop's number\"\n\
              column total DECIMAL(10,2) <- ducklake://main/order_lines.amount\n\
              column address STRUCT(street VARCHAR, tags VARCHAR[])",
    options: &[],
    keywords: &[],
    repeats: Repeats::Freely,
    runtime: Runtime::Here,
    shape: &[Shape::Uri],
    parse,
};

const ARROW: &str = "<-";
const NOT_NULL: &str = "not_null";

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut reader = Reader { line, at: line.rest.start };
    let name = reader.read_name()?;
    if let Some(first) = draft.header.columns.iter().find(|known| known.value.name.eq_ignore_ascii_case(&name.value)) {
        let message = format!("the column `{}` is declared twice", name.value);
        return Err(Problem::new(Code::REPEATED_COLUMN, name.span, message)
            .with_help("keep one of the two lines")
            .with_label(first.span, "the first one, which counts"));
    }
    let mut column =
        ColumnDecl { name: name.value, data_type: None, not_null: false, description: None, sources: Vec::new() };
    // A column that is half wrong is still declared, so that the contract does not miss it as well.
    let result = reader.read_parts(&mut column);
    draft.header.columns.push(Located { value: column, span: line.span() });
    result
}

struct Reader<'l, 'a> {
    line: &'l Line<'a>,
    at: usize,
}

impl<'a> Reader<'_, 'a> {
    fn rest(&self) -> &'a str {
        &self.line.text[self.at..self.line.rest.end]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn read_name(&mut self) -> Result<Located<String>, Problem> {
        let rest = self.rest();
        if rest.is_empty() {
            return Err(self.line.missing("a name"));
        }
        let length = match rest.starts_with('"') {
            true => quote_length(rest).ok_or_else(|| self.unclosed())?,
            false => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        let value = Value::new(&rest[..length], self.at);
        self.at += length;
        read_column(&value)
    }

    fn read_parts(&mut self, column: &mut ColumnDecl) -> Result<(), Problem> {
        loop {
            self.skip_space();
            let rest = self.rest();
            if rest.is_empty() {
                return Ok(());
            } else if let Some(sources) = rest.strip_prefix(ARROW) {
                column.sources = self.read_sources(sources)?;
                return Ok(());
            } else if rest.starts_with('"') {
                self.read_description(column)?;
            } else if starts_with_word(rest, NOT_NULL) {
                self.at += NOT_NULL.len();
                column.not_null = true;
            } else {
                self.read_data_type(column)?;
            }
        }
    }

    fn read_description(&mut self, column: &mut ColumnDecl) -> Result<(), Problem> {
        let rest = self.rest();
        let length = quote_length(rest).ok_or_else(|| self.unclosed())?;
        let value = Value::new(&rest[..length], self.at);
        self.at += length;
        if column.description.is_some() {
            return Err(Problem::new(Code::UNEXPECTED_ARGUMENT, value.span, "a column has one description")
                .with_help("keep one of the two texts"));
        }
        column.description = Some(value.text.into_owned());
        Ok(())
    }

    fn read_data_type(&mut self, column: &mut ColumnDecl) -> Result<(), Problem> {
        let rest = self.rest();
        let data_type = rest[..type_length(rest)].trim_end();
        let span = Span::new(self.at, self.at + data_type.len());
        if data_type.to_ascii_lowercase().ends_with("not null") {
            let start = span.end - "not null".len();
            return Err(Problem::new(
                Code::BAD_VALUE,
                Span::new(start, span.end),
                "expected `not_null`, found `NOT NULL`",
            )
            .with_help("did you mean `not_null`?"));
        }
        if column.data_type.is_some() || column.not_null || column.description.is_some() {
            return Err(Problem::new(Code::UNEXPECTED_ARGUMENT, span, format!("unexpected `{data_type}`"))
                .with_help(format!("the order is `{}`", WORD.syntax)));
        }
        self.at = span.end;
        check_type(data_type, span.start)?;
        column.data_type = Some(data_type.to_owned());
        Ok(())
    }

    fn read_sources(&mut self, sources: &'a str) -> Result<Vec<(Asset, String)>, Problem> {
        let mut start = self.line.rest.end - sources.len();
        let mut columns = Vec::new();
        for source in sources.split(',') {
            let trimmed = source.trim();
            let at = start + source.len() - source.trim_start().len();
            start += source.len() + 1;
            if trimmed.is_empty() {
                let span = Span::new(self.at, self.line.rest.end);
                return Err(Problem::new(Code::MISSING_ARGUMENT, span, "`<-` needs `<uri>.<column>`")
                    .with_help("such as `<- ducklake://main/orders.amount`"));
            }
            columns.push(read_column_of_asset(&Value::new(trimmed, at))?);
        }
        Ok(columns)
    }

    fn unclosed(&self) -> Problem {
        let span = Span::new(self.at, self.line.rest.end);
        Problem::new(Code::UNTERMINATED_QUOTE, span, "the quote \" is never closed")
            .with_help("close it on the same line with \"")
    }
}

fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

/// Returns where the type at the start of `text` ends: before `not_null`, a description or `<-` outside brackets.
fn type_length(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            c if depth == 0 && (c == '"' || c == '<') => return at,
            c if depth == 0 && c.is_whitespace() && starts_with_word(text[at..].trim_start(), NOT_NULL) => return at,
            _ => {}
        }
    }
    text.len()
}
