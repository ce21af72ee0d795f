//! Choices, counts, byte sizes, plain words and script paths.

use crate::annotation::draft::Problem;
use crate::annotation::tokens::Value;
use crate::diagnostic::{Code, nearest};

/// Reads one of several words; `what` names the choice, such as "a trigger mode".
pub fn read_choice<T: Copy>(value: &Value<'_>, what: &str, choices: &[(&str, T)]) -> Result<T, Problem> {
    if let Some((_, meaning)) = choices.iter().find(|(word, _)| *word == value.text) {
        return Ok(*meaning);
    }
    let words: Vec<String> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
    let expected = match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    };
    let problem =
        Problem::new(Code::BAD_VALUE, value.span, format!("`{}` is not {what}; expected {expected}", value.text));
    Err(match nearest(&value.text, choices.iter().map(|(word, _)| *word)) {
        Some(near) => problem.with_help(format!("did you mean `{near}`?")),
        None => problem,
    })
}

/// Reads a whole number of at least one; `what` names it.
pub fn read_count(value: &Value<'_>, what: &str) -> Result<u64, Problem> {
    match value.text.parse::<u64>() {
        Ok(0) => Err(Problem::new(Code::BAD_VALUE, value.span, format!("{what} must be at least 1"))),
        Ok(count) => Ok(count),
        Err(_) => {
            let message = format!("`{}` is not {what}; expected a whole number", value.text);
            Err(Problem::new(Code::BAD_VALUE, value.span, message))
        }
    }
}

/// Reads a number of bytes: `1048576`, `64MB`, `1GiB`.
pub fn read_bytes(value: &Value<'_>) -> Result<u64, Problem> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KIB", 1 << 10),
        ("MIB", 1 << 20),
        ("GIB", 1 << 30),
    ];
    let digits = value.text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.text.split_at(digits);
    let unit = unit.trim().to_ascii_uppercase();
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let bytes = number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        Problem::new(Code::BAD_VALUE, value.span, format!("`{}` is not a number of bytes", value.text))
            .with_help("write a whole number with a unit, such as `64MB`")
    })
}

/// Reads a plain word: letters, digits, `_`, `-`, `.`, `:`, `/`; `what` names it.
pub fn read_word(value: &Value<'_>, what: &str) -> Result<String, Problem> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    if let Some(stranger) = value.text.chars().find(|c| !is_plain(*c)) {
        let message = format!("`{}` cannot stand in {what}", stranger.escape_debug());
        return Err(Problem::new(Code::BAD_VALUE, value.span, message).with_help("one word per line; repeat the line"));
    }
    if value.text.is_empty() {
        return Err(Problem::new(Code::BAD_VALUE, value.span, format!("{what} is empty")));
    }
    Ok(value.text.clone().into_owned())
}

/// Reads the path of a script or macro library, relative to the project.
pub fn read_script_path(value: &Value<'_>) -> Result<String, Problem> {
    let refuse = |message: &str| {
        Err(Problem::new(Code::BAD_VALUE, value.span, message)
            .with_help("write the path below the project's root with `/`, such as `hooks/notify`"))
    };
    let path = &*value.text;
    if path.is_empty() {
        return refuse("the path is empty");
    }
    if path.contains("://") {
        return refuse("expected the path of a script, found a URI");
    }
    if path.starts_with('/') || path.contains('\\') {
        return refuse("the path must be relative to the project, with `/` between its parts");
    }
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return refuse("the path must have no empty, `.` or `..` part");
    }
    Ok(path.to_owned())
}
