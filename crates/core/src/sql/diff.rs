//! The statements of a comparison of two versions of a table, or of any two queries of one shape.
//!
//! Rows become groups: by the key when there is one, else by the hash of the whole row. One pass over both sides counts
//! the rows of each group and sums the hashes of what is compared, so memory is that of the groups, and it spills.
//! Invariant: a comparison is only of the columns that both sides have, in a type that holds both; NULL equals NULL. Equal
//! means equal by 64-bit hash of the row. Deliberately not here: what the numbers mean, and how rows are shown.

use std::fmt;

use indoc::formatdoc;

use super::{Ident, Statement};
use crate::schema::{CastClass, Column, DataType, Scalar, Schema, cast_class, types_equal};

/// The table of the groups that differ.
pub const GROUPS: &str = "_pt_diff";

/// What happened to a column between two versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeChange {
    /// Only the newer version has it.
    Added(Column),
    /// Only the older version has it.
    Removed(Column),
    /// It has another type.
    Retyped {
        /// The name, as the newer version spells it.
        column: String,
        /// The older type.
        from: String,
        /// The newer type.
        to: String,
    },
}

/// As a line of a list.
impl fmt::Display for ShapeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeChange::Added(column) => write!(f, "+ {} {}", column.name, column.data_type),
            ShapeChange::Removed(column) => write!(f, "- {} {}", column.name, column.data_type),
            ShapeChange::Retyped { column, from, to } => write!(f, "~ {column} {from} -> {to}"),
        }
    }
}

/// Returns what happened to the columns: those of the newer version in its order, then those that are gone.
pub fn shape_changes(before: &Schema, after: &Schema) -> Vec<ShapeChange> {
    let newer = after.columns.iter().filter_map(|column| match before.column(&column.name) {
        None => Some(ShapeChange::Added(column.clone())),
        Some(old) if types_equal(&old.data_type, &column.data_type) => None,
        Some(old) => Some(ShapeChange::Retyped {
            column: column.name.clone(),
            from: old.data_type.clone(),
            to: column.data_type.clone(),
        }),
    });
    let gone = before.columns.iter().filter(|old| after.column(&old.name).is_none());
    newer.chain(gone.cloned().map(ShapeChange::Removed)).collect()
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// A relation, or a query in brackets, with its own version and filter.
    pub from: String,
    /// Its columns.
    pub schema: Schema,
}

/// The comparison of two sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    before: Side,
    after: Side,
    /// The compared columns: the name in each side, and the type for both when theirs differ.
    columns: Vec<Compared>,
    /// The key; empty when rows are compared whole.
    key: Vec<Compared>,
}

/// A column that both sides have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    before: Ident,
    after: Ident,
    cast: Option<String>,
}

impl Compared {
    fn name(&self) -> &Ident {
        &self.after
    }

    fn on(&self, ident: &Ident) -> String {
        match &self.cast {
            Some(data_type) => format!("CAST({ident} AS {data_type})"),
            None => ident.to_string(),
        }
    }
}

/// Which side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Before,
    After,
}

impl Comparison {
    /// Returns the comparison of two sides by `key`; a key that is not on both sides is none.
    pub fn new(before: Side, after: Side, key: &[String]) -> Self {
        let columns: Vec<Compared> = after
            .schema
            .columns
            .iter()
            .filter_map(|column| {
                let old = before.schema.column(&column.name)?;
                Some(Compared {
                    before: Ident::new(&old.name),
                    after: Ident::new(&column.name),
                    cast: common_type(&old.data_type, &column.data_type),
                })
            })
            .collect();
        let find = |name: &String| columns.iter().find(|column| column.after.0.eq_ignore_ascii_case(name)).cloned();
        let key: Option<Vec<Compared>> = key.iter().map(find).collect();
        Self { before, after, columns, key: key.unwrap_or_default() }
    }

    /// Returns the names of the key's columns; empty when rows are compared whole.
    pub fn key(&self) -> Vec<&str> {
        self.key.iter().map(|column| column.name().0.as_str()).collect()
    }

    /// Returns the queries of the two fingerprints: the number of rows, and sum and xor of their hashes.
    pub fn fingerprints(&self) -> [String; 2] {
        [Which::Before, Which::After].map(|which| {
            formatdoc! {"
                SELECT count(*), coalesce(sum({hash}::HUGEINT), 0)::VARCHAR, coalesce(bit_xor({hash}), 0)::VARCHAR
                FROM {from}",
                hash = self.hash(which),
                from = self.side(which).from,
            }
        })
    }

