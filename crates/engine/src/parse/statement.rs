//! One statement: its kind from its words, and the text of the query inside it.
//!
//! A query inside INSERT, CREATE … AS and COPY is parsed by DuckDB too: what stands around it is blanked, so that the
//! locations in its AST are offsets into the same text.

use pintail_core::source::Span;
use pintail_core::sql::body::{ParsedStatement, StatementKind, TableName};

use super::dml;
use super::tokens::{Token, TokenKind};

/// A statement whose query is not parsed yet.
pub struct Draft {
    /// The statement, without its query.
    pub parsed: ParsedStatement,
    /// The text to serialise; it starts where `parsed.query_span` starts.
    pub query_text: Option<String>,
    /// Whether DuckDB may count it as several (PIVOT without IN).
    pub may_multiply: bool,
}

/// The words that open a query.
const QUERY_WORDS: [&str; 9] =
    ["SELECT", "FROM", "VALUES", "TABLE", "PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE", "SHOW"];

/// Reads one statement.
pub fn draft(text: &str, tokens: &[Token]) -> Draft {
    let span = Span::new(tokens[0].span.start, tokens[tokens.len() - 1].span.end);
    let cursor = Cursor { text, tokens, span };
    let (kind, query) = cursor.read();
    let other_reads = match &kind {
        StatementKind::Update { target } | StatementKind::Delete { target } | StatementKind::Merge { target } => {
            dml::other_reads(text, span, tokens, target)
        }
        _ => Vec::new(),
    };
    let (query_span, query_text) = match query {
        Some(Query { span, text }) => (Some(span), Some(text)),
        None => (None, None),
    };
    Draft {
        parsed: ParsedStatement { span, kind, query: None, query_span, other_reads },
        query_text,
        may_multiply: tokens.iter().any(|token| token.is("PIVOT")),
    }
}

struct Query {
    span: Span,
    text: String,
}

struct Cursor<'a> {
    text: &'a str,
    tokens: &'a [Token],
    span: Span,
}

