//! Writing a window: staged before the transaction, inserted in it where no row has its identity.
//!
//! Invariant: writing a window twice comes to what writing it once does, however old its rows are. A row's time only says
//! which files of the base need not be looked at.

use indoc::formatdoc;
use pintail_core::schema::types_equal;
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_engine::batches::PLACE;
use pintail_engine::{EngineError, Session, Stage, WriteTransaction};

use super::decoding::DecodedWindow;
use super::ranges::{Range, ranges_of};
use super::replace::{self, StagedParents};
use super::tables::PreparedTarget;
use crate::dead_letter::{self, StagedLetters};
use crate::decoder::Target;

/// A window that statements can read.
#[derive(Debug)]
pub struct StagedWindow {
    targets: Vec<StagedTarget>,
    letters: StagedLetters,
    /// The events of which older rows are taken out.
    replaced: Option<StagedParents>,
}

#[derive(Debug)]
struct StagedTarget {
    /// Where the rows are, one of each identity.
    stage: Relation,
    /// How many rows were decoded.
    decoded: u64,
    /// How many there are without those that were decoded twice.
    rows: u64,
    /// Ranges of the time column that hold all rows, as text; empty when the target has no such column.
    ranges: Vec<Range>,
    /// Keeps the decoded rows.
    #[expect(dead_code, reason = "the stage reads them for as long as this is here")]
    lent: Option<Stage>,
}

/// What is done about rows that are there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// They stay.
    #[default]
    Keep,
    /// What older versions of the decoder wrote of the same events goes, and so do older rows that are made anew.
    ReplaceOlder,
}

/// What a window brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows inserted, per target in their order.
    pub inserted: Vec<u64>,
    /// Rows that were there already, or twice in the window.
    pub duplicates: u64,
    /// Rows of older versions that were taken out.
    pub replaced: u64,
    /// Dead letters that are new.
    pub letters: u64,
}

impl StagedWindow {
    /// Returns the tables of `targets` of which writing this window changes or deletes rows.
    pub fn changes<'t>(&self, targets: &'t [PreparedTarget]) -> Vec<(&'t str, &'t str)> {
        match self.replaced {
            None => targets.iter().filter_map(PreparedTarget::rollup_table).collect(),
            Some(_) => targets.iter().flat_map(PreparedTarget::tables).collect(),
        }
    }
}

fn stage_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_in_{index}"))
}

fn once_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_once_{index}"))
}

fn alike_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_alike_{index}"))
}

fn known_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_known_{index}"))
}

fn fresh_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_fresh_{index}"))
}

/// Makes a decoded window readable for statements.
pub fn stage(
    session: &Session,
    targets: &[PreparedTarget],
    window: &DecodedWindow,
    letters: StagedLetters,
    replaced: Option<StagedParents>,
) -> Result<StagedWindow, EngineError> {
    let mut staged = Vec::new();
    for (index, (prepared, batches)) in targets.iter().zip(&window.rows).enumerate() {
        let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows == 0 {
            staged.push(StagedTarget { stage: stage_of(index), decoded: 0, rows, ranges: Vec::new(), lent: None });
            continue;
        }
        let lent = session.stage("stage the decoded rows", &stage_of(index), &batches[0].schema(), batches)?;
        check_identity(session, &prepared.target, lent.relation())?;
        let ranges = ranges_of(session, &prepared.target, lent.relation())?;
        let (stage, once) = keep_once(session, &prepared.target, index, rows)?;
        staged.push(StagedTarget { stage, decoded: rows, rows: once, ranges, lent: Some(lent) });
    }
    Ok(StagedWindow { targets: staged, letters, replaced })
}

/// Refuses decoded rows whose identity has other types than the target: by its hash, no row would be known.
fn check_identity(session: &Session, target: &Target, stage: &Relation) -> Result<(), EngineError> {
    let names = idents(target.identity.columns.iter());
    let described = session.describe(&format!("SELECT {names} FROM {stage}"))?;
    for (name, found) in &described {
        let wanted = target.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        if let Some(wanted) = wanted.filter(|wanted| !types_equal(found, &wanted.data_type)) {
            let detail =
                format!("the decoder's column `{name}` is {found}, and that of its table {}", wanted.data_type);
            return Err(EngineError::Answer { purpose: "stage the decoded rows", detail });
        }
    }
    Ok(())
}

