//! `new`: a script from a scaffold that checks clean: a language, what it writes, a name.

use clap::{Args, ValueEnum};
use pintail_core::partition::TimeUnit;
use serde_json::json;

use super::init::write_new;
use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;

/// What to make.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail new duckdb ducklake orders/orders_daily --partitioned daily
  pintail new duckdb ducklake customers --key customer_id
  pintail new python ducklake forecasts
  pintail new bash none notify")]
pub struct NewArgs {
    /// The language of the script
    #[arg(value_enum)]
    language: ScriptLanguage,
    /// What it writes
    #[arg(value_enum)]
    output: Output,
    /// Its name: the path below pipelines/ without an ending
    name: String,
    /// Run it once for each period
    #[arg(long, value_enum, value_name = "PERIOD", num_args = 0..=1, default_missing_value = "daily")]
    partitioned: Option<Period>,
    /// Merge by these columns instead of replacing all rows
    #[arg(long, value_name = "COLUMNS")]
    key: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ScriptLanguage {
    Duckdb,
    Postgres,
    Python,
    Typescript,
    Bash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Output {
    /// A table of the lake
    Ducklake,
    /// A table of a Postgres database
    Datatable,
    /// A Parquet file of an object store
    S3Parquet,
    /// Any object of an object store
    S3Object,
    /// Nothing that Pintail knows of
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Period {
    Hourly,
    Daily,
    Weekly,
    Monthly,
}

impl Period {
    fn word(self) -> &'static str {
        match self {
            Period::Hourly => TimeUnit::Hour.word(),
            Period::Daily => TimeUnit::Day.word(),
            Period::Weekly => TimeUnit::Week.word(),
            Period::Monthly => TimeUnit::Month.word(),
        }
    }
}

/// Runs the command.
pub fn run(args: &NewArgs, app: &App) -> Result<Exit, Failure> {
    let is_name = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
            && !part.starts_with('-')
    };
    if !args.name.split('/').all(is_name) {
        return Err(Failure::usage(format!("`{}` cannot be the name of a script", args.name))
            .with_hint("letters, digits, `_` and `-`, with `/` between folders, and no ending"));
    }
    let is_managed = args.output != Output::None && args.output != Output::S3Object && args.language.returns_rows();
    if args.key.is_some() && !is_managed {
        return Err(Failure::usage("`--key` needs a script whose rows Pintail writes")
            .with_hint("such as `pintail new duckdb ducklake <name> --key id`"));
    }
    if args.partitioned.is_some() && args.output == Output::None {
        return Err(Failure::usage("`--partitioned` needs a script that writes something"));
    }
    if args.language == ScriptLanguage::Postgres && !matches!(args.output, Output::Datatable | Output::None) {
        return Err(Failure::usage("a Postgres script writes a table of its own database")
            .with_hint("`pintail new postgres datatable <name>`, or DuckDB SQL for other targets"));
    }
    let root = app.root()?;
    let path = format!("pipelines/{}{}", args.name, args.language.ending());
    if root.join(&path).exists() {
        return Err(Failure::usage(format!("{path} exists; nothing was written")));
    }
    write_new(&root.join(&path), &scaffold(args, is_managed))?;
    if app.terminal.is_json {
        app.terminal.json(&json!({"made": path}));
    } else {
        app.terminal.data(&format!("made {path}\n"));
        app.terminal.hint("`pintail check` tells whether it is right, `pintail preview` what its query gives");
    }
    Ok(Exit::Ok)
}

impl ScriptLanguage {
    fn ending(self) -> &'static str {
        match self {
            ScriptLanguage::Duckdb => ".sql",
            ScriptLanguage::Postgres => ".pg.sql",
            ScriptLanguage::Python => ".py",
            ScriptLanguage::Typescript => ".ts",
            ScriptLanguage::Bash => ".sh",
        }
    }

