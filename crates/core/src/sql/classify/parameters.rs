//! `$name` and `{partition}`: which ones have a value in this script.

use super::ClassifyContext;
use crate::annotation::Header;
use crate::diagnostic::{Code, Diagnostic, Severity, nearest};
use crate::partition::PartitionSpec;
use crate::sql::body::{Parameter, ParsedBody};
use crate::sql::rewrite::builtin_parameters;

const IDENTITY: [&str; 2] = ["partition", "WM_PARTITION"];
const WINDOW: [&str; 4] = ["partition_start", "partition_end", "WM_PARTITION_START", "WM_PARTITION_END"];

/// Returns the names of the variables that the runner sets.
pub(super) fn step_variables() -> impl Iterator<Item = &'static str> {
    builtin_parameters()
}

/// Adds a diagnostic for each parameter and placeholder without a value.
pub(super) fn check_parameters(ctx: &ClassifyContext<'_>, body: &ParsedBody, found: &mut Vec<Diagnostic>) {
    for parameter in &body.parameters {
        if let Some((message, help)) = problem(ctx, parameter) {
            found.push(ctx.diagnostic(Code::SQL_UNKNOWN_PARAMETER, parameter.span, message).with_help(help));
        }
    }
    if ctx.header.partitioned.is_some() {
        return;
    }
    for placeholder in &body.placeholders {
        let mut diagnostic = ctx
            .diagnostic(
                Code::SQL_UNKNOWN_PARAMETER,
                *placeholder,
                "`{partition}` stays as it is: the script is not partitioned",
            )
            .with_help("declare the partitions: `-- partitioned daily`");
        diagnostic.severity = Severity::Warning;
        found.push(diagnostic);
    }
}

fn problem(ctx: &ClassifyContext<'_>, parameter: &Parameter) -> Option<(String, String)> {
    let name = parameter.name.as_str();
    let partitioned = ctx.header.partitioned.as_ref().map(|spec| &spec.value);
    let is_identity = IDENTITY.contains(&name);
    let is_window = WINDOW.contains(&name);
    match partitioned {
        None if is_identity || is_window => Some((
            format!("`${name}` has no value: the script is not partitioned"),
            "declare the partitions: `-- partitioned daily`".to_owned(),
        )),
        Some(PartitionSpec::Dynamic { key, .. }) if is_window && key.starts_with("$.") => Some((
            format!("`${name}` has no value: a partition from a payload has no window"),
            "use `$partition`, the value from the payload".to_owned(),
        )),
        _ => unknown(ctx, name),
    }
}

fn unknown(ctx: &ClassifyContext<'_>, name: &str) -> Option<(String, String)> {
    let mut known: Vec<&str> = builtin_parameters().collect();
    known.extend(ctx.vars.iter().map(String::as_str));
    if known.contains(&name) {
        return None;
    }
    let usual = known.iter().filter(|known| !known.starts_with("WM_") && has_value(ctx.header, known));
    let help = match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `${near}`?"),
        None => format!(
            "known parameters: {}; a variable of the project is declared in pintail.toml: `[vars]` `{name} = \"…\"`",
            usual.map(|known| format!("${known}")).collect::<Vec<_>>().join(", "),
        ),
    };
    Some((format!("unknown parameter `${name}`"), help))
}

fn has_value(header: &Header, name: &str) -> bool {
    header.partitioned.is_some() || !(IDENTITY.contains(&name) || WINDOW.contains(&name))
}