/// Keeps one row of each identity, and returns where and how many. Redeliveries within one window are rare, so they are
/// looked for by a hash; where it finds none, nothing is copied.
fn keep_once(session: &Session, target: &Target, index: usize, rows: u64) -> Result<(Relation, u64), EngineError> {
    let stage = stage_of(index);
    let names = idents(target.identity.columns.iter());
    let twins = formatdoc! {"
        SELECT count(*)
        FROM (
          SELECT 1
          FROM {stage}
          GROUP BY hash({names})
          HAVING count(*) > 1
        )"};
    let twins: i64 = session.one("look for rows that were decoded twice", &twins, |row| row.get(0))?;
    if twins == 0 {
        return Ok((stage, rows));
    }
    let once = once_of(index);
    let sql = formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {once} AS
        SELECT *
        FROM {stage}
        QUALIFY row_number() OVER (PARTITION BY {names} ORDER BY {all}) = 1",
        all = idents(target.columns.iter().map(|column| &column.name)),
    };
    let kept = session.run(&Statement::new("keep one row of each identity", sql))?;
    Ok((once, kept))
}

fn idents<'n>(names: impl Iterator<Item = &'n String>) -> String {
    names.map(|name| Ident::new(name).to_string()).collect::<Vec<_>>().join(", ")
}

/// Writes a staged window in an open transaction.
///
/// `folding` is told when a rollup is about to be folded and when that is done.
pub fn write(
    transaction: &WriteTransaction<'_>,
    alias: &str,
    targets: &[PreparedTarget],
    staged: &StagedWindow,
    mut folding: impl FnMut(bool),
) -> Result<Written, EngineError> {
    let mut written = Written::default();
    for (index, (prepared, rows)) in targets.iter().zip(&staged.targets).enumerate() {
        let replaced = match &staged.replaced {
            None => 0,
            Some(parents) => parents.take_out(transaction, prepared, index, (0 < rows.rows).then_some(&rows.stage))?,
        };
        let inserted = match rows.rows {
            0 => None,
            _ => insert_fresh(transaction, prepared, rows, index, replaced == 0, &mut folding)?,
        };
        if 0 < replaced {
            replace::refresh(transaction, prepared, index, inserted.as_ref().map(|(fresh, _)| fresh))?;
        }
        let inserted = inserted.map_or(0, |(_, count)| count);
        written.inserted.push(inserted);
        written.replaced += replaced;
        written.duplicates += rows.decoded - inserted;
    }
    written.letters = dead_letter::write(transaction, alias, &staged.letters)?;
    Ok(written)
}

/// Inserts the staged rows that are not there yet, and returns where they lie in the session and how many they are; `None`
/// when all are there. The rollup is folded, unless the caller refreshes it.
fn insert_fresh(
    transaction: &WriteTransaction<'_>,
    prepared: &PreparedTarget,
    staged: &StagedTarget,
    index: usize,
    folds: bool,
    folding: &mut impl FnMut(bool),
) -> Result<Option<(Relation, u64)>, EngineError> {
    let known = match transaction.run(&find_alike(prepared, staged, index))? {
        0 => 0,
        _ => transaction.run(&find_known(prepared, staged, index))?,
    };
    if known == staged.rows {
        return Ok(None);
    }
    let fresh = match known {
        0 => staged.stage.clone(),
        _ => {
            transaction.run(&leave_out_known(staged, index))?;
            fresh_of(index)
        }
    };
    let rollup = prepared.target.rollup.as_deref().zip(prepared.rollup.as_ref());
    if let (Some((rollup, table)), true) = (rollup, folds) {
        folding(true);
        for statement in rollup.fold(&prepared.base_of_shard, &fresh.to_string(), &table.to_string()) {
            transaction.run(&statement)?;
        }
        folding(false);
    }
    let names = idents(prepared.target.columns.iter().map(|column| &column.name));
    let sql = format!("INSERT INTO {} BY NAME\nSELECT {names}\nFROM {fresh}", prepared.base);
    let inserted = transaction.run(&Statement::new("insert the new rows", sql))?;
    Ok(Some((fresh, inserted)))
}

