//! The columns on which a body asks for its partition: the last name in each `in_partition(…)`.
//!
//! A change of an upstream slice is a change of the slice of the same time only when both are about the same column.

use std::collections::BTreeSet;

use super::scan::{LexemeKind, Lexemes};

/// Returns the columns, in lower case; empty when the body has no `in_partition`.
pub fn window_columns(text: &str) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    let mut lexemes = Lexemes::from(text, 0);
    while let Some(lexeme) = lexemes.next() {
        if !lexeme.is_word("in_partition") {
            continue;
        }
        let mut last = None;
        let mut depth = 0_i32;
        for inner in lexemes.by_ref() {
            depth += i32::from(inner.is_symbol("(")) - i32::from(inner.is_symbol(")"));
            if depth <= 0 {
                break;
            }
            match inner.kind {
                LexemeKind::Word => last = Some(inner.text.to_lowercase()),
                LexemeKind::QuotedName => {
                    last = Some(inner.text.trim_matches('"').replace("\"\"", "\"").to_lowercase())
                }
                _ => {}
            }
        }
        columns.extend(last);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::window_columns;

    #[test]
    fn the_last_name_in_each_filter_is_its_column() {
        let found = |text: &str| window_columns(text).into_iter().collect::<Vec<_>>().join(" ");
        assert_eq!(
            found("SELECT * FROM o WHERE in_partition(o.Ordered_At) AND in_partition(\"Paid At\")"),
            "ordered_at paid at"
        );
        assert_eq!(found("SELECT 'in_partition(x)' -- in_partition(y)\n FROM o WHERE IN_PARTITION((lake.o.ts))"), "ts");
        assert_eq!(found("SELECT 1"), "");
    }
}