    /// Returns the statement that makes the table of the groups that differ.
    pub fn groups(&self) -> Statement {
        let grouped = self.group_names();
        let sql = formatdoc! {"
            CREATE OR REPLACE TEMP TABLE {groups} AS
            SELECT {grouped},
              count(*) FILTER (NOT _pt_after) AS _pt_before_rows,
              count(*) FILTER (_pt_after) AS _pt_after_rows
            FROM (
              SELECT {before}, {before_hash} AS _pt_hash, false AS _pt_after FROM {from_before}
              UNION ALL
              SELECT {after}, {after_hash} AS _pt_hash, true AS _pt_after FROM {from_after}
            )
            GROUP BY {grouped}
            HAVING {differs}",
            groups = Ident::new(GROUPS),
            before = self.group_list(Which::Before),
            after = self.group_list(Which::After),
            before_hash = self.hash(Which::Before),
            after_hash = self.hash(Which::After),
            differs = match self.key.is_empty() {
                true => "_pt_before_rows <> _pt_after_rows",
                // Rows that cancel each other out are the same rows.
                false => "_pt_before_rows <> _pt_after_rows\n  OR sum(CASE WHEN _pt_after THEN _pt_hash::HUGEINT ELSE -_pt_hash::HUGEINT END) <> 0",
            },
            from_before = self.before.from,
            from_after = self.after.from,
        };
        Statement::new("compare the rows", sql)
    }

    /// Returns the query of the numbers: rows added, rows removed, and rows on either side of groups that changed.
    pub fn counts(&self) -> String {
        let groups = Ident::new(GROUPS);
        if self.key.is_empty() {
            return formatdoc! {"
                SELECT coalesce(sum(greatest(_pt_after_rows - _pt_before_rows, 0)), 0)::BIGINT,
                  coalesce(sum(greatest(_pt_before_rows - _pt_after_rows, 0)), 0)::BIGINT, 0::BIGINT, 0::BIGINT
                FROM {groups}"};
        }
        formatdoc! {"
            SELECT coalesce(sum(_pt_after_rows) FILTER (_pt_before_rows = 0), 0)::BIGINT,
              coalesce(sum(_pt_before_rows) FILTER (_pt_after_rows = 0), 0)::BIGINT,
              coalesce(sum(_pt_before_rows) FILTER (_pt_before_rows > 0 AND _pt_after_rows > 0), 0)::BIGINT,
              coalesce(sum(_pt_after_rows) FILTER (_pt_before_rows > 0 AND _pt_after_rows > 0), 0)::BIGINT
            FROM {groups}"}
    }

    /// Returns the query of at most `limit` groups of each kind with their rows on both sides, every value as text:
    /// `change` (`added`, `removed` or `changed`), a number that groups rows, `is_after`, how often the row stands there,
    /// then [`Comparison::shown_columns`].
    pub fn sample(&self, limit: u64) -> String {
        let order = self.group_names();
        let kinds = [
            ("added", "_pt_after_rows > _pt_before_rows", "_pt_before_rows = 0"),
            ("removed", "_pt_before_rows > _pt_after_rows", "_pt_after_rows = 0"),
        ];
        let is_keyed = !self.key.is_empty();
        let mut picked: Vec<String> = kinds
            .iter()
            .map(|(kind, whole, keyed)| pick(kind, if is_keyed { keyed } else { whole }, &order, limit))
            .collect();
        if is_keyed {
            picked.push(pick("changed", "_pt_before_rows > 0 AND _pt_after_rows > 0", &order, limit));
        }
        formatdoc! {"
            WITH picked AS (
              SELECT *, row_number() OVER (ORDER BY _pt_change, {order}) AS _pt_group
              FROM (
                {picked}
              )
            )
            {before}
            UNION ALL
            {after}
            ORDER BY 2, 3, 5",
            picked = picked.join("\n    UNION ALL\n    "),
            before = self.sample_side(Which::Before, limit),
            after = self.sample_side(Which::After, limit),
        }
    }

    /// Returns the names of the columns of a sample after its first four: those of the newer side, then those that only
    /// the older one has.
    pub fn shown_columns(&self) -> Vec<String> {
        let gone = self.before.schema.columns.iter().filter(|old| self.after.schema.column(&old.name).is_none());
        self.after.schema.columns.iter().chain(gone).map(|column| column.name.clone()).collect()
    }

    fn sample_side(&self, which: Which, limit: u64) -> String {
        let side = self.side(which);
        let shown: Vec<String> = self
            .shown_columns()
            .iter()
            .map(|name| match side.schema.column(name) {
                Some(column) => format!("CAST(_pt_row.{} AS VARCHAR)", Ident::new(&column.name)),
                None => "NULL::VARCHAR".to_owned(),
            })
            .collect();
        let (is_after, has_rows) = match which {
            Which::Before => (false, "_pt_before_rows > 0"),
            Which::After => (true, "_pt_after_rows > 0"),
        };
        // Whole rows are shown once, on the side that has more of them; a key that is not unique may have many.
        let (wanted, times, most) = match (self.key.is_empty(), which) {
            (true, Which::Before) => ("_pt_change = 'removed'", "_pt_before_rows - _pt_after_rows", 1),
            (true, Which::After) => ("_pt_change = 'added'", "_pt_after_rows - _pt_before_rows", 1),
            (false, _) => (has_rows, "1::BIGINT", limit.max(1)),
        };
        formatdoc! {"
            SELECT _pt_change, _pt_group, {is_after}, {times}, _pt_place, {columns}
            FROM (
              SELECT _pt_rows.*, picked._pt_change, picked._pt_group, picked._pt_before_rows, picked._pt_after_rows,
                row_number() OVER (PARTITION BY picked._pt_group ORDER BY {hash}) AS _pt_place
              FROM (SELECT *, {list} FROM {from}) AS _pt_rows
              JOIN picked ON {on}
              WHERE {wanted}
            ) AS _pt_row
            WHERE _pt_place <= {most}",
            columns = shown.join(", "),
            hash = self.hash_of("_pt_rows.", which),
            list = self.group_list(which),
            from = side.from,
            on = self.join_condition(),
        }
    }

    /// Returns one side.
    fn side(&self, which: Which) -> &Side {
        match which {
            Which::Before => &self.before,
            Which::After => &self.after,
        }
    }

    /// The hash of the compared columns; of no columns, a constant.
    fn hash(&self, which: Which) -> String {
        self.hash_of("", which)
    }

    fn hash_of(&self, prefix: &str, which: Which) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|column| {
                let ident = match which {
                    Which::Before => &column.before,
                    Which::After => &column.after,
                };
                match &column.cast {
                    Some(data_type) => format!("CAST({prefix}{ident} AS {data_type})"),
                    None => format!("{prefix}{ident}"),
                }
            })
            .collect();
        if columns.is_empty() { "0::UBIGINT".to_owned() } else { format!("hash({})", columns.join(", ")) }
    }

