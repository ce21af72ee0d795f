//! Rollback: the content of an older snapshot, written again. Which shape it takes, and the statements.
//!
//! Invariant: what is written is what was there, value for value, or nothing is. A whole table takes its old shape back,
//! by DELETE and INSERT where the shape is the same and as a new generation where it is not. A slice takes the shape that
//! the rest of the table has: columns that came since are NULL in it, and a slice that the table can no longer hold is
//! refused.

use std::collections::BTreeMap;

use indoc::formatdoc;

use super::diff::{ShapeChange, shape_changes};
use super::strategy::{Layout, Slice, Target, append, create, rebuild, replace};
use super::{Relation, Statement};
use crate::schema::{CastClass, DataType, Schema, cast_class, types_equal};

/// How the old content fits the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The table is gone: it is made again.
    Create,
    /// The table keeps its identity; columns are cast where it has a wider type now (lower-cased name to type).
    Keep {
        /// The casts.
        casts: BTreeMap<String, String>,
        /// Columns of the table that the old rows do not have.
        missing: Vec<String>,
    },
    /// A new table of the old shape takes the place of the table.
    Rebuild {
        /// What changes in the columns.
        changes: Vec<ShapeChange>,
    },
    /// The table cannot hold the old rows.
    Refuse {
        /// Why, a line per column.
        reasons: Vec<String>,
    },
}

/// Decides how rows of the shape `old` come back into a table of the shape `now` (`None` when it is gone).
pub fn fit(old: &Schema, now: Option<&Schema>, is_whole: bool) -> Fit {
    let Some(now) = now else { return Fit::Create };
    if is_whole {
        let changes = shape_changes(now, old);
        return match changes.is_empty() {
            true => Fit::Keep { casts: BTreeMap::new(), missing: Vec::new() },
            false => Fit::Rebuild { changes },
        };
    }
    let mut casts = BTreeMap::new();
    let mut reasons = Vec::new();
    for column in &old.columns {
        let Some(current) = now.column(&column.name) else {
            reasons.push(format!("`{}` {} is no column of the table any more", column.name, column.data_type));
            continue;
        };
        if types_equal(&column.data_type, &current.data_type) {
            continue;
        }
        match cast_class(&DataType::of(&column.data_type), &DataType::of(&current.data_type)) {
            CastClass::Identical | CastClass::Widening => {
                casts.insert(column.name.to_ascii_lowercase(), current.data_type.clone());
            }
            _ => reasons.push(format!("`{}` was {} and is {}", column.name, column.data_type, current.data_type)),
        }
    }
    if !reasons.is_empty() {
        return Fit::Refuse { reasons };
    }
    let missing = now.columns.iter().filter(|column| old.column(&column.name).is_none());
    Fit::Keep { casts, missing: missing.map(|column| column.name.clone()).collect() }
}

