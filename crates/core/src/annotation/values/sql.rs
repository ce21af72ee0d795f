//! SQL expressions inside annotations. They are sent inside a statement of ours, so one must not be able to end it:
//! quotes and parentheses are closed, and no `;` and no comment stands outside quotes. What the expression means is
//! for the engine.

use crate::annotation::draft::Problem;
use crate::annotation::tokens::Value;
use crate::diagnostic::Code;
use crate::source::Span;

/// Reads a value that is an SQL expression.
pub fn read_sql(value: &Value<'_>) -> Result<String, Problem> {
    check_sql(&value.text, value.text_start())?;
    Ok(value.text.clone().into_owned())
}

/// Checks that `text`, which stands at the offset `start`, is one closed SQL expression.
pub fn check_sql(text: &str, start: usize) -> Result<(), Problem> {
    let refuse = |from: usize, message: &str| {
        let span = Span::new(start + from, start + text.len().max(from + 1));
        Err(Problem::new(Code::BAD_SQL_FRAGMENT, span, message))
    };
    if text.trim().is_empty() {
        return Err(Problem::new(
            Code::BAD_SQL_FRAGMENT,
            Span::new(start, start + text.len()),
            "the expression is empty",
        ));
    }
    let bytes = text.as_bytes();
    let mut open = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'\'' | b'"') => match bytes[at + 1..].iter().position(|byte| *byte == quote) {
                Some(length) => at += length + 1,
                None => return refuse(at, "the quote is never closed"),
            },
            b'(' | b'[' | b'{' => open.push((bytes[at], at)),
            close @ (b')' | b']' | b'}') => match open.pop() {
                Some((opened, _)) if closes(opened, close) => {}
                _ => return refuse(at, "this bracket was never opened"),
            },
            b';' => return refuse(at, "`;` cannot stand in an expression"),
            b'-' if bytes.get(at + 1) == Some(&b'-') => return refuse(at, "a comment cannot stand in an expression"),
            b'/' if bytes.get(at + 1) == Some(&b'*') => return refuse(at, "a comment cannot stand in an expression"),
            _ => {}
        }
        at += 1;
    }
    match open.last() {
        Some((_, at)) => refuse(*at, "the bracket is never closed"),
        None => Ok(()),
    }
}

fn closes(open: u8, close: u8) -> bool {
    matches!((open, close), (b'(', b')') | (b'[', b']') | (b'{', b'}'))
}
