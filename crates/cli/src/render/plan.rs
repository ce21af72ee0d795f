//! A plan: its steps in order with their reasons, what is up to date, and what else there would be to do.

use pintail_core::plan::{Hint, Plan, Step};
use pintail_core::sql::Statement;
use serde_json::{Value, json};

use super::table::{Align, listing};
use super::text::{count, or_dash, rfc3339, thousands};

/// Returns the steps as a list; dependencies are given by the numbers of steps.
pub fn steps(plan: &Plan) -> String {
    let is_partitioned = plan.steps.iter().any(|step| step.partition.is_some());
    let has_order = plan.steps.iter().any(|step| !step.depends_on.is_empty());
    let mut columns = vec![("#", Align::Right), ("script", Align::Left)];
    if is_partitioned {
        columns.push(("partition", Align::Left));
    }
    columns.extend([("strategy", Align::Left), ("why", Align::Left)]);
    if has_order {
        columns.push(("after", Align::Left));
    }
    let row = |(index, step): (usize, &Step)| {
        let mut row = vec![(index + 1).to_string(), step.name.to_string()];
        if is_partitioned {
            row.push(or_dash(step.partition.as_ref()));
        }
        row.extend([step.strategy.to_owned(), step.reason.to_string()]);
        if has_order {
            row.push(after(step));
        }
        row
    };
    listing(&columns, plan.steps.iter().enumerate().map(row).collect())
}

/// Returns the numbers of the steps before `step`; many are summed up.
fn after(step: &Step) -> String {
    match step.depends_on.as_slice() {
        [] => String::new(),
        few if few.len() <= 6 => few.iter().map(|index| format!("#{}", index + 1)).collect::<Vec<_>>().join(" "),
        many => format!("#{} … #{} ({})", many[0] + 1, many[many.len() - 1] + 1, count(many.len(), "step")),
    }
}

/// Returns the name of a step as messages give it: `orders_daily 2026-06-01`.
pub fn step_name(step: &Step) -> String {
    match &step.partition {
        Some(partition) => format!("{} {partition}", step.name),
        None => step.name.to_string(),
    }
}

/// Returns how much there is to do and how much is done.
pub fn totals(plan: &Plan) -> String {
    let steps = count(plan.steps.len(), "step");
    match plan.up_to_date {
        0 => format!("{steps} to do"),
        _ => format!("{steps} to do, {} up to date", thousands(plan.up_to_date as u64)),
    }
}

/// Returns one sentence for each script that reads another profile's tables.
pub fn deferred(plan: &Plan) -> Vec<String> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for read in &plan.deferred {
        match lines.last_mut().filter(|(script, _)| *script == read.script.as_str()) {
            Some((_, line)) => line.push_str(&format!(", {}", read.asset)),
            None => {
                let line = format!("`{}` reads from profile `{}`: {}", read.script, read.profile, read.asset);
                lines.push((read.script.as_str(), line));
            }
        }
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns a hint as a sentence with its command.
pub fn hint(hint: &Hint) -> String {
    let (script, missing, from, to) = match hint {
        Hint::Backfill { script, missing, from, to } => (script, missing, from, to),
        Hint::Unreachable { message } => return format!("{message}; what was remembered of it stands"),
        Hint::LeftOut { script, reason } => return format!("`{script}` is left out: {reason}"),
        Hint::UnwrittenUpstream { script, upstream, missing, first } => {
            return format!(
                "{} of `{upstream}`, which `{script}` reads here, {} never written (the first is {first}): the slices will \
                 lack those rows; `--select +{script}` writes both",
                count(usize::try_from(*missing).unwrap_or(usize::MAX), "partition"),
                if *missing == 1 { "was" } else { "were" }
            );
        }
        Hint::More { script, left, states } => {
            let states: Vec<&str> = states.iter().map(|state| state.word()).collect();
            return format!(
                "{} more slices of `{script}` are {}: the same command goes on with them",
                thousands(*left),
                states.join(" or ")
            );
        }
    };
    let command = format!("`pintail backfill {script} --missing`");
    match missing {
        1 => format!("the earlier partition {from} of `{script}` was never written: {command}"),
        _ => format!(
            "{} earlier partitions of `{script}` ({from} … {to}) were never written: {command}",
            thousands(*missing)
        ),
    }
}

/// Returns statements with their purposes, as a file of SQL that can be read and pasted.
pub fn statements(title: &str, statements: &[Statement]) -> String {
    let mut text = format!("-- {title}\n");
    for statement in statements {
        text.push_str(&format!("\n-- {}\n{};\n", statement.purpose, statement.sql.trim_end()));
    }
    text
}

/// Returns a step for machines.
pub fn step_json(index: usize, step: &Step) -> Value {
    json!({
        "step": index + 1,
        "script": step.name.as_str(),
        "asset": step.asset.as_ref().map(ToString::to_string),
        "partition": step.partition.as_ref().map(ToString::to_string),
        "window": step.window.map(|window| json!({"start": rfc3339(window.start), "end": rfc3339(window.end)})),
        "strategy": step.strategy,
        "reason": step.reason.to_string(),
        "after": step.depends_on.iter().map(|index| index + 1).collect::<Vec<_>>(),
    })
}

/// Returns a hint for machines.
pub fn hint_json(hint: &Hint) -> Value {
    let (script, missing, from, to) = match hint {
        Hint::Backfill { script, missing, from, to } => (script, missing, from, to),
        Hint::Unreachable { message } => return json!({"kind": "unreachable", "message": message}),
        Hint::LeftOut { script, reason } => {
            return json!({"kind": "left_out", "script": script.as_str(), "reason": reason});
        }
        Hint::UnwrittenUpstream { script, upstream, missing, first } => {
            return json!({
                "kind": "unwritten_upstream",
                "script": script.as_str(),
                "upstream": upstream.as_str(),
                "missing": missing,
                "first": first.as_str(),
            });
        }
        Hint::More { script, left, states } => {
            let states: Vec<&str> = states.iter().map(|state| state.word()).collect();
            return json!({"kind": "more", "script": script.as_str(), "left": left, "states": states});
        }
    };
    json!({
        "kind": "backfill",
        "script": script.as_str(),
        "missing": missing,
        "from": from.as_str(),
        "to": to.as_str(),
        "command": format!("pintail backfill {script} --missing"),
    })
}
