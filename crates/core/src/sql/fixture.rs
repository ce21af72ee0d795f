//! Parsed bodies for tests: what the engine found in each script, written by `fixtures/make.py`.

use std::sync::LazyLock;

use serde_json::Value;

use super::body::{Parameter, ParsedBody, ParsedStatement, StatementKind, TableName};
use crate::source::Span;

static BODIES: LazyLock<Value> = LazyLock::new(|| {
    let mut reader = serde_json::Deserializer::from_str(include_str!("../../fixtures/bodies.json"));
    serde::Deserialize::deserialize(&mut reader).expect("make.py writes JSON")
});

/// Returns the parsed body of `script`, which must be the first argument of a `check…` call in a test.
pub(crate) fn parsed(script: &str) -> ParsedBody {
    let body = BODIES.get(script).unwrap_or_else(|| panic!("run fixtures/make.py: it does not know\n{script}"));
    let parameter = |value: &Value| Parameter {
        name: value[0].as_str().unwrap().to_owned(),
        span: Span::new(offset(&value[1]), offset(&value[2])),
    };
    ParsedBody {
        statements: items(&body["statements"]).map(statement).collect(),
        error: None,
        parameters: items(&body["parameters"]).map(parameter).collect(),
        placeholders: items(&body["placeholders"]).map(span).collect(),
        functions: Vec::new(),
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn offset(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn span(value: &Value) -> Span {
    Span::new(offset(&value[0]), offset(&value[1]))
}

fn table(value: &Value) -> TableName {
    let parts = items(&value["parts"]).map(|part| part.as_str().unwrap().to_owned()).collect();
    TableName { parts, span: span(&value["span"]) }
}

fn statement(value: &Value) -> ParsedStatement {
    let query = value.get("query").filter(|query| query.is_object()).cloned();
    ParsedStatement {
        span: span(&value["span"]),
        kind: kind(value["kind"].as_str().unwrap(), &value["args"], value["word"].as_str().unwrap()),
        query,
        query_span: value.get("query_span").map(span),
        other_reads: items(&value["other_reads"]).map(table).collect(),
    }
}

fn kind(name: &str, args: &Value, word: &str) -> StatementKind {
    let text = |index: usize| args[index].as_str().unwrap_or_default().to_owned();
    let lower = |index: usize| text(index).to_lowercase();
    match name {
        "attach" => StatementKind::Attach { target: text(0), alias: args[1].as_str().map(str::to_owned) },
        "detach" => StatementKind::Detach,
        "use" => StatementKind::Use { parts: table(&args[0]).parts },
        "install" => StatementKind::Install,
        "load" => StatementKind::Load { what: text(0) },
        "set_variable" => StatementKind::Set { name: text(0), variable: true },
        "set" => StatementKind::Set { name: text(0), variable: false },
        "pragma" => StatementKind::Pragma { name: text(0) },
        "create" => {
            StatementKind::Create { object: lower(1), temporary: args[0].is_string(), name: Some(table(&args[2])) }
        }
        "insert" => StatementKind::Insert { target: table(&args[0]) },
        "update" => StatementKind::Update { target: table(&args[0]) },
        "delete" => StatementKind::Delete { target: table(&args[0]) },
        "merge" => StatementKind::Merge { target: table(&args[0]) },
        "copy_to" => StatementKind::CopyTo { target: text(0) },
        "copy_from" => StatementKind::CopyFrom { table: table(&args[0]), source: text(1) },
        "drop" => StatementKind::Drop { object: lower(0), name: table(&args[1]) },
        "alter" => StatementKind::Alter { name: table(&args[0]) },
        "comment" => StatementKind::Comment,
        "begin" => StatementKind::Begin,
        "commit" => StatementKind::Commit,
        "rollback" => StatementKind::Rollback,
        "call" => StatementKind::Call,
        "query" => StatementKind::Query,
        _ => StatementKind::Other { word: word.to_owned() },
    }
}
