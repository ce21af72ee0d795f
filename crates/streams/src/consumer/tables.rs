//! The tables that a decoder writes: made where they are missing, looked at where they are there.
//!
//! Invariant: a rollup that is made here is filled from its base in the same commit, so that what folds into it later
//! finds the truth.

use pintail_core::diagnostic::nearest;
use pintail_core::schema::{Column, types_equal};
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_engine::lake::{self, TableFacts};

use super::outcome::PassError;
use super::shard::Shard;
use super::source::Spec;
use crate::commit::make_table;
use crate::decoder::{Decoder, Target};
use crate::rollup::{shard_table, union_view};
use crate::writer::Writer;

/// The schema of targets and rollups.
const SCHEMA: &str = "main";

/// A target as this consumer writes it.
pub struct PreparedTarget {
    /// What the decoder says of it.
    pub target: Target,
    /// The table.
    pub base: Relation,
    /// The part of the base that this shard's rollup is about, as it stands after FROM.
    pub base_of_shard: String,
    /// The rollup's table, of this shard.
    pub rollup: Option<Relation>,
}

/// Makes what is missing of the decoder's tables.
pub fn prepare(writer: &Writer, decoder: &dyn Decoder, spec: &Spec) -> Result<Vec<PreparedTarget>, PassError> {
    decoder.targets().into_iter().map(|target| prepare_target(writer, target, spec)).collect()
}

fn prepare_target(writer: &Writer, target: Target, spec: &Spec) -> Result<PreparedTarget, PassError> {
    let base = Relation::in_catalog(writer.alias(), SCHEMA, &target.table);
    let create = create(&base, &target.columns, &target.partitioned_by, &target.sorted_by);
    make_table(writer, SCHEMA, &target.table, &create)?;
    check_shape(writer, &target)?;
    let rollup = match &target.rollup {
        None => None,
        Some(_) => Some(prepare_rollups(writer, &target, &base, spec.shard.as_ref())?),
    };
    let base_of_shard = base_of(&base, spec.shard.as_ref());
    Ok(PreparedTarget { target, base, base_of_shard, rollup })
}

/// Makes the rollup of every shard, and the view over them; returns this shard's.
fn prepare_rollups(
    writer: &Writer,
    target: &Target,
    base: &Relation,
    shard: Option<&Shard>,
) -> Result<Relation, PassError> {
    let rollup = target.rollup.as_deref().expect("the caller has looked");
    let relation = |name: &str| Relation::in_catalog(writer.alias(), SCHEMA, name);
    let make = |name: &str, shard: Option<&Shard>| {
        let table = relation(name);
        let mut statements = create(&table, &rollup.columns(), &[], &rollup.sorted_by());
        statements.extend(rollup.rebuild(&base_of(base, shard), &table.to_string()));
        make_table(writer, SCHEMA, name, &statements)
    };
    let Some(shard) = shard else {
        make(rollup.table(), None)?;
        return Ok(relation(rollup.table()));
    };
    let mut tables = Vec::new();
    for index in 0..shard.of {
        let name = shard_table(rollup.table(), index);
        make(&name, Some(&Shard { index, ..shard.clone() }))?;
        tables.push(relation(&name).to_string());
    }
    let view = union_view(&relation(rollup.table()).to_string(), rollup, &tables);
    make_table(writer, SCHEMA, rollup.table(), &[view])?;
    Ok(relation(&shard_table(rollup.table(), shard.index)))
}

/// Returns the base, or the shard's part of it, as it stands after FROM.
fn base_of(base: &Relation, shard: Option<&Shard>) -> String {
    match shard {
        None => base.to_string(),
        Some(shard) => format!("(SELECT * FROM {base} WHERE {})", shard.condition()),
    }
}

fn create(table: &Relation, columns: &[Column], partitioned_by: &[String], sorted_by: &[String]) -> Vec<Statement> {
    let columns: Vec<String> =
        columns.iter().map(|column| format!("  {} {}", Ident::new(&column.name), column.data_type)).collect();
    let mut statements =
        vec![Statement::new("make the table", format!("CREATE TABLE {table} (\n{}\n)", columns.join(",\n")))];
    for (what, list) in [("PARTITIONED", partitioned_by), ("SORTED", sorted_by)] {
        if !list.is_empty() {
            let sql = format!("ALTER TABLE {table} SET {what} BY ({})", list.join(", "));
            statements.push(Statement::new("lay the table out", sql));
        }
    }
    statements
}

/// Refuses a table that is there and cannot take the decoder's rows.
fn check_shape(writer: &Writer, target: &Target) -> Result<(), PassError> {
    let facts = lake::table_facts(writer.session(), writer.alias(), SCHEMA, &target.table)?;
    let Some(facts) = facts else { return Ok(()) };
    let refused = |what: String| PassError::TargetShape { table: target.table.clone(), what };
    if facts.is_view {
        return Err(refused("it is a view".to_owned()));
    }
    for wanted in &target.columns {
        match facts.schema.column(&wanted.name) {
            None => return Err(refused(missing_column(&facts, wanted))),
            Some(found) if !types_equal(&found.data_type, &wanted.data_type) => {
                return Err(refused(format!(
                    "column `{}` is {} instead of {}",
                    wanted.name, found.data_type, wanted.data_type
                )));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn missing_column(facts: &TableFacts, wanted: &Column) -> String {
    let names = facts.schema.columns.iter().map(|column| column.name.as_str());
    let near = nearest(&wanted.name, names).map(|near| format!("; there is `{near}`")).unwrap_or_default();
    format!("it has no column `{}` of type {}{near}", wanted.name, wanted.data_type)
}