/// Returns the condition that `_pt_base` and `_pt_new` are the same row.
pub fn same_identity(target: &Target) -> String {
    let same = |name: &String| format!("_pt_base.{0} IS NOT DISTINCT FROM _pt_new.{0}", Ident::new(name));
    target.identity.columns.iter().map(same).collect::<Vec<_>>().join(" AND ")
}

impl StagedTarget {
    /// Returns the conditions of the ranges of time on the table `of`; together they hold for every staged row.
    fn conditions(&self, target: &Target, of: &str) -> Vec<String> {
        let Some(time) = &target.identity.time else { return vec!["true".to_owned()] };
        let column = target.columns.iter().find(|column| column.name.eq_ignore_ascii_case(time));
        let data_type = column.map_or("TIMESTAMPTZ", |column| column.data_type.as_str());
        self.ranges.iter().map(|range| range.condition(of, time, data_type)).collect()
    }

    /// Returns the query of `part` for each range of time, one after the other; it is given the conditions that rows of the
    /// stage and of the base are in that range.
    fn by_range(&self, target: &Target, part: impl Fn(&str, &str) -> String) -> String {
        let (new, base) = (self.conditions(target, "_pt_new"), self.conditions(target, "_pt_base"));
        new.iter().zip(&base).map(|(new, base)| part(new, base)).collect::<Vec<_>>().join("\nUNION ALL\n")
    }
}

/// Returns the statement that finds the staged rows which may be there already, by a hash of their identity: one number is
/// compared much faster than all of its columns, and mostly none is found.
fn find_alike(prepared: &PreparedTarget, staged: &StagedTarget, index: usize) -> Statement {
    let hash_of = |rows: &str| {
        let names = prepared.target.identity.columns.iter().map(|name| format!("{rows}.{}", Ident::new(name)));
        format!("hash({})", names.collect::<Vec<_>>().join(", "))
    };
    let part = |in_new: &str, in_base: &str| {
        formatdoc! {"
            SELECT _pt_new.*
            FROM {stage} AS _pt_new
            WHERE {in_new} AND {hash_of_new} IN (
              SELECT {hash_of_base}
              FROM {base} AS _pt_base
              WHERE {in_base}
            )",
            stage = staged.stage,
            hash_of_new = hash_of("_pt_new"),
            hash_of_base = hash_of("_pt_base"),
            base = prepared.base,
        }
    };
    let query = staged.by_range(&prepared.target, part);
    let sql = format!("CREATE OR REPLACE TEMP TABLE {} AS\n{query}", alike_of(index));
    Statement::new("find rows like those that are there", sql)
}

/// Returns the statement that finds the staged rows whose identity the base has, by their places in the stage.
fn find_known(prepared: &PreparedTarget, staged: &StagedTarget, index: usize) -> Statement {
    let part = |in_new: &str, in_base: &str| {
        formatdoc! {"
            SELECT _pt_new.{PLACE}
            FROM {alike} AS _pt_new
            WHERE {in_new} AND EXISTS (
              SELECT 1
              FROM {base} AS _pt_base
              WHERE {in_base} AND {same}
            )",
            alike = alike_of(index),
            base = prepared.base,
            same = same_identity(&prepared.target),
        }
    };
    let query = staged.by_range(&prepared.target, part);
    let sql = format!("CREATE OR REPLACE TEMP TABLE {} AS\n{query}", known_of(index));
    Statement::new("find the rows that are there already", sql)
}

/// Returns the statement that copies the other rows.
fn leave_out_known(staged: &StagedTarget, index: usize) -> Statement {
    let sql = formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {fresh} AS
        SELECT *
        FROM {stage}
        WHERE {PLACE} NOT IN (SELECT {PLACE} FROM {known})",
        fresh = fresh_of(index),
        stage = staged.stage,
        known = known_of(index),
    };
    Statement::new("leave out the rows that are there already", sql)
}
