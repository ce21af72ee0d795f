//! Joins what `materialize`, `unique_key`, `append` and `partitioned` say about the write, and refuses what does not go
//! together.

use crate::asset::Asset;
use crate::diagnostic::Code;
use crate::source::{Located, Span};

use super::draft::{Draft, Problem};
use super::spec::{Materialize, WriteStrategy};
use super::words::materialize::{MaterializeLine, Mode};

/// Turns the `materialize` line and its helpers into the header's [`Materialize`].
pub(super) fn fold_materialize(draft: &mut Draft<'_>) {
    let Some(mut line) = draft.materialize.take() else { return };
    take_helpers(&mut line, draft);
    check_target(&line, draft);
    check_options(&line, draft);
    check_partitions(&line, draft);
    let Some(strategy) = strategy(&line, draft) else { return };
    let span = line.span;
    let materialize = Materialize {
        strategy,
        if_changed: line.if_changed.is_some(),
        allow_empty: line.allow_empty.is_some(),
        on_delete: line.on_delete.map(|rule| rule.value),
        format: line.format.map(|format| format.value),
        partition_column: line.column.map(|column| column.value),
        target: line.target,
    };
    draft.header.materialize = Some(Located { value: materialize, span });
}

/// Moves `unique_key` and `append` onto the line.
fn take_helpers(line: &mut MaterializeLine, draft: &mut Draft<'_>) {
    if line.append.is_none() {
        line.append = draft.append;
    }
    let Some(unique_key) = draft.unique_key.take() else { return };
    match &line.key {
        None => line.key = Some(unique_key),
        Some(key) if same_columns(&key.value, &unique_key.value) => {}
        Some(key) => draft.report(
            Problem::new(Code::CONFLICTING_ANNOTATIONS, unique_key.span, "`unique_key` and `key=` name other columns")
                .with_help("keep one of the two")
                .with_label(key.span, "the key on the `materialize` line"),
        ),
    }
}

fn same_columns(left: &[String], right: &[String]) -> bool {
    left.len() == right.len() && left.iter().all(|column| right.iter().any(|other| other.eq_ignore_ascii_case(column)))
}

fn check_target(line: &MaterializeLine, draft: &mut Draft<'_>) {
    let span = line.target.span;
    match &line.target.value {
        Asset::Lake { .. } => {
            if let Some(format) = &line.format {
                let message = "`format=` has no meaning for a lake table";
                draft.report(Problem::new(Code::WINDMILL_IGNORED, format.span, message));
            }
            return;
        }
        Asset::Datatable { .. } => {}
        Asset::Volume { path, .. } | Asset::Object { key: path, .. } => check_file(line, path, draft),
    }
    if let Some(mode @ Located { value: Mode::History | Mode::View, .. }) = &line.mode {
        let message = format!("`{}` needs a lake table as its target", mode.value.word());
        draft.report(
            Problem::new(Code::OPTION_NOT_APPLICABLE, mode.span, message)
                .with_help("name a `ducklake://` table")
                .with_label(span, "the target"),
        );
    }
}

/// A file is written whole, as Parquet, one for the asset or one for each partition.
fn check_file(line: &MaterializeLine, path: &str, draft: &mut Draft<'_>) {
    if line.mode.as_ref().is_some_and(|mode| mode.value == Mode::Manual) {
        // A script in another language writes what it likes.
        return;
    }
    let span = line.target.span;
    let plain = path.replace("{partition}", "");
    if plain.contains(['*', '?', '[']) {
        draft.report(
            Problem::new(Code::BAD_VALUE, span, "a glob cannot be materialized")
                .with_help("name one file, or one per partition with `{partition}`"),
        );
    } else if !path.ends_with(".parquet") {
        draft.report(
            Problem::new(Code::TARGET_UNSUPPORTED, span, "only Parquet files are written")
                .with_help("end the name with `.parquet`"),
        );
    }
    if draft.place_of("partitioned").is_some() && !path.contains("{partition}") {
        draft.report(
            Problem::new(Code::TARGET_UNSUPPORTED, span, "every partition would write the same file")
                .with_help("put the partition into the name: `…/day={partition}/part.parquet`"),
        );
    }
    let rewritten = "a file is always written whole";
    let options = [("key=", line.key.as_ref().map(|key| key.span)), ("append", line.append)];
    for (name, option) in options {
        if let Some(option) = option {
            draft.report(
                Problem::new(Code::TARGET_UNSUPPORTED, option, format!("`{name}` does not apply: {rewritten}"))
                    .with_help(format!("remove `{name}`, or write a table: `ducklake://…`")),
            );
        }
    }
}

