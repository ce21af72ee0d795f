//! `unique_key`: the same as `key=` on the `materialize` line.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::annotation::values::read_columns;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "unique_key",
    aliases: &[],
    syntax: "unique_key a,b",
    doc: "The columns that identify a row: rows with the same key are replaced. The same as `key=` on the `materialize` \
          line.",
    example: "materialize ducklake://main/customers\nunique_key customer_id",
    options: &[],
    keywords: &[],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "columns")?;
    let columns = read_columns(&value)?;
    draft.column_uses.extend(columns.iter().cloned());
    let names = columns.into_iter().map(|column| column.value).collect();
    draft.unique_key = Some(Located { value: names, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