/// Returns the query of the old content: `relation` stands after FROM, with its version.
pub fn old_content(relation: &str, slice: Option<&Slice>) -> String {
    let condition = slice.map_or_else(String::new, |slice| format!("\nWHERE {}", slice.predicate(None)));
    formatdoc! {"
        SELECT *
        FROM {relation}{condition}"}
}

/// Returns the statement that stages the old content.
pub fn stage_old(stage: &Relation, relation: &str, slice: Option<&Slice>) -> Statement {
    let sql = format!("CREATE OR REPLACE TEMP TABLE {stage} AS\n{}", old_content(relation, slice));
    Statement::new("stage the older version", sql)
}

/// Returns the statements that write the staged old content; none when it is refused.
pub fn restore(fit: &Fit, target: &Target, layout: &Layout, slice: Option<&Slice>) -> Vec<Statement> {
    let (mut statements, insert) = match fit {
        Fit::Refuse { .. } => return Vec::new(),
        Fit::Keep { .. } => return replace(target, slice),
        Fit::Create => (create(target, layout), append(target)),
        Fit::Rebuild { .. } => (rebuild(target, layout, None), append(target)),
    };
    statements.extend(insert);
    statements
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::partition::PartitionKey;
    use crate::sql::strategy::{PartitionBy, projection};

    fn schema(columns: &[(&str, &str)]) -> Schema {
        Schema::of(columns)
    }

    #[test]
    fn a_whole_table_takes_its_old_shape_back() {
        let old = schema(&[("id", "INTEGER"), ("v", "VARCHAR")]);
        assert_eq!(fit(&old, None, true), Fit::Create);
        assert!(matches!(fit(&old, Some(&schema(&[("v", "TEXT"), ("ID", "INT")])), true), Fit::Keep { .. }));
        let Fit::Rebuild { changes } = fit(&old, Some(&schema(&[("id", "BIGINT"), ("n", "DATE")])), true) else {
            panic!("another shape is a new table")
        };
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(changes, ["~ id BIGINT -> INTEGER", "+ v VARCHAR", "- n DATE"]);
    }

    #[test]
    fn a_slice_fits_the_table_as_it_is_or_is_refused() {
        let old = schema(&[("id", "INTEGER"), ("v", "VARCHAR")]);
        let wider = schema(&[("id", "BIGINT"), ("v", "VARCHAR"), ("new", "DATE")]);
        let casts = BTreeMap::from([("id".to_owned(), "BIGINT".to_owned())]);
        assert_eq!(fit(&old, Some(&wider), false), Fit::Keep { casts, missing: vec!["new".to_owned()] });
        let other = schema(&[("id", "SMALLINT")]);
        let reasons = vec![
            "`id` was INTEGER and is SMALLINT".to_owned(),
            "`v` VARCHAR is no column of the table any more".to_owned(),
        ];
        assert_eq!(fit(&old, Some(&other), false), Fit::Refuse { reasons });
    }

    fn text(fit: &Fit, slice: Option<&Slice>) -> String {
        let target = Target {
            write: Relation::in_catalog("w", "main", "t"),
            stage: Relation::temp("_pt_stage_0"),
            projection: projection(&schema(&[("id", "INTEGER")]), &BTreeMap::new(), &[], None),
        };
        let layout = Layout { partition_by: PartitionBy::Identity("p".to_owned()), ..Layout::default() };
        let statements = restore(fit, &target, &layout, slice);
        statements.iter().map(|statement| format!("-- {}\n{};\n", statement.purpose, statement.sql)).collect()
    }

    #[test]
    fn the_same_shape_is_deleted_and_inserted() {
        let slice = Slice::identity("p", &PartitionKey("2026-01-01".to_owned()));
        let keep = Fit::Keep { casts: BTreeMap::new(), missing: Vec::new() };
        expect![[r#"
            -- delete the slice
            DELETE FROM "w"."main"."t"
            WHERE "p" = '2026-01-01';
            -- insert the staged rows
            INSERT INTO "w"."main"."t" BY NAME
            SELECT
              "id"
            FROM "_pt_stage_0";
        "#]]
        .assert_eq(&text(&keep, Some(&slice)));
    }

    #[test]
    fn another_shape_is_a_new_table_with_its_partitions() {
        expect![[r#"
            -- replace the table by one of the new shape
            CREATE OR REPLACE TABLE "w"."main"."t" AS
            SELECT
              "id"
            FROM "_pt_stage_0"
            LIMIT 0;
            -- partition the table
            ALTER TABLE "w"."main"."t"
            SET PARTITIONED BY ("p");
            -- insert the staged rows
            INSERT INTO "w"."main"."t" BY NAME
            SELECT
              "id"
            FROM "_pt_stage_0";
        "#]]
        .assert_eq(&text(&Fit::Rebuild { changes: Vec::new() }, None));
        assert_eq!(text(&Fit::Refuse { reasons: Vec::new() }, None), "");
    }

    #[test]
    fn the_old_content_is_read_with_its_version() {
        let slice = Slice::identity("p", &PartitionKey("x".to_owned()));
        expect![[r#"
            CREATE OR REPLACE TEMP TABLE "_pt_stage_0" AS
            SELECT *
            FROM t AT (VERSION => 3)
            WHERE "p" = 'x'"#]]
        .assert_eq(&stage_old(&Relation::temp("_pt_stage_0"), "t AT (VERSION => 3)", Some(&slice)).sql);
    }
}
