//! Tokens of Postgres SQL with byte spans, cut into statements.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::source::Span;
use crate::sql::body::TableName;

/// Words that may stand between a statement's verb and the name of what it writes.
const BEFORE_NAME: [&str; 17] = [
    "INTO",
    "FROM",
    "ONLY",
    "TABLE",
    "VIEW",
    "MATERIALIZED",
    "OR",
    "REPLACE",
    "TEMP",
    "TEMPORARY",
    "UNLOGGED",
    "LOCAL",
    "GLOBAL",
    "IF",
    "NOT",
    "EXISTS",
    "RECURSIVE",
];

/// One token and its place.
#[derive(Clone, Debug)]
struct Placed {
    token: TokenWithSpan,
    span: Span,
}

/// The tokens of a file, white space and comments left out.
pub(super) struct Lexed {
    tokens: Vec<Placed>,
}

/// The tokens of one statement.
pub(super) struct StatementTokens<'t> {
    placed: &'t [Placed],
    /// The same for the parser.
    pub tokens: Vec<(TokenWithSpan, Span)>,
}

/// What a statement writes.
pub(super) struct WrittenName {
    /// The name.
    pub name: TableName,
    /// Whether it is a temporary table or view that the statement makes.
    pub is_temporary: bool,
}

impl Lexed {
    /// Cuts `text` into tokens.
    ///
    /// # Errors
    /// A quote or comment that is never closed: what is wrong, and where.
    pub fn of(text: &str) -> Result<Self, (String, usize)> {
        let offsets = Offsets::of(text);
        let raw = Tokenizer::new(&PostgreSqlDialect {}, text)
            .with_unescape(false)
            .tokenize_with_location()
            .map_err(|error| (error.message, offsets.byte(text, error.location)))?;
        let tokens = raw
            .into_iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
            .map(|token| {
                let span = Span::new(offsets.byte(text, token.span.start), offsets.byte(text, token.span.end));
                Placed { token, span }
            })
            .collect();
        Ok(Self { tokens })
    }

    /// Returns every `$name`.
    pub fn parameters(&self) -> impl Iterator<Item = (String, Span)> + '_ {
        self.tokens.iter().filter_map(|placed| match &placed.token.token {
            Token::Placeholder(name) => Some((name.trim_start_matches('$').to_owned(), placed.span)),
            _ => None,
        })
    }

    /// Returns every `{partition}` inside a literal.
    pub fn placeholders(&self, text: &str) -> Vec<Span> {
        const WORD: &str = "{partition}";
        let is_literal = |token: &Token| {
            matches!(
                token,
                Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) | Token::DollarQuotedString(_)
            )
        };
        let literals = self.tokens.iter().filter(|placed| is_literal(&placed.token.token));
        literals
            .flat_map(|placed| {
                let start = placed.span.start;
                let found = text[start..placed.span.end].match_indices(WORD);
                found.map(move |(at, _)| Span::new(start + at, start + at + WORD.len())).collect::<Vec<_>>()
            })
            .collect()
    }

    /// Returns the statements; a `;` with nothing before it is none.
    pub fn statements(&self) -> Vec<StatementTokens<'_>> {
        self.tokens
            .split(|placed| placed.token.token == Token::SemiColon)
            .filter(|placed| !placed.is_empty())
            .map(|placed| StatementTokens {
                placed,
                tokens: placed.iter().map(|placed| (placed.token.clone(), placed.span)).collect(),
            })
            .collect()
    }
}

impl StatementTokens<'_> {
    /// Returns where the statement stands.
    pub fn span(&self) -> Span {
        let (first, last) = (&self.placed[0], &self.placed[self.placed.len() - 1]);
        Span::new(first.span.start, last.span.end)
    }

    /// Returns the first word in upper case; of a query in brackets, the first word inside them.
    pub fn first(&self) -> String {
        (0..self.placed.len()).map(|at| self.word(at)).find(|word| word != "(").unwrap_or_default()
    }

    /// Returns whether the statement prepares the session and writes nothing that stays.
    pub fn is_setup(&self) -> bool {
        match self.first().as_str() {
            "SET" => true,
            "CREATE" => self.written().is_some_and(|written| written.is_temporary),
            _ => false,
        }
    }

    /// Returns whether the statement can read tables.
    pub fn has_reads(&self) -> bool {
        (0..self.placed.len()).any(|at| matches!(self.word(at).as_str(), "FROM" | "JOIN" | "USING" | "TABLE"))
    }

    /// Returns the place of a word inside a query that changes rows: of a WITH, or SELECT INTO.
    pub fn writes_inside(&self) -> Option<Span> {
        let begins = |at: usize| at == 0 || self.word(at - 1) == "(" || self.word(at - 1) == ")";
        (0..self.placed.len())
            .find(|at| match self.word(*at).as_str() {
                "INSERT" | "UPDATE" | "DELETE" | "MERGE" => begins(*at),
                "INTO" => !matches!(self.word(at.saturating_sub(1)).as_str(), "INSERT" | "MERGE"),
                _ => false,
            })
            .map(|at| self.placed[at].span)
    }

    /// Returns the table or view that the statement writes.
    pub fn written(&self) -> Option<WrittenName> {
        let is_temporary =
            (1..self.placed.len().min(5)).any(|at| matches!(self.word(at).as_str(), "TEMP" | "TEMPORARY"));
        let is_relation = (1..self.placed.len().min(6)).any(|at| matches!(self.word(at).as_str(), "TABLE" | "VIEW"));
        let begins = match self.first().as_str() {
            "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "TRUNCATE" => 1,
            "CREATE" | "ALTER" | "DROP" if is_relation => 1,
            _ => return None,
        };
        let start = (begins..self.placed.len()).find(|at| !BEFORE_NAME.contains(&self.word(*at).as_str()))?;
        let is_temporary = is_temporary && self.first() == "CREATE";
        Some(WrittenName { name: self.dotted_name(start)?, is_temporary })
    }

    fn dotted_name(&self, start: usize) -> Option<TableName> {
        let mut parts = Vec::new();
        let mut end = start;
        while let Token::Word(word) = &self.placed.get(end)?.token.token {
            parts.push(word.value.clone());
            match self.placed.get(end + 1) {
                Some(next) if next.token.token == Token::Period => end += 2,
                _ => break,
            }
        }
        let span = Span::new(self.placed[start].span.start, self.placed[end.min(self.placed.len() - 1)].span.end);
        (!parts.is_empty()).then_some(TableName { parts, span })
    }

    /// Returns the unquoted word at `at` in upper case, or the symbol.
    fn word(&self, at: usize) -> String {
        match self.placed.get(at).map(|placed| &placed.token.token) {
            Some(Token::Word(word)) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
            Some(Token::Word(_)) | None => String::new(),
            Some(other) => other.to_string(),
        }
    }
}

/// From sqlparser's lines and columns (in characters) to bytes.
struct Offsets {
    lines: Vec<usize>,
}

impl Offsets {
    fn of(text: &str) -> Self {
        let mut lines = vec![0];
        lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Self { lines }
    }

    fn byte(&self, text: &str, location: Location) -> usize {
        let line = usize::try_from(location.line).unwrap_or(1).max(1);
        let column = usize::try_from(location.column).unwrap_or(1).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(text.len());
        text[start..].char_indices().nth(column - 1).map_or(text.len(), |(at, _)| start + at)
    }
}
