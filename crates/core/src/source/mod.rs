//! Source text: files, byte spans, line and column look-up, and which language a file is written in.
//!
//! Spans are byte offsets into the file as it was read, so that a diagnostic of any stage points at the same place.

use std::fmt;

/// A half-open byte range `[start, end)` in one source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span `[start, end)`.
    pub fn new(start: usize, end: usize) -> Self {
        debug_assert!(start <= end, "a span runs forward");
        Self { start, end }
    }

    /// Returns this span moved right by `offset` bytes.
    pub fn shifted(self, offset: usize) -> Self {
        Self::new(self.start + offset, self.end + offset)
    }
}

/// A value and the place in the source that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub span: Span,
}

/// The language of a script, decided by its file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// DuckDB SQL: `.sql`, `.duckdb.sql`.
    DuckDbSql,
    /// Postgres SQL: `.pg.sql`.
    PostgresSql,
    /// Python: `.py`.
    Python,
    /// TypeScript: `.ts`.
    TypeScript,
    /// Bash: `.sh`.
    Bash,
}

impl Language {
    /// Returns the language and the file name's stem, or `None` when the file is no script.
    pub fn of_file_name(file_name: &str) -> Option<(Self, &str)> {
        const ENDINGS: [(&str, Language); 6] = [
            (".pg.sql", Language::PostgresSql),
            (".duckdb.sql", Language::DuckDbSql),
            (".sql", Language::DuckDbSql),
            (".py", Language::Python),
            (".ts", Language::TypeScript),
            (".sh", Language::Bash),
        ];
        ENDINGS
            .iter()
            .find_map(|(ending, language)| Some((*language, file_name.strip_suffix(ending)?)))
            .filter(|(_, stem)| !stem.is_empty())
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Language::DuckDbSql => "DuckDB SQL",
            Language::PostgresSql => "Postgres SQL",
            Language::Python => "Python",
            Language::TypeScript => "TypeScript",
            Language::Bash => "Bash",
        })
    }
}

/// One file of a project as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path relative to the project root, with `/` between its parts.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// Line and column look-up for one text; built once, answers in O(log lines).
#[derive(Clone, Debug)]
pub struct LineIndex {
    line_starts: Vec<usize>,
}

impl LineIndex {
    /// Builds the index of `text`.
    pub fn new(text: &str) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { line_starts }
    }

    /// Returns the 1-based line and the 1-based column in bytes of the byte at `offset`.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        (line, offset - self.line_starts[line - 1] + 1)
    }
}
