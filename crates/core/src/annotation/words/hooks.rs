//! `pre_run`, `on_success`, `on_failure`: scripts that run around a step and get the run as JSON.

use crate::annotation::args::{Args, Line};
use crate::annotation::draft::{Draft, Problem};
use crate::annotation::registry::{Repeats, Runtime, Word};
use crate::annotation::spec::{Hook, HookMoment};
use crate::annotation::values::read_script_path;
use crate::source::Located;

const fn hook(name: &'static str, syntax: &'static str, doc: &'static str, example: &'static str) -> Word {
    Word {
        name,
        aliases: &[],
        syntax,
        doc,
        example,
        options: &[],
        keywords: &[],
        repeats: Repeats::Freely,
        runtime: Runtime::NotYet,
        shape: &[],
        parse,
    }
}

pub const PRE_RUN: Word = hook(
    "pre_run",
    "pre_run <script path>",
    "Runs a hook script before the step; when it fails, the step does not run. The hook gets the run as JSON.",
    "pre_run hooks/check_source",
);

pub const ON_SUCCESS: Word = hook(
    "on_success",
    "on_success <script path>",
    "Runs a hook script after the step succeeded. The hook gets the run as JSON.",
    "on_success hooks/notify",
);

pub const ON_FAILURE: Word = hook(
    "on_failure",
    "on_failure <script path>",
    "Runs a hook script after the step failed. The hook gets the run, with the error, as JSON.",
    "on_failure hooks/page_the_owner",
);

fn parse(line: &Line<'_>, draft: &mut Draft<'_>) -> Result<(), Problem> {
    let mut args = Args::of(line, draft)?;
    let value = args.require(line, "the path of a hook script")?;
    let script = read_script_path(&value)?;
    let moment = match line.word.name {
        "pre_run" => HookMoment::PreRun,
        "on_success" => HookMoment::OnSuccess,
        _ => HookMoment::OnFailure,
    };
    draft.header.hooks.push(Located { value: Hook { moment, script }, span: line.span() });
    args.finish(line, draft);
    Ok(())
}
