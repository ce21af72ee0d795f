//! `list`: the scripts with what their headers say. Without a selection no body is parsed.

use clap::Args;
use pintail_core::annotation::{Header, parse_header};
use pintail_core::partition::PartitionSpec;
use pintail_core::source::Language;
use pintail_runner::workspace::ScriptFile;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::SelectArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::render::text::{count, or_dash};

/// Which scripts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail list                                  every script
  pintail list --select +revenue tag:nightly    what a selection means, before anything runs
  pintail list --select orders+ --exclude 'reports/*'

A selection is a union of words; `a,b` means both. Words: a name, a glob, `folder/`, a file, an
asset, `tag:`, `owner:`, `kind:`, `source:`, and the states of slices: `stale`, `failed`, `missing`,
`partial`, `fresh`, `state:unknown`, `state:new`, `state:modified`; `+x` adds what x needs, `x+` what
needs x, `2+x` two steps, `@x` what needs x with all that it needs.")]
pub struct ListArgs {
    /// Which scripts.
    #[command(flatten)]
    select: SelectArgs,
}

/// Runs the command.
pub fn run(args: &ListArgs, app: &App) -> Result<Exit, Failure> {
    if args.select.is_empty() {
        let project = app.load()?;
        let rows: Vec<Listed> = project
            .scripts
            .iter()
            .map(|script| Listed::of(script, &parse_header(&script.source, script.language).header))
            .collect();
        show(&rows, app);
        return Ok(Exit::Ok);
    }
    let project = app.compile()?;
    let nodes = app.select(&project, &args.select)?;
    let scripts = nodes.into_iter().filter_map(|node| project.script_at(node));
    let rows: Vec<Listed> = scripts.map(|script| Listed::of(&script.file, &script.header)).collect();
    show(&rows, app);
    Ok(Exit::Ok)
}

struct Listed {
    script: String,
    path: String,
    kind: String,
    language: Language,
    partition: Option<String>,
    asset: Option<String>,
    tags: Vec<String>,
    owner: Option<String>,
    description: Option<String>,
}

impl Listed {
    fn of(file: &ScriptFile, header: &Header) -> Self {
        Self {
            script: file.name.to_string(),
            path: file.source.path.clone(),
            kind: kind_word(file.language, header),
            language: file.language,
            partition: header.partitioned.as_ref().map(|spec| partition_text(&spec.value)),
            asset: header.materialize.as_ref().map(|line| line.value.target.value.to_string()),
            tags: header.tags.iter().map(|tag| tag.value.clone()).collect(),
            owner: header.owner.as_ref().map(|owner| owner.value.clone()),
            description: header.description.clone(),
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "script": self.script,
            "path": self.path,
            "kind": self.kind,
            "language": self.language.to_string(),
            "partition": self.partition,
            "asset": self.asset,
            "tags": self.tags,
            "owner": self.owner,
            "description": self.description,
        })
    }
}

/// Returns how a script writes, as a word.
pub fn kind_word(language: Language, header: &Header) -> String {
    use pintail_core::annotation::WriteStrategy;
    if header.macros.is_some() {
        return "macros".to_owned();
    }
    let word = match header.materialize.as_ref().map(|line| &line.value.strategy) {
        Some(WriteStrategy::Replace) => "replace",
        Some(WriteStrategy::Merge { .. }) => "merge",
        Some(WriteStrategy::Append) => "append",
        Some(WriteStrategy::History { .. }) => "history",
        Some(WriteStrategy::View) => "view",
        Some(WriteStrategy::Manual) | None => "manual",
    };
    match language {
        Language::DuckDbSql => word.to_owned(),
        other => format!("{word} ({other})"),
    }
}

/// Returns a partition declaration in the words of the header.
pub fn partition_text(spec: &PartitionSpec) -> String {
    match spec {
        PartitionSpec::Time(spec) => {
            let mut text = spec.unit.word().to_owned();
            if let Some(by) = &spec.by {
                text.push_str(&format!(" by={by}"));
            }
            if let Some(tz) = spec.tz {
                text.push_str(&format!(" tz={tz}"));
            }
            if let Some(start) = spec.start {
                text.push_str(&format!(" start={start}"));
            }
            text
        }
        PartitionSpec::Dynamic { key, .. } => format!("dynamic key={key}"),
    }
}

fn show(rows: &[Listed], app: &App) {
    if app.terminal.is_json {
        let scripts: Vec<Value> = rows.iter().map(Listed::to_json).collect();
        app.terminal.json(&json!({"scripts": scripts}));
        return;
    }
    if rows.is_empty() {
        app.terminal.data("no scripts\n");
        return;
    }
    let columns = [
        ("script", Align::Left),
        ("kind", Align::Left),
        ("asset", Align::Left),
        ("partition", Align::Left),
        ("tags", Align::Left),
        ("owner", Align::Left),
    ];
    let row = |listed: &Listed| {
        vec![
            listed.script.clone(),
            listed.kind.clone(),
            or_dash(listed.asset.as_ref()),
            or_dash(listed.partition.as_ref()),
            listed.tags.join(", "),
            listed.owner.clone().unwrap_or_default(),
        ]
    };
    app.terminal.data(&listing(&columns, rows.iter().map(row).collect()));
    app.terminal.talk(&format!("({})", count(rows.len(), "script")));
}
