//! Help, codes and completions: what needs no project.

use expect_test::expect;
use pintail_testkit::Project;

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
fn help_teaches() {
    let project = Project::empty();
    check(
        &project,
        "--help",
        expect![[r#"
        exit code 0
        --- stdout
        Versioned, incremental lake tables from a folder of annotated SQL

        Usage: pintail [OPTIONS] <COMMAND>

        Commands:
          init         Make a new project
          new          Make a new script from a scaffold
          check        Find mistakes in the project without reading data
          plan         Show what a run would do, and why
          run          Do what is due
          backfill     Make a range of partitions of one script
          preview      Show what a script's query gives, without writing it
          query        Ask the lakes something
          list         List scripts, or what a selection means
          show         Show everything that is known of a script, an asset or a run
          graph        Show which script needs which, and why
          history      List the versions of an asset, or the last runs
          test         Run the data tests on what is committed
          adopt        Take over a table that something else made
          state        Look after the metadata store
          doctor       Say what is found where, and what is missing
          explain      Explain a diagnostic code
          completions  Print the completions of a shell
          help         Print this message or the help of the given subcommand(s)

        Options:
          -h, --help
                  Print help (see a summary with '-h')

          -V, --version
                  Print version

        Everywhere:
              --project <DIR>
                  The project's folder; otherwise the nearest one upwards with pintail.toml or pipelines/

              --profile <NAME>
                  The profile of pintail.toml to use; otherwise PINTAIL_PROFILE

              --json
                  Print data as JSON

              --color <WHEN>
                  When to use colour

                  Possible values:
                  - auto:   In a terminal, unless NO_COLOR is set
                  - always: Always
                  - never:  Never
          
                  [default: auto]

          -v, --verbose...
                  Say more; twice for everything

        A first project:
          pintail init shop && cd shop
          pintail check                          finds mistakes, reads no data
          pintail plan                           what would be done, and why
          pintail run                            does exactly that
          pintail query 'FROM orders_by_day'     add --at <snapshot> to read an older version

        Exit codes: 0 ok, 1 failed steps or tests, 2 usage, 3 errors in the project, 4 something is missing
        or broken
    "#]],
    );
    check(
        &project,
        "run --help",
        expect![[r#"
        exit code 0
        --- stdout
        Do what is due

        Usage: pintail run [OPTIONS]

        Options:
          -s, --select <SELECTION>...
                  Scripts by name, glob, folder, asset, tag:… or owner:…; `+x` adds what x needs, `x+` what
                  needs x

              --exclude <SELECTION>...
                  Leave these out

          -p, --partition <PARTITION>
                  The partition of the partitioned scripts; otherwise the last one that has closed

              --force
                  Also do what is up to date

              --full-refresh
                  Write merge and append targets anew

              --dry-run
                  Show the plan and do nothing

              --timings
                  Show how long each phase of each step took

          -h, --help
                  Print help (see a summary with '-h')

          -V, --version
                  Print version

        Everywhere:
              --project <DIR>
                  The project's folder; otherwise the nearest one upwards with pintail.toml or pipelines/

              --profile <NAME>
                  The profile of pintail.toml to use; otherwise PINTAIL_PROFILE

              --json
                  Print data as JSON

              --color <WHEN>
                  When to use colour

                  Possible values:
                  - auto:   In a terminal, unless NO_COLOR is set
                  - always: Always
                  - never:  Never
          
                  [default: auto]

          -v, --verbose...
                  Say more; twice for everything

        Examples:
          pintail run                                    everything that is due
          pintail run --select +revenue                  one script and all that it needs
          pintail run --select orders+ --dry-run         what would be done, without doing it
          pintail run --partition 2026-06-01             one partition
          pintail run --select orders --full-refresh     write a merge or append target anew

        A step is one transaction: it is written and tested and recorded, or the old version stays. Ctrl-C
        stops
        cleanly; `pintail run` goes on where it was. Exit code 1 when a step failed.
    "#]],
    );
}

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
