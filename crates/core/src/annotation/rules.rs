//! Rules between lines of one header. What needs other files (unknown scripts, cycles) is for the graph.

use crate::asset::Asset;
use crate::diagnostic::Code;
use crate::partition::PartitionSpec;
use crate::source::{Language, Located, Span};

use super::draft::{Draft, Problem};
use super::spec::{Mute, Trigger, WriteStrategy};

/// Checks every rule that needs more than one line.
pub(super) fn check_lines_together(draft: &mut Draft<'_>, language: Language) {
    check_needs_materialize(draft, language);
    check_schema_policy(draft);
    check_contract(draft);
    check_slice_scopes(draft);
    check_own_target(draft);
    settle_retention(draft);
    check_mutes(draft);
    check_macro_library(draft);
}

/// Scripts in other languages may write through their helper library, so only SQL scripts need the line.
fn check_needs_materialize(draft: &mut Draft<'_>, language: Language) {
    let is_sql = matches!(language, Language::DuckDbSql | Language::PostgresSql);
    if !is_sql || draft.place_of("materialize").is_some() {
        return;
    }
    // The word that is not known may be the one that is missing.
    if draft.diagnostics.iter().any(|diagnostic| diagnostic.code == Code::UNKNOWN_ANNOTATION) {
        return;
    }
    for word in ["partitioned", "unique_key", "append", "on_schema_change", "contract", "test", "stream"] {
        if let Some(span) = draft.place_of(word) {
            let message = format!("`{word}` has no effect: the script materializes nothing");
            draft.report(
                Problem::new(Code::NO_EFFECT, span, message)
                    .with_help(format!("add `materialize ducklake://main/{}`", draft.default_table)),
            );
        }
    }
}

/// A view takes the shape of its query, and a manual script shapes its table itself.
fn check_schema_policy(draft: &mut Draft<'_>) {
    let (Some(policy), Some(materialize)) = (draft.place_of("on_schema_change"), &draft.header.materialize) else {
        return;
    };
    let reason = match materialize.value.strategy {
        WriteStrategy::View => "a view always has the columns of its query",
        WriteStrategy::Manual => "a manual script shapes its table itself",
        _ => return,
    };
    let message = format!("`on_schema_change` has no effect: {reason}");
    draft.report(
        Problem::new(Code::NO_EFFECT, policy, message)
            .with_help("remove it; `contract enforced` with `column` lines refuses other columns"),
    );
}

fn check_contract(draft: &mut Draft<'_>) {
    let Some(contract) = draft.header.contract_enforced else { return };
    if draft.header.columns.is_empty() {
        draft.report(
            Problem::new(Code::CONTRACT_WITHOUT_COLUMNS, contract, "the contract declares no columns")
                .with_help("add a line per column: `column <name> <type>`"),
        );
        return;
    }
    let declared: Vec<&str> = draft.header.columns.iter().map(|column| column.value.name.as_str()).collect();
    let undeclared: Vec<Problem> = draft
        .column_uses
        .iter()
        .filter(|used| !declared.iter().any(|name| name.eq_ignore_ascii_case(&used.value)))
        .map(|used| {
            let message = format!("the contract declares no column `{}`", used.value);
            let problem = Problem::new(Code::UNDECLARED_COLUMN, used.span, message)
                .with_label(contract, "the contract is enforced");
            match crate::diagnostic::nearest(&used.value, declared.iter().copied()) {
                Some(near) => problem.with_help(format!("did you mean `{near}`?")),
                None => problem.with_help(format!("add `column {} <type>`", used.value)),
            }
        })
        .collect();
    for problem in undeclared {
        draft.report(problem);
    }
}

fn check_slice_scopes(draft: &mut Draft<'_>) {
    if draft.place_of("partitioned").is_some() {
        return;
    }
    for span in std::mem::take(&mut draft.slice_scopes) {
        draft.report(
            Problem::new(Code::OPTION_NOT_APPLICABLE, span, "`scope=slice` needs a partitioned script")
                .with_help("remove `scope=slice`: the test is about the whole table"),
        );
    }
}

/// Retention is about slices of time in a table of a lake; there it becomes a part of the partitions.
fn settle_retention(draft: &mut Draft<'_>) {
    let Some(Located { value: retention, span }) = draft.header.retention else { return };
    let is_in_lake = draft.header.materialize.as_ref().is_some_and(|made| made.value.target.value.lake().is_some());
    if let (true, Some(Located { value: PartitionSpec::Time(spec), .. })) = (is_in_lake, &mut draft.header.partitioned)
    {
        spec.retention = Some(retention);
        return;
    }
    // What is missing altogether is told elsewhere.
    let problem = match is_in_lake {
        true => Problem::new(Code::OPTION_NOT_APPLICABLE, span, "`retention` needs partitions of time")
            .with_help("add `partitioned daily`, or delete old rows in the query"),
        false => Problem::new(Code::OPTION_NOT_APPLICABLE, span, "`retention` is about tables of a lake")
            .with_help("remove it; what lies elsewhere is looked after there"),
    };
    draft.report(problem);
}

/// A script that ran on its own target would run for ever.
fn check_own_target(draft: &mut Draft<'_>) {
    let Some(materialize) = &draft.header.materialize else { return };
    let target = &materialize.value.target;
    let own = upstreams(draft).find(|(asset, _)| *asset == &target.value).map(|(_, span)| span);
    if let Some(span) = own {
        let label = target.span;
        draft.report(
            Problem::new(Code::CONFLICTING_ANNOTATIONS, span, "the script would start itself")
                .with_help("remove the `on` line; a script may read its own target without it")
                .with_label(label, "the target of the script"),
        );
    }
}

fn check_mutes(draft: &mut Draft<'_>) {
    let contradictions: Vec<(Span, Span)> = upstreams(draft)
        .filter_map(|(asset, span)| {
            let mute = draft.header.mutes.iter().find(|mute| mute.value == Mute::Asset(asset.clone()))?;
            Some((mute.span, span))
        })
        .collect();
    for (mute, on) in contradictions {
        draft.report(
            Problem::new(Code::CONFLICTING_ANNOTATIONS, mute, "the read is muted and awaited")
                .with_help("keep `mute` or `on`")
                .with_label(on, "awaited here"),
        );
    }
}

fn check_macro_library(draft: &mut Draft<'_>) {
    let (Some(macros), Some(materialize)) = (draft.header.macros, draft.place_of("materialize")) else { return };
    draft.report(
        Problem::new(Code::CONFLICTING_ANNOTATIONS, materialize, "a macro library materializes nothing")
            .with_help("move the macros into a file of their own")
            .with_label(macros, "declared a macro library here"),
    );
}

fn upstreams<'d>(draft: &'d Draft<'_>) -> impl Iterator<Item = (&'d Asset, Span)> {
    draft.header.triggers.iter().filter_map(|trigger| match &trigger.value {
        Trigger::Asset { asset, .. } => Some((asset, trigger.span)),
        Trigger::Schedule { .. } | Trigger::Event { .. } => None,
    })
}
