//! The reference page of the annotations, generated from the registry.

use std::fmt::Write as _;

use super::registry::{Repeats, Runtime, WORDS, Word};

const INTRODUCTION: &str = "\
# Annotations

This page is generated from the annotation registry; `cargo xtask gen` writes it.

## The header

Annotations stand in the header: the comment lines at the top of a script, before the first line of code.

- `--`, `//` and `#` open a header line in every language. Blank lines belong to the header, and a shebang may stand
  first. A comment line `---` ends the header early, so that the comments below it are free text.
- Annotation words are lower case, and a line holds one annotation. A line whose first word is an annotation word is read
  strictly: what is unknown, missing or too much is an error with its place.
- A line that starts with any other word is prose, and becomes the script's description. When prose must start with an
  annotation word (`on`, `test`, `use` …), put another word before it.
- A line that looks like an annotation but is none (`materialise ducklake://…`, `Test unique id`) is reported, with the
  nearest word.
- Block comments (`/* … */`) do not end the header and are not part of it; annotations inside them are reported, not read.
- Options are `key=value` without white space around `=`. A value that holds white space stands in quotes (`\"` or `'`);
  a doubled quote, or a backslash before it, is the quote itself.
- Lists of columns are separated by commas without white space: `a,b`. A column that is no plain word stands in double
  quotes: `\"Order Id\",b`.
- Durations are a whole number and a unit: `30s`, `10m`, `1h`, `2d`.
- The body sees the header as blank lines, so that every position in an error is one in the file.

## Assets

| URI | meaning |
|---|---|
| `ducklake://<lake>/<table>`, `ducklake://<lake>/<schema>.<table>` | a table in a lake; the schema is `main` when absent |
| `datatable://<db>/<table>`, `datatable://<db>/<schema>.<table>` | a table in a Postgres database; the schema is `public` when absent |
| `s3://<store>/<key>`, `s3:///<key>` | an object in a configured store, or in the default store |
| `volume://<name>/<path>` | a file under a configured directory; `project` is the project itself |

Names of lakes, schemas and tables are compared without case. A character that would end or split a name is written as
`%XX`, or the name stands in double quotes: `ducklake://main/\"a.b\"` is `ducklake://main/a%2Eb`. Keys of objects are exact.
Keys and paths may be globs: `*` and `?` inside one part, `**` over parts, `[…]` for one character.

";

/// Returns the page `docs/reference/annotations.md`.
pub fn reference_markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("## Words\n\n| word | | this version |\n|---|---|---|\n");
    for word in WORDS {
        let first_sentence = word.doc.split_inclusive(". ").next().unwrap_or(word.doc).trim_end();
        let acts = match word.runtime {
            Runtime::Here => "acts on it",
            Runtime::Partly(_) => "acts on most of it",
            Runtime::NotYet => "checks it",
        };
        writeln!(page, "| [`{0}`](#{0}) | {first_sentence} | {acts} |", word.name).expect("a String takes everything");
    }
    for word in WORDS {
        page.push('\n');
        write_word(&mut page, word).expect("a String takes everything");
    }
    page
}

fn write_word(page: &mut String, word: &Word) -> std::fmt::Result {
    writeln!(page, "## {}\n\n```text\n{}\n```\n\n{}\n", word.name, word.syntax, word.doc)?;
    if word.repeats == Repeats::Freely {
        writeln!(page, "May stand more than once.\n")?;
    }
    if !word.options.is_empty() {
        writeln!(page, "| option | |\n|---|---|")?;
        for option in word.options {
            writeln!(page, "| `{}={}` | {} |", option.name, option.value.replace('|', "\\|"), option.doc)?;
        }
        page.push('\n');
    }
    match word.runtime {
        Runtime::Here => {}
        Runtime::Partly(forms) => writeln!(page, "This version checks, but does not act on yet: {forms}.\n")?,
        Runtime::NotYet => writeln!(page, "This version checks the line, but does not act on it yet.\n")?,
    }
    let example: String = word.example.lines().map(|line| format!("-- {line}\n")).collect();
    write!(page, "```sql\n{example}```\n")
}
