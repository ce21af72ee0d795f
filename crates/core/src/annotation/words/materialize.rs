//! `materialize`: the target of the script and how it is written.
//!
//! The line is only read here; [`fold`](crate::annotation::fold) joins it with `unique_key` and `append` and decides the
//! strategy.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{OptionSpec, Repeats, Runtime, Shape, Word};
use crate::annotation::spec::OnDelete;
use crate::annotation::tokens::{Token, Value};
use crate::annotation::values::{check_sql, read_asset_or_named, read_choice, read_column, read_columns};
use crate::asset::Asset;
use crate::diagnostic::Code;
use crate::source::{Located, Span};

use super::on_schema_change::{read_policy, set_policy};

pub const WORD: Word = Word {
    name: "materialize",
    aliases: &[],
    syntax: "materialize <uri> [key=a,b [order_by=\"<column> desc\"]] [append] [if_changed] [allow_empty]\n\
             materialize history <uri> key=a,b [track=c,d | updated_at=<column>] [deletes=close [allow_empty]]\n\
             materialize view <uri>\n\
             materialize manual <uri>",
    doc: "The table that the script makes. Without a key the query's rows replace the table, or the slice of the \
          partition; with `key=` they replace the rows with the same keys; with `append` they are added. `history` keeps \
          every version of a row with the time in which it was valid; `if_changed` writes only the rows that differ, and \
          nothing at all when none does; `view` makes a view, and `manual` leaves the writing to the script's own statements. \
          `ducklake` alone means the table of the default lake that has the script's name. Windmill's spellings (`scd2` \
          for `history`, the words in any order) are accepted.",
    example: "materialize ducklake://main/orders_daily key=order_id order_by=\"updated_at desc\"",
    options: &[
        OptionSpec {
            name: "key",
            value: "a,b",
            doc: "The columns that identify a row. NULLs are compared like values.",
        },
        OptionSpec {
            name: "order_by",
            value: "\"<column> desc\"",
            doc: "With `key=`: which of several rows with one key is kept, the first in this order. With `updated_at=`: \
                  which of several rows with one key and time.",
        },
        OptionSpec {
            name: "on_delete",
            value: "delete|ignore",
            doc: "With `stream` and `key=`: whether a row whose last change is a delete goes from the table too; `ignore` when \
                  absent.",
        },
        OptionSpec {
            name: "on_schema_change",
            value: "<policy>",
            doc: "The same as the annotation `on_schema_change`.",
        },
        OptionSpec {
            name: "track",
            value: "a,b",
            doc: "With `history`: the columns whose change begins a version; all but the key when absent.",
        },
        OptionSpec {
            name: "updated_at",
            value: "<column>",
            doc: "With `history`: the column that says when a row changed. Versions begin at these times, and late rows \
                  are placed by them.",
        },
        OptionSpec {
            name: "deletes",
            value: "close|ignore",
            doc: "With `history`: whether a row whose key is gone from the query, which must then read everything, is \
                  closed; `ignore` when absent.",
        },
        OptionSpec {
            name: "column",
            value: "<name>",
            doc: "The name of the identity column of a partitioned table; `_partition` when absent.",
        },
        OptionSpec { name: "format", value: "<format>", doc: "The file format of an object." },
    ],
    keywords: &["manual", "history", "scd2", "view", "append", "if_changed", "allow_empty"],
    repeats: Repeats::Once,
    runtime: Runtime::Here,
    shape: &[Shape::Uri],
    parse,
};

/// What one `materialize` line says, each part with its place.
#[derive(Debug)]
pub struct MaterializeLine {
    pub span: Span,
    pub target: Located<Asset>,
    pub mode: Option<Located<Mode>>,
    pub append: Option<Span>,
    pub if_changed: Option<Span>,
    pub allow_empty: Option<Span>,
    pub key: Option<Located<Vec<String>>>,
    pub order_by: Option<Located<String>>,
    pub track: Option<Located<Vec<String>>>,
    pub updated_at: Option<Located<String>>,
    pub deletes: Option<Located<bool>>,
    pub on_delete: Option<Located<OnDelete>>,
    pub column: Option<Located<String>>,
    pub format: Option<Located<String>>,
}

/// The word that chooses another way of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Manual,
    History,
    View,
}

impl Mode {
    /// Returns the word as it is written.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Manual => "manual",
            Mode::History => "history",
            Mode::View => "view",
        }
    }
}

