//! What the engine's parser found in a body: plain values, so that core never splits SQL by hand.
//!
//! Spans are byte offsets into the whole file. Locations inside a query's AST are relative to `query_span.start`.

use crate::source::Span;

/// The parsed body of one DuckDB SQL file.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ParsedBody {
    /// The statements, in order, up to the first error.
    pub statements: Vec<ParsedStatement>,
    /// Why parsing stopped.
    pub error: Option<BodyError>,
    /// Every `$name` token, in order, outside strings and comments.
    pub parameters: Vec<Parameter>,
    /// Every `{partition}` inside a string literal (Windmill's spelling): the span of the braces and the word.
    pub placeholders: Vec<Span>,
    /// Names of functions called, as written, lower-cased and deduplicated (from the AST and the tokens).
    pub functions: Vec<String>,
}

/// A `$name` token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name without `$`.
    pub name: String,
    /// The token with `$`.
    pub span: Span,
}

/// A positioned parse error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyError {
    /// The engine's message.
    pub message: String,
    /// Where in the file.
    pub span: Span,
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedStatement {
    /// The statement's text without leading white space and comments, and without its semicolon.
    pub span: Span,
    /// What it does.
    pub kind: StatementKind,
    /// The query in it (the whole of a SELECT, the inner one of INSERT, CREATE … AS, COPY), as `json_serialize_sql`
    /// gives it: the object with `node`.
    pub query: Option<serde_json::Value>,
    /// Where the query's text stands; equals `span` for a query.
    pub query_span: Option<Span>,
    /// Tables named outside the query: the source of MERGE, FROM of UPDATE, USING of DELETE.
    pub other_reads: Vec<TableName>,
}

/// A possibly qualified table name as written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableName {
    /// The parts, unquoted: `[table]`, `[schema, table]` or `[catalog, schema, table]` (also `[catalog, table]`).
    pub parts: Vec<String>,
    /// The whole dotted name.
    pub span: Span,
}

/// What a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// SELECT, WITH … SELECT, FROM, VALUES, TABLE, PIVOT, UNPIVOT, DESCRIBE, SUMMARIZE: gives rows.
    Query,
    /// ATTACH; `target` is the quoted string.
    Attach {
        /// What is attached.
        target: String,
        /// `AS alias`.
        alias: Option<String>,
    },
    /// DETACH.
    Detach,
    /// USE; the dotted name.
    Use {
        /// The parts.
        parts: Vec<String>,
    },
    /// INSTALL.
    Install,
    /// LOAD.
    Load {
        /// The extension or path.
        what: String,
    },
    /// SET (also SET VARIABLE, SET GLOBAL), RESET.
    Set {
        /// The setting or variable.
        name: String,
        /// Whether it is SET VARIABLE.
        variable: bool,
    },
    /// PRAGMA.
    Pragma {
        /// The pragma.
        name: String,
    },
    /// CREATE.
    Create {
        /// `table`, `view`, `macro`, `schema`, `type`, `secret`, `sequence`, `index`.
        object: String,
        /// Whether it is TEMP or TEMPORARY.
        temporary: bool,
        /// The name, when it has one.
        name: Option<TableName>,
    },
    /// INSERT INTO.
    Insert {
        /// The target.
        target: TableName,
    },
    /// UPDATE.
    Update {
        /// The target.
        target: TableName,
    },
    /// DELETE FROM or TRUNCATE.
    Delete {
        /// The target.
        target: TableName,
    },
    /// MERGE INTO.
    Merge {
        /// The target.
        target: TableName,
    },
    /// COPY … TO.
    CopyTo {
        /// The file or object.
        target: String,
    },
    /// COPY … FROM.
    CopyFrom {
        /// The table.
        table: TableName,
        /// The file or object.
        source: String,
    },
    /// DROP.
    Drop {
        /// As in `Create`.
        object: String,
        /// The name.
        name: TableName,
    },
    /// ALTER.
    Alter {
        /// The name.
        name: TableName,
    },
    /// COMMENT ON.
    Comment,
    /// BEGIN, START TRANSACTION.
    Begin,
    /// COMMIT, END.
    Commit,
    /// ROLLBACK, ABORT.
    Rollback,
    /// CALL.
    Call,
    /// CHECKPOINT, VACUUM, EXPORT, IMPORT and whatever else: the first word, upper-cased.
    Other {
        /// The first word.
        word: String,
    },
}