/// Refuses options that the way of writing has no use for.
fn check_options(line: &MaterializeLine, draft: &mut Draft<'_>) {
    let history_only: [(&str, Option<Span>); 3] = [
        ("track=", line.track.as_ref().map(|value| value.span)),
        ("updated_at=", line.updated_at.as_ref().map(|value| value.span)),
        ("deletes=", line.deletes.as_ref().map(|value| value.span)),
    ];
    let key = ("key=", line.key.as_ref().map(|key| key.span));
    let order_by = ("order_by=", line.order_by.as_ref().map(|order| order.span));
    let append = ("append", line.append);
    let if_changed = ("if_changed", line.if_changed);
    let allow_empty = ("allow_empty", line.allow_empty);
    match line.mode.as_ref().map(|mode| mode.value) {
        Some(Mode::History) => {
            refuse("`history`, which writes only what has changed anyway", &[if_changed], draft);
            refuse("`history`", &[append], draft);
            if !line.deletes.as_ref().is_some_and(|deletes| deletes.value) {
                refuse("`history` without `deletes=close`", &[allow_empty], draft);
            }
            if line.updated_at.is_some() {
                let [track, ..] = history_only;
                refuse("`history` with `updated_at=`, where every time is a version", &[track], draft);
            }
        }
        Some(Mode::View) => {
            refuse("a view", &[key, order_by, append, if_changed, allow_empty], draft);
            refuse("a view", &history_only, draft);
        }
        Some(Mode::Manual) => {
            refuse("`manual`", &[key, order_by, append, if_changed, allow_empty], draft);
            refuse("`manual`", &history_only, draft);
        }
        None => {
            refuse("a table without `history`", &history_only, draft);
            if line.append.is_some() {
                refuse("`append`", &[order_by, if_changed, allow_empty], draft);
            } else if line.key.is_none() {
                refuse("a table without `key=`", &[order_by], draft);
            }
        }
    }
}

fn refuse(what: &str, options: &[(&str, Option<Span>)], draft: &mut Draft<'_>) {
    for (name, span) in options {
        if let Some(span) = span {
            let message = format!("`{name}` does not apply to {what}");
            draft.report(
                Problem::new(Code::OPTION_NOT_APPLICABLE, *span, message).with_help(format!("remove `{name}`")),
            );
        }
    }
}

fn check_partitions(line: &MaterializeLine, draft: &mut Draft<'_>) {
    let partitioned = draft.place_of("partitioned");
    if let (Some(partitioned), Some(mode)) = (partitioned, &line.mode)
        && matches!(mode.value, Mode::History | Mode::View)
    {
        let message = format!("`materialize {}` cannot be partitioned", mode.value.word());
        draft.report(
            Problem::new(Code::NOT_PARTITIONABLE, partitioned, message)
                .with_help("remove `partitioned`, or materialize a plain table")
                .with_label(mode.span, "declared here"),
        );
    }
    if partitioned.is_some() {
        return;
    }
    if let Some(column) = &line.column {
        let message = "`column=` names the identity column of a partitioned table, and this one is not partitioned";
        draft.report(Problem::new(Code::OPTION_NOT_APPLICABLE, column.span, message).with_help("remove `column=`"));
    }
    if let Asset::Object { key: path, .. } | Asset::Volume { path, .. } = &line.target.value
        && path.contains("{partition}")
    {
        let message = "`{partition}` stands in the target of a script that is not partitioned";
        draft.report(
            Problem::new(Code::BAD_VALUE, line.target.span, message).with_help("add `partitioned daily`, for instance"),
        );
    }
}

/// Returns the strategy; `None` when the line lacks what its mode needs.
fn strategy(line: &MaterializeLine, draft: &mut Draft<'_>) -> Option<WriteStrategy> {
    match line.mode.as_ref().map(|mode| mode.value) {
        Some(Mode::View) => return Some(WriteStrategy::View),
        Some(Mode::Manual) => return Some(WriteStrategy::Manual),
        Some(Mode::History) => return history(line, draft),
        None => {}
    }
    if let Some(append) = line.append {
        if let Some(key) = &line.key {
            draft.report(
                Problem::new(Code::APPEND_IGNORES_KEY, key.span, "the key has no effect: `append` wins")
                    .with_help("remove `append` to replace rows with the same key, or remove the key")
                    .with_label(append, "`append` stands here"),
            );
        }
        return Some(WriteStrategy::Append);
    }
    Some(match &line.key {
        Some(key) => WriteStrategy::Merge {
            key: key.value.clone(),
            order_by: line.order_by.as_ref().map(|order| order.value.clone()),
        },
        None => WriteStrategy::Replace,
    })
}

fn history(line: &MaterializeLine, draft: &mut Draft<'_>) -> Option<WriteStrategy> {
    let Some(key) = &line.key else {
        draft.report(
            Problem::new(Code::MISSING_KEY, line.span, "`materialize history` needs a key")
                .with_help("add `key=` with the columns that identify a row"),
        );
        return None;
    };
    Some(WriteStrategy::History {
        key: key.value.clone(),
        track: line.track.as_ref().map(|track| track.value.clone()).unwrap_or_default(),
        updated_at: line.updated_at.as_ref().map(|column| column.value.clone()),
        close_deleted: line.deletes.as_ref().is_some_and(|deletes| deletes.value),
        order_by: line.order_by.as_ref().map(|order| order.value.clone()),
    })
}
