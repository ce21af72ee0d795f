//! Checks the text of a declared column type: the names of types, nested to any depth, with balanced brackets.
//!
//! The type itself stays as written; only the engine knows what it means in full. Checking names here gives a typo its
//! place, and keeps an unquoted description from being taken for a type.

use crate::diagnostic::{Code, nearest};
use crate::source::Span;

use super::draft::Problem;
use super::tokens::quote_length;

/// Types that a lake can hold, with their common other names. Several words are one name.
const TYPES: [&str; 48] = [
    "BIGINT",
    "BINARY",
    "BLOB",
    "BOOL",
    "BOOLEAN",
    "BPCHAR",
    "BYTEA",
    "CHAR",
    "DATE",
    "DATETIME",
    "DECIMAL",
    "DOUBLE",
    "DOUBLE PRECISION",
    "FLOAT",
    "FLOAT4",
    "FLOAT8",
    "GEOMETRY",
    "INT",
    "INT1",
    "INT2",
    "INT4",
    "INT8",
    "INTEGER",
    "INTERVAL",
    "JSON",
    "LONG",
    "NUMERIC",
    "REAL",
    "SHORT",
    "SIGNED",
    "SMALLINT",
    "STRING",
    "TEXT",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMPTZ",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP_S",
    "TIMETZ",
    "TINYINT",
    "UBIGINT",
    "UINTEGER",
    "USMALLINT",
    "UTINYINT",
    "UUID",
    "VARCHAR",
];

/// Types that DuckDB has and a lake has not, with what to declare instead.
const NOT_IN_A_LAKE: [(&str, &str); 7] = [
    ("HUGEINT", "DECIMAL(38,0)"),
    ("UHUGEINT", "DECIMAL(38,0)"),
    ("BIT", "VARCHAR"),
    ("ENUM", "VARCHAR"),
    ("UNION", "STRUCT"),
    ("BIGNUM", "VARCHAR"),
    ("BITSTRING", "VARCHAR"),
];

/// Checks the type `text` that stands at the offset `start`.
pub(super) fn check_type(text: &str, start: usize) -> Result<(), Problem> {
    let mut reader = Reader { text, start, at: 0 };
    reader.read_type()?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.problem(reader.at, text.len(), "unexpected text after the type"));
    }
    Ok(())
}

struct Reader<'a> {
    text: &'a str,
    start: usize,
    at: usize,
}

impl<'a> Reader<'a> {
    fn read_type(&mut self) -> Result<(), Problem> {
        self.skip_space();
        let name_start = self.at;
        let name = self.read_words();
        match name.to_ascii_uppercase().as_str() {
            "" => return Err(self.problem(name_start, self.text.len().min(name_start + 1), "a type is missing")),
            "STRUCT" | "ROW" => self.read_list(Self::read_field)?,
            "MAP" => self.read_list(Self::read_type)?,
            "DECIMAL" | "NUMERIC" | "VARCHAR" | "CHAR" | "BPCHAR" | "TIMESTAMP" | "FLOAT" => self.read_parameters()?,
            _ => {}
        }
        self.check_name(name, name_start)?;
        self.read_suffixes()
    }