/// The words of the line that are no options.
#[derive(Default)]
struct Words<'a> {
    target: Option<Value<'a>>,
    mode: Option<Located<Mode>>,
    append: Option<Span>,
    if_changed: Option<Span>,
    allow_empty: Option<Span>,
}

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let tokens = line.tokens()?;
    let (tokens, order_by) = take_order_by(line.text, &tokens, draft);
    let mut args = Args::from_tokens(line, &tokens, WORD.options, draft);
    let words = read_words(line, args.rest(), draft);
    let key = args.option_as("key", draft, read_columns).map(|columns| take_columns(columns, draft));
    let track = args.option_as("track", draft, read_columns).map(|columns| take_columns(columns, draft));
    let updated_at = args.option_as("updated_at", draft, read_column);
    draft.column_uses.extend(updated_at.clone());
    let deletes = args.option_as("deletes", draft, |value| {
        let close = read_choice(value, "a rule for deleted rows", &[("close", true), ("ignore", false)])?;
        Ok(Located { value: close, span: value.span })
    });
    let on_delete = args.option_as("on_delete", draft, |value| {
        let rules = [("delete", OnDelete::Delete), ("ignore", OnDelete::Ignore)];
        Ok(Located { value: read_choice(value, "a rule for deleted rows", &rules)?, span: value.span })
    });
    let column = args.option_as("column", draft, read_column);
    let format = args.option("format").map(|value| Located { value: value.text.into_owned(), span: value.span });
    read_schema_policy(&mut args, draft);

    let target = words.target.ok_or_else(|| line.missing("the URI of its target"))?;
    let asset = read_asset_or_named(&target, draft.default_table)?;
    draft.materialize = Some(MaterializeLine {
        span: line.span(),
        target: Located { value: asset, span: target.span },
        mode: words.mode,
        append: words.append,
        if_changed: words.if_changed,
        allow_empty: words.allow_empty,
        key,
        order_by,
        track,
        updated_at,
        deletes,
        on_delete,
        column,
        format,
    });
    Ok(())
}

/// Takes `order_by=` with its direction out of the tokens, since `order_by=a desc` is written without quotes too.
fn take_order_by<'a>(
    text: &str,
    tokens: &[Token<'a>],
    draft: &mut Draft<'_>,
) -> (Vec<Token<'a>>, Option<Located<String>>) {
    let is_order_by = |token: &Token<'_>| {
        token.as_option().is_some_and(|(name, value)| name.raw == "order_by" && !value.raw.is_empty())
    };
    let Some(at) = tokens.iter().position(is_order_by) else { return (tokens.to_vec(), None) };
    let (_, value) = tokens[at].as_option().expect("the position is an option's");
    let is_direction = |token: &&Token<'_>| {
        let word = token.raw.trim_end_matches(',').to_ascii_lowercase();
        matches!(word.as_str(), "asc" | "desc" | "nulls" | "first" | "last")
    };
    let directions = if value.quoted { 0 } else { tokens[at + 1..].iter().take_while(is_direction).count() };
    let end = tokens[at + directions].span.end;
    let (order, start) = match value.quoted {
        true => (value.text.clone().into_owned(), value.text_start()),
        false => (text[value.span.start..end].to_owned(), value.span.start),
    };
    let others = tokens[..at].iter().chain(&tokens[at + directions + 1..]).copied().collect();
    let order_by =
        draft.keep(check_sql(&order, start)).map(|()| Located { value: order, span: Span::new(value.span.start, end) });
    (others, order_by)
}

fn take_columns(columns: Vec<Located<String>>, draft: &mut Draft<'_>) -> Located<Vec<String>> {
    let start = columns.first().map_or(0, |column| column.span.start);
    let end = columns.last().map_or(0, |column| column.span.end);
    draft.column_uses.extend(columns.iter().cloned());
    Located { value: columns.into_iter().map(|column| column.value).collect(), span: Span::new(start, end) }
}

fn read_schema_policy(args: &mut Args<'_>, draft: &mut Draft<'_>) {
    let Some(value) = args.option("on_schema_change") else { return };
    let policy = read_policy(&value, draft);
    let Some(policy) = draft.keep(policy) else { return };
    let result = set_policy(Located { value: policy, span: value.span }, draft);
    draft.keep(result);
}

fn read_words<'a>(line: &Line<'_>, values: impl Iterator<Item = Value<'a>>, draft: &mut Draft<'_>) -> Words<'a> {
    let mut words = Words::default();
    for value in values {
        match value.raw {
            "manual" => set_mode(&mut words, Mode::Manual, value.span, draft),
            "history" | "scd2" => set_mode(&mut words, Mode::History, value.span, draft),
            "view" => set_mode(&mut words, Mode::View, value.span, draft),
            "append" => words.append = Some(value.span),
            "if_changed" => words.if_changed = Some(value.span),
            "allow_empty" => words.allow_empty = Some(value.span),
            "replace" | "merge" => draft.report(strategy_word(&value)),
            _ if words.target.is_none() => words.target = Some(value),
            _ => draft.report(line.unexpected(&value)),
        }
    }
    words
}

fn set_mode(words: &mut Words<'_>, mode: Mode, span: Span, draft: &mut Draft<'_>) {
    match &words.mode {
        // Windmill writes `scd2 history` for one thing.
        Some(first) if first.value == mode => {}
        Some(first) => {
            let message = format!("`{}` and `{}` exclude each other", first.value.word(), mode.word());
            draft.report(
                Problem::new(Code::CONFLICTING_ANNOTATIONS, span, message)
                    .with_help("keep one of the two")
                    .with_label(first.span, "the first one, which counts"),
            );
        }
        None => words.mode = Some(Located { value: mode, span }),
    }
}

fn strategy_word(value: &Value<'_>) -> Problem {
    let help = match value.raw {
        "merge" => "give the key: `key=a,b`",
        _ => "remove it: without a key and `append`, the table or slice is replaced",
    };
    Problem::new(Code::UNEXPECTED_ARGUMENT, value.span, format!("`{}` is not written", value.raw)).with_help(help)
}
