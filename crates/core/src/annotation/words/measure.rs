//! `measure`: a named aggregate over the asset.

use crate::annotation::args::Line;
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::spec::Measure;
use crate::annotation::tokens::quote_length;
use crate::annotation::values::check_sql;
use crate::source::Located;

use super::dimension::split_definition;

pub const WORD: Word = Word {
    name: "measure",
    aliases: &[],
    syntax: "measure <name> = <aggregate> [where <condition>]",
    doc: "A named aggregate over the asset's rows, for `pintail metrics`. The condition limits the rows that count.",
    example: "measure revenue = sum(amount) where status = 'paid'",
    options: &[],
    keywords: &[],
    repeats: Repeats::Freely,
    runtime: Runtime::NotYet,
    shape: &[Shape::Assignment],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let definition = split_definition(line, "an aggregate")?;
    let (expression, filter) = match where_at(definition.expression) {
        Some(at) => {
            let filter = &definition.expression[at + "where".len()..];
            (definition.expression[..at].trim_end(), Some(filter))
        }
        None => (definition.expression, None),
    };
    if expression.is_empty() {
        return Err(line.missing("an aggregate"));
    }
    check_sql(expression, definition.expression_start)?;
    if let Some(filter) = filter {
        check_sql(filter, definition.expression_start + definition.expression.len() - filter.len())?;
    }
    let measure = Measure {
        name: definition.name,
        expression: expression.to_owned(),
        filter: filter.map(|filter| filter.trim().to_owned()),
    };
    draft.header.measures.push(Located { value: measure, span: line.span() });
    Ok(())
}

/// Returns where the word `where` stands outside quotes and parentheses, so that `count(*) FILTER (WHERE …)` has none.
fn where_at(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\'' | b'"' => at += quote_length(&text[at..]).unwrap_or(text.len() - at).saturating_sub(1),
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'w' | b'W' if depth == 0 && is_word_at(bytes, at, b"where") => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_word_at(bytes: &[u8], at: usize, word: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let starts = at == 0 || !is_part(&bytes[at - 1]);
    let matches = bytes[at..].get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
    starts && matches && !bytes.get(at + word.len()).is_some_and(is_part)
}
