//! Lists of things in columns: no lines, one heading, ready for eyes and for `grep`.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// How a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Returns rows under their headings, two spaces between columns, without spaces at line ends.
pub fn listing(columns: &[(&str, Align)], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let align = |(_, align): &(&str, Align)| match align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    };
    table.set_header(columns.iter().map(|column| Cell::new(column.0).set_alignment(align(column))));
    for row in rows {
        debug_assert_eq!(row.len(), columns.len(), "every row has every column");
        table.add_row(row.into_iter().zip(columns).map(|(text, column)| Cell::new(text).set_alignment(align(column))));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    trim_lines(&table.to_string())
}

/// Returns the text without spaces at the ends of its lines, with a line end after the last.
pub fn trim_lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{Align, listing};

    #[test]
    fn numbers_stand_right_and_lines_end_at_their_last_letter() {
        let rows = vec![vec!["orders".into(), "4".into(), "ok".into()], vec!["days".into(), "1,200".into(), "".into()]];
        expect![[r#"
            script   rows
            orders      4  ok
            days    1,200
        "#]]
        .assert_eq(&listing(&[("script", Align::Left), ("rows", Align::Right), ("", Align::Left)], rows));
    }
}