impl Cursor<'_> {
    fn read(&self) -> (StatementKind, Option<Query>) {
        let word = self.leading_word();
        match word.as_str() {
            "ATTACH" => (self.attach(), None),
            "DETACH" => (StatementKind::Detach, None),
            "USE" => (StatementKind::Use { parts: self.name_at(1).map(|name| name.parts).unwrap_or_default() }, None),
            "INSTALL" => (StatementKind::Install, None),
            "LOAD" => (StatementKind::Load { what: self.value_at(1) }, None),
            "SET" | "RESET" => (self.set(), None),
            "PRAGMA" => (StatementKind::Pragma { name: self.value_at(1) }, None),
            "CREATE" => self.create(),
            "INSERT" => self.insert(),
            "UPDATE" => (self.with_target("UPDATE", |target| StatementKind::Update { target }), None),
            "DELETE" => (self.with_target("FROM", |target| StatementKind::Delete { target }), None),
            "TRUNCATE" => (self.with_target("TRUNCATE", |target| StatementKind::Delete { target }), None),
            "MERGE" => (self.with_target("INTO", |target| StatementKind::Merge { target }), None),
            "COPY" => self.copy(),
            "DROP" => (self.drop_object(), None),
            "ALTER" => (self.alter(), None),
            "COMMENT" => (StatementKind::Comment, None),
            "BEGIN" | "START" => (StatementKind::Begin, None),
            "COMMIT" | "END" => (StatementKind::Commit, None),
            "ROLLBACK" | "ABORT" => (StatementKind::Rollback, None),
            "CALL" => (StatementKind::Call, None),
            "CHECKPOINT" | "VACUUM" | "EXPORT" | "IMPORT" | "EXPLAIN" | "ANALYZE" | "PREPARE" | "EXECUTE"
            | "DEALLOCATE" | "FORCE" => (StatementKind::Other { word }, None),
            // Whatever else must be a query or a syntax error, and DuckDB says which.
            _ => (StatementKind::Query, Some(self.query(self.span))),
        }
    }

    /// Returns the word that decides the kind: the first one, or after `WITH … AS (…)` the one at the same depth.
    fn leading_word(&self) -> String {
        let first = self.tokens[0].keyword();
        if first != "WITH" {
            return first;
        }
        let mut depth = 0_i32;
        for token in &self.tokens[1..] {
            match &token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                TokenKind::Word(_) if depth == 0 => {
                    let keyword = token.keyword();
                    if matches!(keyword.as_str(), "INSERT" | "UPDATE" | "DELETE" | "MERGE") {
                        return keyword;
                    }
                }
                _ => {}
            }
        }
        "SELECT".to_owned()
    }

    fn query(&self, span: Span) -> Query {
        Query { span, text: self.text[span.start..span.end].to_owned() }
    }

    /// Returns the statement's text with everything but `keep` blanked.
    fn blanked(&self, blank: Span) -> Query {
        let start = self.span.start;
        let mut text = self.text[start..blank.start].to_owned();
        // Bytes, not characters, so that offsets stay.
        text.extend(self.text.as_bytes()[blank.start..blank.end].iter().map(|b| if *b == b'\n' { '\n' } else { ' ' }));
        text.push_str(&self.text[blank.end..self.span.end]);
        Query { span: self.span, text }
    }

    fn position(&self, from: usize, keyword: &str) -> Option<usize> {
        let mut depth = 0_i32;
        for (at, token) in self.tokens.iter().enumerate().skip(from) {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                _ if depth == 0 && token.is(keyword) => return Some(at),
                _ => {}
            }
        }
        None
    }

    fn name_at(&self, at: usize) -> Option<TableName> {
        Some(dotted_name(self.tokens.get(at..)?)?.0)
    }

    /// Returns the word or string at `at`.
    fn value_at(&self, at: usize) -> String {
        match self.tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Word(word)) => word.text.clone(),
            Some(TokenKind::String(value)) => value.clone(),
            _ => String::new(),
        }
    }

    fn attach(&self) -> StatementKind {
        let string = self.tokens.iter().find_map(|token| match &token.kind {
            TokenKind::String(value) => Some(value.clone()),
            _ => None,
        });
        let alias = self.position(1, "AS").map(|at| self.value_at(at + 1)).filter(|alias| !alias.is_empty());
        StatementKind::Attach { target: string.unwrap_or_default(), alias }
    }

    fn set(&self) -> StatementKind {
        let scope = self.tokens.get(1).map(Token::keyword).unwrap_or_default();
        let scoped = matches!(scope.as_str(), "VARIABLE" | "GLOBAL" | "SESSION" | "LOCAL");
        StatementKind::Set { name: self.value_at(if scoped { 2 } else { 1 }), variable: scope == "VARIABLE" }
    }

    fn create(&self) -> (StatementKind, Option<Query>) {
        let mut at = 1;
        let mut temporary = false;
        let mut object = String::new();
        while let Some(token) = self.tokens.get(at) {
            let keyword = token.keyword();
            at += 1;
            match keyword.as_str() {
                "OR" | "REPLACE" | "PERSISTENT" | "RECURSIVE" | "UNIQUE" | "MATERIALIZED" => {}
                "TEMP" | "TEMPORARY" => temporary = true,
                _ => {
                    object = if keyword == "FUNCTION" { "macro".to_owned() } else { keyword.to_lowercase() };
                    break;
                }
            }
        }
        while self.tokens.get(at).is_some_and(|token| ["IF", "NOT", "EXISTS"].iter().any(|word| token.is(word))) {
            at += 1;
        }
        let name = self.name_at(at);
        let query = matches!(object.as_str(), "table" | "view").then(|| self.position(at, "AS")).flatten();
        let query = query.map(|keyword| {
            let blank = Span::new(self.span.start, self.tokens[keyword].span.end);
            self.blanked(blank)
        });
        (StatementKind::Create { object, temporary, name }, query)
    }

    fn insert(&self) -> (StatementKind, Option<Query>) {
        let Some(into) = self.position(0, "INTO") else {
            return (StatementKind::Other { word: "INSERT".to_owned() }, None);
        };
        let insert = self.position(0, "INSERT").unwrap_or(0);
        let Some((target, length)) = dotted_name(&self.tokens[into + 1..]) else {
            return (StatementKind::Other { word: "INSERT".to_owned() }, None);
        };
        let mut depth = 0_i32;
        let query_start = self.tokens.iter().enumerate().skip(into + 1 + length).find_map(|(at, token)| {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth -= 1,
                _ => {}
            }
            // An opening parenthesis before a query word belongs to the query.
            let parenthesised =
                depth == 1 && token.kind == TokenKind::Open && self.tokens.get(at + 1).is_some_and(is_query_word);
            (parenthesised || (depth == 0 && is_query_word(token) && !self.is_default_values(at))).then_some(at)
        });
        let query =
            query_start.map(|at| self.blanked(Span::new(self.tokens[insert].span.start, self.tokens[at].span.start)));
        (StatementKind::Insert { target }, query)
    }

    fn is_default_values(&self, at: usize) -> bool {
        0 < at && self.tokens[at - 1].is("DEFAULT")
    }

    fn with_target(&self, keyword: &str, kind: impl FnOnce(TableName) -> StatementKind) -> StatementKind {
        let mut at = self.position(0, keyword).map_or(0, |at| at + 1);
        while self.tokens.get(at).is_some_and(|token| token.is("ONLY") || token.is("TABLE")) {
            at += 1;
        }
        match self.name_at(at) {
            Some(target) => kind(target),
            None => StatementKind::Other { word: self.tokens[0].keyword() },
        }
    }

    fn copy(&self) -> (StatementKind, Option<Query>) {
        let other = || (StatementKind::Other { word: "COPY".to_owned() }, None);
        if let Some(to) = self.position(1, "TO") {
            let inner = match self.tokens.get(1).map(|token| &token.kind) {
                Some(TokenKind::Open) => {
                    Some(self.query(Span::new(self.tokens[1].span.end, self.tokens[to - 1].span.start)))
                }
                // COPY t TO …: the table is read as `FROM t` would be.
                Some(TokenKind::Word(_)) => None,
                _ => return other(),
            };
            return (StatementKind::CopyTo { target: self.value_at(to + 1) }, inner);
        }
        match (self.name_at(1), self.position(1, "FROM")) {
            (Some(table), Some(from)) => (StatementKind::CopyFrom { table, source: self.value_at(from + 1) }, None),
            _ => other(),
        }
    }

    fn drop_object(&self) -> StatementKind {
        let object = self.tokens.get(1).map(Token::keyword).unwrap_or_default().to_lowercase();
        let mut at = 2;
        while self.tokens.get(at).is_some_and(|token| token.is("IF") || token.is("EXISTS") || token.is("TABLE")) {
            at += 1;
        }
        match self.name_at(at) {
            Some(name) => StatementKind::Drop { object, name },
            None => StatementKind::Other { word: "DROP".to_owned() },
        }
    }

    fn alter(&self) -> StatementKind {
        let mut at = 2;
        while self.tokens.get(at).is_some_and(|token| token.is("IF") || token.is("EXISTS")) {
            at += 1;
        }
        match self.name_at(at) {
            Some(name) => StatementKind::Alter { name },
            None => StatementKind::Other { word: "ALTER".to_owned() },
        }
    }
}

fn is_query_word(token: &Token) -> bool {
    token.is("WITH") || QUERY_WORDS.iter().any(|word| token.is(word))
}

/// Reads `a.b.c` at the start of `tokens`; returns it and how many tokens it took.
pub fn dotted_name(tokens: &[Token]) -> Option<(TableName, usize)> {
    let mut parts = Vec::new();
    let mut at = 0;
    loop {
        match tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Word(word)) => parts.push(word.text.clone()),
            // A file name in quotes stands where a table name may.
            Some(TokenKind::String(value)) if parts.is_empty() => parts.push(value.clone()),
            _ => return None,
        }
        at += 1;
        match tokens.get(at).map(|token| &token.kind) {
            Some(TokenKind::Period) => at += 1,
            _ => break,
        }
    }
    let span = Span::new(tokens[0].span.start, tokens[at - 1].span.end);
    Some((TableName { parts, span }, at))
}