    /// Reads one or more words that together are a name: `TIMESTAMP WITH TIME ZONE`.
    fn read_words(&mut self) -> &'a str {
        let start = self.at;
        let mut end = self.at;
        loop {
            let rest = &self.text[self.at..];
            let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            if word == 0 {
                break;
            }
            self.at += word;
            end = self.at;
            self.skip_space();
        }
        self.at = end;
        &self.text[start..end]
    }

    fn check_name(&self, name: &str, start: usize) -> Result<(), Problem> {
        let upper = name.to_ascii_uppercase();
        if TYPES.contains(&upper.as_str()) || matches!(upper.as_str(), "STRUCT" | "ROW" | "MAP") {
            return Ok(());
        }
        if let Some((_, instead)) = NOT_IN_A_LAKE.iter().find(|(known, _)| *known == upper) {
            let problem = self.problem(start, start + name.len(), &format!("a lake cannot hold `{name}`"));
            return Err(problem.with_help(format!("declare `{instead}`")));
        }
        let first = upper.split_whitespace().next().unwrap_or(&upper);
        let problem = self.problem(start, start + name.len(), &format!("unknown type `{name}`"));
        Err(match nearest(&upper, TYPES).or_else(|| nearest(first, TYPES)) {
            Some(near) => problem.with_help(format!("did you mean `{near}`?")),
            None => problem.with_help("a description stands in double quotes: `column amount \"what it holds\"`"),
        })
    }

    /// Reads `( item, item, … )`.
    fn read_list(&mut self, item: fn(&mut Self) -> Result<(), Problem>) -> Result<(), Problem> {
        self.skip_space();
        let open = self.at;
        if !self.eat('(') {
            return Err(self.problem(open, self.text.len().min(open + 1), "`(` is missing after the type"));
        }
        loop {
            item(self)?;
            self.skip_space();
            if self.eat(')') {
                return Ok(());
            }
            if !self.eat(',') {
                return Err(self.problem(open, self.text.len(), "the parenthesis is never closed"));
            }
        }
    }

    /// Reads `name type` of a STRUCT.
    fn read_field(&mut self) -> Result<(), Problem> {
        self.skip_space();
        let start = self.at;
        let rest = &self.text[start..];
        if rest.starts_with('"') {
            match quote_length(rest) {
                Some(length) => self.at += length,
                None => return Err(self.problem(start, self.text.len(), "the quote is never closed")),
            }
        } else {
            self.at += rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        }
        if self.at == start {
            return Err(self.problem(start, self.text.len().min(start + 1), "a field's name is missing"));
        }
        self.read_type()
    }

    /// Reads `(10)` or `(10, 2)` when it is there.
    fn read_parameters(&mut self) -> Result<(), Problem> {
        self.skip_space();
        let open = self.at;
        if !self.eat('(') {
            return Ok(());
        }
        let Some(length) = self.text[self.at..].find(')') else {
            return Err(self.problem(open, self.text.len(), "the parenthesis is never closed"));
        };
        let inner = &self.text[self.at..self.at + length];
        let are_numbers = inner.split(',').all(|number| number.trim().parse::<u32>().is_ok());
        if !are_numbers {
            return Err(self.problem(self.at, self.at + length, "the parameters of a type are whole numbers"));
        }
        self.at += length + 1;
        // `TIMESTAMP(3) WITH TIME ZONE` is one type; the words after the parameters belong to it.
        let rest = self.text[self.at..].trim_start();
        let zone = "WITH TIME ZONE";
        if rest.get(..zone.len()).is_some_and(|words| words.eq_ignore_ascii_case(zone)) {
            self.at = self.text.len() - rest.len() + zone.len();
        }
        Ok(())
    }

    /// Reads `[]` and `[3]`, as often as they stand.
    fn read_suffixes(&mut self) -> Result<(), Problem> {
        loop {
            self.skip_space();
            let open = self.at;
            if !self.eat('[') {
                return Ok(());
            }
            let Some(length) = self.text[self.at..].find(']') else {
                return Err(self.problem(open, self.text.len(), "the bracket is never closed"));
            };
            let size = self.text[self.at..self.at + length].trim();
            if !size.is_empty() {
                let problem = self.problem(open, self.at + length + 1, "a lake cannot hold arrays of a fixed size");
                return Err(problem.with_help("declare a list: `[]`"));
            }
            self.at += length + 1;
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.text[self.at..].starts_with(c);
        self.at += if found { c.len_utf8() } else { 0 };
        found
    }

    fn problem(&self, from: usize, to: usize, message: &str) -> Problem {
        let span = if from < to { Span::new(from, to) } else { Span::new(0, self.text.len()) };
        Problem::new(Code::UNKNOWN_TYPE, span.shifted(self.start), message)
    }
}