    /// The expressions that make a group, each under its name.
    fn group_list(&self, which: Which) -> String {
        let list = self.group_expressions(which);
        list.into_iter().map(|(expression, name)| format!("{expression} AS {name}")).collect::<Vec<_>>().join(", ")
    }

    fn group_expressions(&self, which: Which) -> Vec<(String, String)> {
        if self.key.is_empty() {
            return vec![(self.hash(which), "_pt_key_0".to_owned())];
        }
        let expression = |column: &Compared| match which {
            Which::Before => column.on(&column.before),
            Which::After => column.on(&column.after),
        };
        self.key.iter().enumerate().map(|(place, column)| (expression(column), format!("_pt_key_{place}"))).collect()
    }

    fn group_names(&self) -> String {
        let count = self.key.len().max(1);
        (0..count).map(|place| format!("_pt_key_{place}")).collect::<Vec<_>>().join(", ")
    }

    fn join_condition(&self) -> String {
        let count = self.key.len().max(1);
        let one = |place| format!("_pt_rows._pt_key_{place} IS NOT DISTINCT FROM picked._pt_key_{place}");
        (0..count).map(one).collect::<Vec<_>>().join(" AND ")
    }
}

fn pick(kind: &str, condition: &str, order: &str, limit: u64) -> String {
    let groups = Ident::new(GROUPS);
    format!("(SELECT '{kind}' AS _pt_change, * FROM {groups} WHERE {condition} ORDER BY {order} LIMIT {limit})")
}

/// The type in which values of two types are compared: the wider one; of two kinds of numbers, what the newer column has
/// made of the older value; else their text. `None` when they are one.
fn common_type(before: &str, after: &str) -> Option<String> {
    let (old, new) = (DataType::of(before), DataType::of(after));
    if old == new {
        return None;
    }
    if cast_class(&old, &new) <= CastClass::Widening {
        return Some(after.to_owned());
    }
    if cast_class(&new, &old) <= CastClass::Widening {
        return Some(before.to_owned());
    }
    let common = if is_number(&old) && is_number(&new) { "DOUBLE" } else { "VARCHAR" };
    Some(common.to_owned())
}