    fn comment(self) -> &'static str {
        match self {
            ScriptLanguage::Duckdb | ScriptLanguage::Postgres => "--",
            ScriptLanguage::Python | ScriptLanguage::Bash => "#",
            ScriptLanguage::Typescript => "//",
        }
    }

    /// Returns whether a script gives rows that Pintail writes, rather than writing with commands of its own.
    fn returns_rows(self) -> bool {
        self != ScriptLanguage::Bash
    }
}

fn scaffold(args: &NewArgs, is_managed: bool) -> String {
    let mut lines = vec![format!("description Say here what {} holds.", args.name)];
    if let Some(period) = args.partitioned {
        lines.push(format!("partitioned {}", period.word()));
    }
    if let Some(target) = target(args) {
        let manual = if is_managed { "" } else { "manual " };
        let key = args.key.as_ref().map_or_else(String::new, |key| format!(" key={key}"));
        lines.push(format!("materialize {manual}{target}{key}"));
    }
    if let Some(key) = &args.key {
        lines.push(format!("test unique {key}"));
        lines.extend(key.split(',').map(|column| format!("test not_null {column}")));
    }
    let comment = args.language.comment();
    let shebang = if args.language == ScriptLanguage::Bash { "#!/usr/bin/env bash\n" } else { "" };
    let header: String = lines.iter().map(|line| format!("{comment} {line}\n")).collect();
    format!("{shebang}{header}\n{}", body(args, is_managed))
}

/// Returns the asset; the path of one is the script's own.
fn target(args: &NewArgs) -> Option<String> {
    let table = args.name.rsplit('/').next().unwrap_or(&args.name).replace('-', "_").to_lowercase();
    let slice = if args.partitioned.is_some() { "/{partition}" } else { "" };
    match args.output {
        Output::Ducklake => Some(format!("ducklake://main/{table}")),
        Output::Datatable => Some(format!("datatable://main/{table}")),
        Output::S3Parquet => Some(format!("s3:///{}{slice}.parquet", args.name)),
        Output::S3Object => Some(format!("s3:///{}{slice}.json", args.name)),
        Output::None => None,
    }
}

fn body(args: &NewArgs, is_managed: bool) -> String {
    let keys: Vec<&str> = args.key.as_deref().map_or_else(|| vec!["id"], |key| key.split(',').collect());
    let columns = |each: &dyn Fn(&str) -> String| keys.iter().map(|key| each(key)).collect::<Vec<_>>().join(", ");
    match args.language {
        ScriptLanguage::Duckdb if is_managed => {
            let period = if args.partitioned.is_some() { ", $partition AS period" } else { "" };
            format!("SELECT {}, 'first' AS name{period}\n", columns(&|key| format!("1 AS {key}")))
        }
        ScriptLanguage::Duckdb => match target(args) {
            Some(target) => format!("COPY (SELECT 1 AS id, 'first' AS name) TO '{target}'\n"),
            None => "CREATE TEMP TABLE notes AS SELECT 1 AS id, 'first' AS name;\n".to_owned(),
        },
        ScriptLanguage::Postgres => format!("SELECT {}, 'first' AS name\n", columns(&|key| format!("1 AS {key}"))),
        ScriptLanguage::Python => {
            let row = columns(&|key| format!("\"{key}\": 1"));
            let body =
                if is_managed { format!("return [{{{row}, \"name\": \"first\"}}]") } else { "print(\"done\")".into() };
            format!("def main(partition=None):\n    {body}\n")
        }
        ScriptLanguage::Typescript => {
            let row = columns(&|key| format!("{key}: 1"));
            let body = if is_managed {
                format!("return [{{ {row}, name: \"first\" }}];")
            } else {
                "console.log(\"done\");".into()
            };
            format!("export async function main(partition?: string) {{\n  {body}\n}}\n")
        }
        ScriptLanguage::Bash => "set -euo pipefail\n\necho \"done\"\n".to_owned(),
    }
}
