//! What DuckDB's own parser says: the AST of queries in bulk, the number of statements, and syntax errors of the rest.

use std::ffi::CString;

use serde_json::Value;

use crate::bare::BareConnection;
use crate::classify::EngineMessage;
use crate::error::EngineError;
use crate::session::Session;

/// DuckDB's answer for one query text.
pub enum Answer {
    /// The AST: the object with `node`.
    Query(Value),
    /// It parses, but it is no SELECT, or not exactly one.
    NotAQuery,
    /// It does not parse.
    Error {
        /// The engine's message.
        message: String,
        /// The byte offset in the text.
        position: Option<usize>,
    },
}

/// Serialises every query in one statement.
pub fn serialize_queries(session: &Session, queries: &[String]) -> Result<Vec<Answer>, EngineError> {
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let texts = serde_json::to_string(queries)
        .map_err(|error| EngineError::Answer { purpose: "parse the bodies", detail: error.to_string() })?;
    let rows = session.rows_with(
        "parse the bodies",
        "SELECT json_serialize_sql(text)
         FROM (SELECT unnest(texts) AS text, generate_subscripts(texts, 1) AS position
               FROM (SELECT $1::JSON::VARCHAR[] AS texts))
         ORDER BY position",
        &[&texts],
        |row| row.get::<_, String>(0),
    )?;
    rows.iter().map(|row| read_answer(row)).collect()
}

fn read_answer(text: &str) -> Result<Answer, EngineError> {
    let bad = |detail: String| EngineError::Answer { purpose: "parse the bodies", detail };
    let mut answer: Value = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
    if answer["error"] != Value::Bool(true) {
        let statements = answer["statements"].as_array_mut().ok_or_else(|| bad("no statements".to_owned()))?;
        return Ok(match (statements.pop(), statements.is_empty()) {
            (Some(query), true) => Answer::Query(query),
            _ => Answer::NotAQuery,
        });
    }
    if answer["error_type"] == "not implemented" {
        return Ok(Answer::NotAQuery);
    }
    let message = answer["error_message"].as_str().unwrap_or("syntax error").to_owned();
    let position = answer["position"].as_str().and_then(|position| position.parse().ok());
    Ok(Answer::Error { message, position })
}

/// Returns how many statements DuckDB finds in `text`, or its syntax error.
pub fn count_statements(text: &str) -> Result<usize, EngineMessage> {
    extract(text)
}

/// Returns DuckDB's syntax error for one statement, if it has one.
pub fn syntax_error(text: &str) -> Option<EngineMessage> {
    extract(text).err()
}

fn extract(text: &str) -> Result<usize, EngineMessage> {
    let Ok(text) = CString::new(text) else {
        return Err(EngineMessage::parse("Parser Error: a NUL byte cannot stand in SQL"));
    };
    match BareConnection::shared() {
        Some(parser) => parser.count_statements(&text).map_err(|error| EngineMessage::parse(&error)),
        None => Err(EngineMessage::parse("INTERNAL Error: DuckDB could not be opened for parsing")),
    }
}
