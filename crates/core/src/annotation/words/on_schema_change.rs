//! `on_schema_change`: what happens when the query's columns differ from the table's.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::annotation::spec::SchemaPolicy;
use crate::annotation::tokens::Value;
use crate::annotation::values::read_choice;
use crate::diagnostic::Code;
use crate::source::Located;

pub const WORD: Word = Word {
    name: "on_schema_change",
    aliases: &[],
    syntax: "on_schema_change fail|append_new_columns|sync_all_columns|ignore",
    doc: "What a write does when the query's columns differ from the table's. `fail`, the default, writes nothing and \
          lists the differences. `append_new_columns` adds columns that the table lacks, and fails on any other \
          difference. `sync_all_columns` gives the table the shape of the query. `ignore` writes the columns that the \
          table has. Columns are matched by name, never by position. It may also stand on the `materialize` line, as \
          `on_schema_change=`; Windmill's `sync` means `sync_all_columns` and its `warn` means `ignore`.",
    example: "on_schema_change append_new_columns",
    options: &[],
    keywords: &["fail", "append_new_columns", "sync_all_columns", "ignore", "sync", "warn"],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[],
    parse,
};

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "a policy")?;
    let policy = read_policy(&value, draft)?;
    set_policy(Located { value: policy, span: line.span() }, draft)?;
    args.finish(line, draft);
    Ok(())
}

/// Reads a policy, with Windmill's two other words.
pub fn read_policy(value: &Value<'_>, draft: &mut Draft<'_>) -> Result<SchemaPolicy, Problem> {
    match &*value.text {
        "sync" => return Ok(SchemaPolicy::SyncAllColumns),
        "warn" => {
            let message = "`warn` is read as `ignore`: only columns that the table has are written";
            draft.report(
                Problem::new(Code::WINDMILL_IGNORED, value.span, message)
                    .with_help("write `ignore`, or `fail` to be stopped by a difference"),
            );
            return Ok(SchemaPolicy::Ignore);
        }
        _ => {}
    }
    let policies = [
        ("fail", SchemaPolicy::Fail),
        ("append_new_columns", SchemaPolicy::AppendNewColumns),
        ("sync_all_columns", SchemaPolicy::SyncAllColumns),
        ("ignore", SchemaPolicy::Ignore),
    ];
    read_choice(value, "a schema policy", &policies)
}

/// Sets the policy that the word or the option gives; the two may agree, not differ.
pub fn set_policy(policy: Located<SchemaPolicy>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    match &draft.schema_change {
        Some(earlier) if earlier.value != policy.value => {
            Err(Problem::new(Code::CONFLICTING_ANNOTATIONS, policy.span, "the policy on schema changes is given twice")
                .with_help("keep one of the two")
                .with_label(earlier.span, "here it is another one"))
        }
        _ => {
            draft.header.on_schema_change = policy.value;
            draft.schema_change = Some(policy);
            Ok(())
        }
    }
}