fn is_number(data_type: &DataType) -> bool {
    use Scalar::{
        BigInt, Double, Float, HugeInt, Integer, SmallInt, TinyInt, UBigInt, UHugeInt, UInteger, USmallInt, UTinyInt,
    };
    let is_scalar = |scalar: &Scalar| {
        matches!(
            scalar,
            TinyInt
                | SmallInt
                | Integer
                | BigInt
                | HugeInt
                | UTinyInt
                | USmallInt
                | UInteger
                | UBigInt
                | UHugeInt
                | Float
                | Double
        )
    };
    match data_type {
        DataType::Decimal { .. } => true,
        DataType::Scalar(scalar) => is_scalar(scalar),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn side(from: &str, columns: &[(&str, &str)]) -> Side {
        let column = |(name, data_type): &(&str, &str)| Column { name: (*name).into(), data_type: (*data_type).into() };
        Side { from: from.into(), schema: Schema { columns: columns.iter().map(column).collect() } }
    }

    fn comparison(key: &[&str]) -> Comparison {
        let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
        Comparison::new(
            side("t AT (VERSION => 1)", &[("id", "INTEGER"), ("a", "VARCHAR"), ("gone", "DATE")]),
            side("t AT (VERSION => 2)", &[("ID", "BIGINT"), ("a", "VARCHAR"), ("new", "DOUBLE")]),
            &key,
        )
    }

    #[test]
    fn rows_are_grouped_by_the_key_in_a_type_that_holds_both_sides() {
        expect![[r#"
            CREATE OR REPLACE TEMP TABLE "_pt_diff" AS
            SELECT _pt_key_0,
              count(*) FILTER (NOT _pt_after) AS _pt_before_rows,
              count(*) FILTER (_pt_after) AS _pt_after_rows
            FROM (
              SELECT CAST("id" AS BIGINT) AS _pt_key_0, hash(CAST("id" AS BIGINT), "a") AS _pt_hash, false AS _pt_after FROM t AT (VERSION => 1)
              UNION ALL
              SELECT CAST("ID" AS BIGINT) AS _pt_key_0, hash(CAST("ID" AS BIGINT), "a") AS _pt_hash, true AS _pt_after FROM t AT (VERSION => 2)
            )
            GROUP BY _pt_key_0
            HAVING _pt_before_rows <> _pt_after_rows
              OR sum(CASE WHEN _pt_after THEN _pt_hash::HUGEINT ELSE -_pt_hash::HUGEINT END) <> 0"#]]
        .assert_eq(&comparison(&["id"]).groups().sql);
    }

    #[test]
    fn without_a_key_on_both_sides_whole_rows_are_compared() {
        assert_eq!(comparison(&["gone"]).key(), Vec::<&str>::new());
        assert!(comparison(&[]).groups().sql.contains("GROUP BY _pt_key_0"));
        assert!(comparison(&[]).groups().sql.contains(r#"hash(CAST("id" AS BIGINT), "a") AS _pt_key_0"#));
        assert_eq!(comparison(&["ID"]).key(), ["ID"]);
    }

    #[test]
    fn columns_come_go_and_change_their_types() {
        let before = Schema::of(&[("id", "INTEGER"), ("a", "INT8"), ("gone", "DATE")]);
        let after = Schema::of(&[("new", "DOUBLE"), ("ID", "BIGINT"), ("a", "BIGINT")]);
        let changes: Vec<String> = shape_changes(&before, &after).iter().map(ToString::to_string).collect();
        assert_eq!(changes, ["+ new DOUBLE", "~ ID INTEGER -> BIGINT", "- gone DATE"]);
    }

    #[test]
    fn a_sample_shows_every_column_of_both_sides() {
        assert_eq!(comparison(&["id"]).shown_columns(), ["ID", "a", "new", "gone"]);
    }

    #[test]
    fn types_that_do_not_fit_are_compared_as_text() {
        assert_eq!(common_type("INTEGER", "INTEGER"), None);
        assert_eq!(common_type("INTEGER", "BIGINT").as_deref(), Some("BIGINT"));
        assert_eq!(common_type("BIGINT", "INTEGER").as_deref(), Some("BIGINT"));
        assert_eq!(common_type("BIGINT", "DOUBLE").as_deref(), Some("DOUBLE"));
        assert_eq!(common_type("DATE", "BIGINT").as_deref(), Some("VARCHAR"));
    }
}
