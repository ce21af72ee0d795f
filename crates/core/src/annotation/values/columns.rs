//! Column names and lists of them: `a,b`, `"Order Id",b`, or the whole list in quotes: `"a, b"`.

use crate::annotation::draft::Problem;
use crate::annotation::tokens::{Value, quote_length};
use crate::diagnostic::Code;
use crate::source::{Located, Span};

/// Reads a list of different columns.
pub fn read_columns(value: &Value<'_>) -> Result<Vec<Located<String>>, Problem> {
    // A quote around the whole is the option's when it holds a list, else the name's.
    let is_quoted_list = value.quoted && value.text.contains(',');
    let (text, start) = match is_quoted_list {
        true => (&*value.text, value.text_start()),
        false => (value.raw, value.span.start),
    };
    let mut columns: Vec<Located<String>> = Vec::new();
    for (item, at) in split_commas(text) {
        let column = read_name(item, start + at, value.span)?;
        if let Some(first) = columns.iter().find(|known| known.value.eq_ignore_ascii_case(&column.value)) {
            return Err(Problem::new(Code::REPEATED_COLUMN, column.span, format!("`{}` is named twice", column.value))
                .with_help("name each column once")
                .with_label(first.span, "here first"));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Reads one column.
pub fn read_column(value: &Value<'_>) -> Result<Located<String>, Problem> {
    let columns = read_columns(value)?;
    match <[Located<String>; 1]>::try_from(columns) {
        Ok([column]) => Ok(column),
        Err(columns) => {
            let message = format!("expected one column, found {}", columns.len());
            Err(Problem::new(Code::BAD_COLUMN_NAME, value.span, message))
        }
    }
}

fn split_commas(text: &str) -> Vec<(&str, usize)> {
    let mut items = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '"' => at += quote_length(&text[at..]).unwrap_or(text.len() - at),
            ',' => {
                items.push((&text[start..at], start));
                at += 1;
                start = at;
            }
            _ => at += c.len_utf8(),
        }
    }
    items.push((&text[start..], start));
    items
}

fn read_name(item: &str, start: usize, whole: Span) -> Result<Located<String>, Problem> {
    let name = item.trim();
    let start = start + item.len() - item.trim_start().len();
    let span = Span::new(start, start + name.len());
    if name.is_empty() {
        return Err(Problem::new(Code::BAD_COLUMN_NAME, whole, "a column's name is missing between the commas")
            .with_help("write the list without white space: `a,b`"));
    }
    if name.starts_with('"') && quote_length(name) == Some(name.len()) {
        let unquoted = name[1..name.len() - 1].replace("\"\"", "\"");
        return match unquoted.is_empty() {
            true => Err(Problem::new(Code::BAD_COLUMN_NAME, span, "a column's name is empty")),
            false => Ok(Located { value: unquoted, span }),
        };
    }
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    if let Some(stranger) = name.chars().find(|c| !is_plain(*c)) {
        let message = format!("`{stranger}` cannot stand in a plain column name");
        return Err(Problem::new(Code::BAD_COLUMN_NAME, span, message)
            .with_help(format!("quote the name: `\"{}\"`", name.replace('"', ""))));
    }
    Ok(Located { value: name.to_owned(), span })
}
