//! The tables that a decoder writes: made where they are missing, looked at where they are there.
//!
//! Invariant: a rollup that is made here is filled from its base in the same commit, so that what folds into it later
//! finds the truth.

use std::sync::{Mutex, PoisonError};

use pintail_core::diagnostic::nearest;
use pintail_core::schema::{Column, types_equal};
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_engine::EngineError;
use pintail_engine::lake::{self, TableFacts};

use super::outcome::PassError;
use super::shard::Shard;
use super::source::Spec;
use crate::commit::{change_tables, make_table};
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

impl PreparedTarget {
    /// Returns the tables, by schema and name, that hold what it says.
    pub fn tables(&self) -> impl Iterator<Item = (&str, &str)> {
        std::iter::once((SCHEMA, self.target.table.as_str())).chain(self.rollup_table())
    }

    /// Returns the rollup's table by schema and name.
    pub fn rollup_table(&self) -> Option<(&str, &str)> {
        self.rollup.as_ref().map(|rollup| (SCHEMA, rollup.table.0.as_str()))
    }
}

/// Makes what is missing of the decoder's tables.
pub fn prepare(writer: &Writer, decoder: &dyn Decoder, spec: &Spec) -> Result<Vec<PreparedTarget>, PassError> {
    // The shards of a process begin at once, and one must not drop another layout while the next makes its own.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
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
    if let Some(shard) = shard.filter(|shard| rollup.key().iter().all(|column| !column.eq_ignore_ascii_case(&shard.by)))
    {
        let what = format!(
            "shards by `{}` cannot have rollups of their own: it is none of {}",
            shard.by,
            rollup.key().join(", ")
        );
        return Err(PassError::TargetShape { table: rollup.table().to_owned(), what });
    }
    drop_other_layout(writer, rollup.table(), shard.map_or(0, |shard| shard.of))?;
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

/// Drops the tables and the view of a rollup that was kept for another number of shards; 0 is for none. All of it is made
/// anew from the base, and what would stay would be wrong: rows of one key in two tables, or none of them in the view.
fn drop_other_layout(writer: &Writer, rollup: &str, shards: u32) -> Result<(), EngineError> {
    let found: Vec<(String, bool)> = lake::list_tables(writer.session(), writer.alias())?
        .into_iter()
        .filter(|(schema, ..)| schema == SCHEMA)
        .filter(|(_, name, ..)| name == rollup || is_shard_of(name, rollup))
        .map(|(_, name, _, is_view)| (name, is_view))
        .collect();
    let wanted: Vec<String> = (0..shards).map(|index| shard_table(rollup, index)).collect();
    let is_wanted = |(name, is_view): &(String, bool)| match name == rollup {
        true => *is_view == (0 < shards),
        false => wanted.contains(name),
    };
    // Shards that are missing from a layout of fewer make its view wrong, too.
    let is_whole = wanted.iter().all(|name| found.iter().any(|(there, _)| there == name));
    let has_view = found.iter().any(|(name, is_view)| name == rollup && *is_view);
    if found.iter().all(is_wanted) && (is_whole || !has_view) {
        return Ok(());
    }
    tracing::warn!(rollup, shards, "the rollup was kept for another number of shards and is made anew");
    let drop = |(name, is_view): &(String, bool)| {
        let kind = if *is_view { "VIEW" } else { "TABLE" };
        let relation = Relation::in_catalog(writer.alias(), SCHEMA, name);
        Statement::new("drop a rollup of other shards", format!("DROP {kind} IF EXISTS {relation}"))
    };
    // The view first: it reads the others.
    let (views, tables): (Vec<_>, Vec<_>) = found.iter().partition(|(_, is_view)| *is_view);
    let statements: Vec<Statement> = views.into_iter().chain(tables).map(drop).collect();
    change_tables(writer, &format!("drop {rollup} of other shards"), &statements)
}

fn is_shard_of(name: &str, rollup: &str) -> bool {
    let number = name.strip_prefix(rollup).and_then(|rest| rest.strip_prefix("_s"));
    number.is_some_and(|number| number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()))
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
