//! Help, codes and completions: what needs no project.

use expect_test::{expect, expect_file};
use pintail_testkit::{Project, pintail};

use crate::{check, run};

#[test]
fn a_code_is_explained_in_any_case_and_a_wrong_one_corrected() {
    let project = Project::empty();
    let page = run(&project, "explain p305").expect_ok().stdout;
    assert!(page.starts_with("# P305") || page.starts_with("P305"), "{page}");
    check(
        &project,
        "explain P3055",
        expect![[r#"
        exit code 2
        --- stderr
        error: there is no code `P3055`
        hint: did you mean P305? `pintail explain` lists all codes
    "#]],
    );
    let list = run(&project, "explain").expect_ok().stdout;
    assert!(list.lines().any(|line| line.starts_with("P101") && line.contains("unknown annotation")), "{list}");
}

#[test]
fn the_reference_page_is_the_help_of_every_command() {
    let project = Project::empty();
    let help =
        |command: &str| pintail(&project).words(command).arg("--help").env("COLUMNS", "100").run().expect_ok().stdout;
    let without_shared = |text: &str| {
        let own = text.find("Everywhere:").zip(text.find("Print help"));
        let shared = own.map_or(text.len(), |(start, _)| start);
        let after = text[shared..].find("\n\nExamples:").or_else(|| text[shared..].find("\n\nExit code"));
        let examples = after.map_or("", |at| &text[shared + at + 2..]);
        let lines = format!("{}\n\n{examples}", text[..shared].trim_end());
        lines.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>()
    };
    let overview = help("");
    let mut page = String::from(PAGE_HEAD);
    let trimmed: String = overview.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    page.push_str(&format!("```text\n{trimmed}```\n"));
    let commands = overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|command| *command != "help") {
        let command = if command == "state" { "state rebuild" } else { command };
        page.push_str(&format!("\n## {command}\n\n```text\n{}\n```\n", without_shared(&help(command)).trim_end()));
    }
    expect_file!["../../../../docs/reference/cli.md"].assert_eq(&page);
}

const PAGE_HEAD: &str = "<!-- Written from the help of the commands; a test of the command line compares it. -->

# The command line

Data goes to stdout, talk to stderr. `--json` works everywhere; what ends how is in [exit codes](exit-codes.md).

";

#[test]
fn a_wrong_command_line_is_usage() {
    let project = Project::empty();
    check(
        &project,
        "rnu",
        expect![[r#"
        exit code 2
        --- stderr
        error: unrecognized subcommand 'rnu'

        Usage: pintail [OPTIONS] <COMMAND>

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn completions_name_the_commands() {
    let project = Project::empty();
    let script = run(&project, "completions bash").expect_ok().stdout;
    for command in ["backfill", "doctor", "history"] {
        assert!(script.contains(command), "{command}");
    }
}

#[test]
fn without_a_lake_no_store_and_no_lake_is_made() {
    let project = Project::new(crate::SHOP);
    for line in ["list", "check", "graph", "explain P101", "doctor"] {
        run(&project, line).expect_ok();
        assert!(!project.exists(".pintail"), "{line}");
    }
}
