//! `dimension`: a named expression that measures are grouped by.

use crate::annotation::args::Line;
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Shape, Word};
use crate::annotation::spec::Dimension;
use crate::annotation::tokens::{Token, Value};
use crate::annotation::values::{check_sql, read_column};
use crate::source::{Located, Span};

pub const WORD: Word = Word {
    name: "dimension",
    aliases: &[],
    syntax: "dimension <name> = <expression>",
    doc: "A named expression over the asset's rows, by which `pintail metrics` groups measures.",
    example: "dimension month = date_trunc('month', ordered_at)",
    options: &[],
    keywords: &[],
    repeats: Repeats::Freely,
    runtime: Runtime::NotYet,
    shape: &[Shape::Assignment],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let definition = split_definition(line, "an expression")?;
    check_sql(definition.expression, definition.expression_start)?;
    let dimension = Dimension { name: definition.name, expression: definition.expression.to_owned() };
    draft.header.dimensions.push(Located { value: dimension, span: line.span() });
    Ok(())
}

/// `<name> = <expression>`, split.
pub struct Definition<'a> {
    pub name: String,
    pub expression: &'a str,
    pub expression_start: usize,
}

/// Splits a definition at its first `=`; `what` names the right side.
pub fn split_definition<'a>(line: &Line<'a>, what: &str) -> Result<Definition<'a>, Problem> {
    let Some((name, expression)) = line.rest_text().split_once('=') else {
        return Err(line.missing("`<name> = …`"));
    };
    let expression_start = line.rest.end - expression.trim_start().len();
    let (name, expression) = (name.trim(), expression.trim());
    if name.is_empty() {
        return Err(line.missing("a name before `=`"));
    }
    if expression.is_empty() {
        return Err(line.missing(what));
    }
    let span = Span::new(line.rest.start, line.rest.start + name.len());
    let name: Value<'_> = Token { raw: name, span }.value();
    Ok(Definition { name: read_column(&name)?.value, expression, expression_start })
}
