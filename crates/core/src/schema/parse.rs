//! The parser of DuckDB type texts, as DESCRIBE prints them and as people write them in `column` lines.
//!
//! Recursive descent over bytes; the depth of nesting is bounded, so that no text can exhaust the stack.

use thiserror::Error;

use super::data_type::{DataType, Field, Scalar};
use crate::diagnostic::nearest;
use crate::source::Span;

const DEEPEST: usize = 64;

/// A text that is no type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct TypeError {
    /// What is wrong, lower case, no full stop.
    pub message: String,
    /// Where in the type text.
    pub span: Span,
}

/// Parses the whole of `text`.
pub fn parse(text: &str) -> Result<DataType, TypeError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let data_type = parser.data_type()?;
    parser.skip_space();
    match parser.rest().chars().next() {
        None => Ok(data_type),
        Some(other) => Err(parser.error_here(format!("unexpected `{other}` after the type"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn data_type(&mut self) -> Result<DataType, TypeError> {
        self.depth += 1;
        if DEEPEST < self.depth {
            return Err(self.error_here(format!("the type is nested deeper than {DEEPEST}")));
        }
        let mut data_type = self.base()?;
        while self.take('[') {
            data_type = if self.take(']') {
                DataType::List(Box::new(data_type))
            } else {
                let size = self.number("a size")?;
                self.expect(']')?;
                DataType::Array(Box::new(data_type), size)
            };
        }
        self.depth -= 1;
        Ok(data_type)
    }

    fn base(&mut self) -> Result<DataType, TypeError> {
        self.skip_space();
        let start = self.at;
        let (word, quoted) = self.name("a type")?;
        if quoted && word != "NULL" {
            return Ok(DataType::Other(word.to_ascii_uppercase()));
        }
        let word = word.to_ascii_uppercase();
        match word.as_str() {
            "STRUCT" | "ROW" => Ok(DataType::Struct(self.fields()?)),
            "UNION" => Ok(DataType::Union(self.fields()?)),
            "MAP" => self.map(),
            "ENUM" => self.enumeration(),
            "DECIMAL" | "NUMERIC" | "DEC" => self.decimal(),
            "TIME" | "TIMESTAMP" => self.time(&word),
            "DOUBLE" => {
                self.take_word("PRECISION");
                Ok(DataType::Scalar(Scalar::Double))
            }
            "CHARACTER" => {
                self.take_word("VARYING");
                self.width()?;
                Ok(DataType::Scalar(Scalar::Varchar))
            }
            _ => self.scalar_or_other(word, start),
        }
    }

    fn scalar_or_other(&mut self, word: String, start: usize) -> Result<DataType, TypeError> {
        match Scalar::of_word(&word) {
            Some(Scalar::Varchar) => {
                self.width()?;
                Ok(DataType::Scalar(Scalar::Varchar))
            }
            // A geometry with its reference system is another type than one without.
            Some(scalar) if scalar != Scalar::Geometry || !self.rest().trim_start().starts_with('(') => {
                Ok(DataType::Scalar(scalar))
            }
            _ => self.other(word, start),
        }
    }

    /// A word that is no built-in type, with its parameters as written.
    fn other(&mut self, word: String, start: usize) -> Result<DataType, TypeError> {
        if let Some(near) = near_type(&word) {
            let span = Span::new(start, self.at);
            return Err(TypeError { message: format!("unknown type `{word}`; did you mean `{near}`?"), span });
        }
        if !self.take('(') {
            return Ok(DataType::Other(word));
        }
        let parameters = self.rest();
        let length = parameters.find(')').ok_or_else(|| self.error_here("expected `)`".into()))?;
        self.at += length + 1;
        Ok(DataType::Other(format!("{word}({})", parameters[..length].trim())))
    }

    fn decimal(&mut self) -> Result<DataType, TypeError> {
        let start = self.at;
        let (mut precision, mut scale) = (18, 3);
        if self.take('(') {
            precision = self.number("a precision")?;
            scale = if self.take(',') { self.number("a scale")? } else { 0 };
            self.expect(')')?;
        }
        if !(1..=38).contains(&precision) || precision < scale {
            let message = "DECIMAL takes a precision of 1 to 38 and a scale of at most the precision".to_owned();
            return Err(TypeError { message, span: Span::new(start, self.at) });
        }
        Ok(DataType::Decimal { precision: precision as u8, scale: scale as u8 })
    }

    fn time(&mut self, word: &str) -> Result<DataType, TypeError> {
        let precision = self.width()?;
        let zoned = if self.take_word("WITH") {
            self.zone_words()?;
            true
        } else {
            if self.take_word("WITHOUT") {
                self.zone_words()?;
            }
            false
        };
        Ok(DataType::Scalar(match (word, zoned, precision) {
            ("TIME", true, _) => Scalar::TimeTz,
            ("TIME", false, Some(7..)) => Scalar::TimeNs,
            ("TIME", false, _) => Scalar::Time,
            (_, true, _) => Scalar::TimestampTz,
            (_, false, Some(0)) => Scalar::TimestampS,
            (_, false, Some(1..=3)) => Scalar::TimestampMs,
            (_, false, Some(7..)) => Scalar::TimestampNs,
            (_, false, _) => Scalar::Timestamp,
        }))
    }

    fn zone_words(&mut self) -> Result<(), TypeError> {
        if self.take_word("TIME") && self.take_word("ZONE") {
            return Ok(());
        }
        Err(self.error_here("expected `TIME ZONE`".into()))
    }

    fn map(&mut self) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let key = self.data_type()?;
        self.expect(',')?;
        let value = self.data_type()?;
        self.expect(')')?;
        Ok(DataType::Map(Box::new(key), Box::new(value)))
    }

    fn enumeration(&mut self) -> Result<DataType, TypeError> {
        self.expect('(')?;
        let mut values = Vec::new();
        while !self.take(')') {
            if !values.is_empty() {
                self.expect(',')?;
            }
            self.expect('\'')?;
            values.push(self.quoted('\'')?);
        }
        Ok(DataType::Enum(values))
    }

    fn fields(&mut self) -> Result<Vec<Field>, TypeError> {
        self.expect('(')?;
        let mut fields = Vec::new();
        loop {
            self.skip_space();
            let (name, quoted) = self.name("a field name")?;
            fields.push(Field { name, quoted, data_type: self.data_type()? });
            if !self.take(',') {
                break;
            }
        }
        self.expect(')')?;
        Ok(fields)
    }

    /// A word or a quoted name, and whether it was quoted.
    fn name(&mut self, what: &str) -> Result<(String, bool), TypeError> {
        if self.take('"') {
            return Ok((self.quoted('"')?, true));
        }
        let rest = self.rest();
        let is_part = |letter: char| letter == '_' || letter == '.' || letter.is_alphanumeric();
        let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.error_here(format!("expected {what}")));
        }
        self.at += length;
        Ok((rest[..length].to_owned(), false))
    }

    /// The rest of a quoted text whose opening quote was taken; a doubled quote is one.
    fn quoted(&mut self, quote: char) -> Result<String, TypeError> {
        let mut value = String::new();
        loop {
            let rest = self.rest();
            let Some(length) = rest.find(quote) else {
                return Err(self.error_here(format!("expected a closing `{quote}`")));
            };
            value.push_str(&rest[..length]);
            self.at += length + 1;
            if !self.rest().starts_with(quote) {
                return Ok(value);
            }
            value.push(quote);
            self.at += 1;
        }
    }

    /// `(n)` after a type that may have one.
    fn width(&mut self) -> Result<Option<u32>, TypeError> {
        if !self.take('(') {
            return Ok(None);
        }
        let width = self.number("a number")?;
        self.expect(')')?;
        Ok(Some(width))
    }

    fn number(&mut self, what: &str) -> Result<u32, TypeError> {
        self.skip_space();
        let rest = self.rest();
        let length = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..length].parse() else { return Err(self.error_here(format!("expected {what}"))) };
        self.at += length;
        Ok(number)
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let rest = self.rest();
        let Some(found) = rest.get(..word.len()) else { return false };
        let ends = !rest[word.len()..].starts_with(|letter: char| letter == '_' || letter.is_alphanumeric());
        let matches = ends && found.eq_ignore_ascii_case(word);
        if matches {
            self.at += word.len();
        }
        matches
    }

    fn take(&mut self, expected: char) -> bool {
        self.skip_space();
        let matches = self.rest().starts_with(expected);
        if matches {
            self.at += expected.len_utf8();
        }
        matches
    }

    fn expect(&mut self, expected: char) -> Result<(), TypeError> {
        if self.take(expected) { Ok(()) } else { Err(self.error_here(format!("expected `{expected}`"))) }
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error_here(&self, message: String) -> TypeError {
        let width = self.rest().chars().next().map_or(0, char::len_utf8);
        TypeError { message, span: Span::new(self.at, self.at + width) }
    }
}

/// Returns the built-in type that `word` is probably a slip of; short words are left alone, they may be the user's own.
fn near_type(word: &str) -> Option<&'static str> {
    const COMMON: [&str; 17] = [
        "BOOLEAN",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "DOUBLE",
        "VARCHAR",
        "STRING",
        "DECIMAL",
        "NUMERIC",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        "INTERVAL",
        "STRUCT",
        "BLOB",
        "UUID",
        "DATE",
    ];
    if word.len() < 4 { None } else { nearest(word, COMMON) }
}
