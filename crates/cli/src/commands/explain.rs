//! `explain`: the page of a diagnostic code.

use clap::Args;
use pintail_core::diagnostic::{CODES, Code, Severity, nearest};
use serde_json::json;

use crate::app::App;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::{Align, listing};
use crate::terminal::Style;

/// The pages of `docs/diagnostics`, by code.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// Which code.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pintail explain P305     what it means, why, and how to mend it
  pintail explain          all codes")]
pub struct ExplainArgs {
    /// The code, such as P305; all of them without one
    code: Option<String>,
}

/// Runs the command.
pub fn run(args: &ExplainArgs, app: &App) -> Result<Exit, Failure> {
    let Some(text) = &args.code else {
        list(app);
        return Ok(Exit::Ok);
    };
    let code = Code::find(text).ok_or_else(|| unknown(text))?;
    let page = PAGES.iter().find(|(name, _)| *name == code.as_str()).map_or("", |(_, page)| page);
    if app.terminal.is_json {
        let info = code.info();
        app.terminal.json(&json!({
            "code": info.code,
            "severity": severity_word(info.severity),
            "summary": info.summary,
            "page": page,
        }));
    } else {
        app.terminal.data(&with_headings(page, app));
    }
    Ok(Exit::Ok)
}

fn unknown(text: &str) -> Failure {
    let failure = Failure::usage(format!("there is no code `{text}`"));
    let upper = text.to_ascii_uppercase();
    match nearest(&upper, CODES.iter().map(|code| code.as_str())) {
        Some(near) => failure.with_hint(format!("did you mean {near}? `pintail explain` lists all codes")),
        None => failure.with_hint("`pintail explain` lists all codes"),
    }
}

fn list(app: &App) {
    if app.terminal.is_json {
        let codes: Vec<_> = CODES
            .iter()
            .map(|code| code.info())
            .map(|info| json!({"code": info.code, "severity": severity_word(info.severity), "summary": info.summary}))
            .collect();
        app.terminal.json(&json!({"codes": codes}));
        return;
    }
    let row = |code: &Code| {
        let info = code.info();
        vec![info.code.to_owned(), severity_word(info.severity).to_owned(), info.summary.to_owned()]
    };
    let columns = [("code", Align::Left), ("severity", Align::Left), ("what", Align::Left)];
    app.terminal.data(&listing(&columns, CODES.iter().map(row).collect()));
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// Markdown reads well as it is; headings stand out where there is colour.
fn with_headings(page: &str, app: &App) -> String {
    let heading = |line: &str| match line.strip_prefix('#') {
        Some(rest) => app.terminal.paint_data(Style::Bold, rest.trim_start_matches('#').trim()),
        None => line.to_owned(),
    };
    page.lines().map(|line| format!("{}\n", heading(line))).collect()
}

#[cfg(test)]
mod tests {
    use pintail_core::diagnostic::CODES;

    use super::PAGES;

    #[test]
    fn every_code_has_its_page_and_every_page_its_code() {
        let codes: Vec<&str> = CODES.iter().map(|code| code.as_str()).collect();
        let pages: Vec<&str> = PAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(pages, codes);
    }
}
