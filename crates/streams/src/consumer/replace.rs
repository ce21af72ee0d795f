//! A replay's own part of a window: what older versions of the decoder wrote of the events that are read again goes, in the
//! commit that writes what the present version makes of them.
//!
//! Invariant: after the commit, the rows of these events are those of the present version alone, also where it makes fewer
//! rows, or none. An event whose payload could not be read, or that the source no longer holds, keeps its rows: what it would
//! have come to is not known. Doing it again changes nothing, because nothing is older any more.
//!
//! Several events may come to the same row, and it is written once, as the row of one of them. So those that may are read
//! together, and an older row also gives way to its like of the present version, whichever event either is from.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use indoc::formatdoc;
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_engine::{EngineError, Session, WriteTransaction};

use super::decoding::DecodedWindow;
use super::read::Window;
use super::tables::PreparedTarget;
use super::write::same_identity;
use crate::decoder::{Decoder, Parent, Target};

/// The events of a window whose older rows go, in a temp table of the writer's session.
#[derive(Debug)]
pub struct StagedParents {
    /// None when there are no events.
    columns: Vec<Parent>,
    /// The version of the decoder that reads them now.
    version: u32,
}

/// The name of a parent's column wherever it is staged: no table of a person has it, so that it can stand unqualified.
fn staged_name(index: usize) -> String {
    format!("_pt_parent_{index}")
}

/// Returns the condition that the row around it has one of the parents in `staged`; `column` names its columns.
fn has_parent(staged: &str, columns: &[Parent], column: impl Fn(&Parent) -> String) -> String {
    let same =
        |(index, parent): (usize, &Parent)| format!("{} IS NOT DISTINCT FROM {}", staged_name(index), column(parent));
    let same: Vec<String> = columns.iter().enumerate().map(same).collect();
    format!("EXISTS (\n  SELECT 1\n  FROM {staged}\n  WHERE {}\n)", same.join(" AND "))
}

fn parents() -> Relation {
    Relation::temp("_pt_parents")
}

fn gone_of(index: usize) -> Relation {
    Relation::temp(&format!("_pt_gone_{index}"))
}

/// Puts the events of `window` into a temp table, without those that could not be read.
pub fn stage_parents(
    session: &Session,
    decoder: &dyn Decoder,
    targets: &[PreparedTarget],
    window: &Window,
    decoded: &DecodedWindow,
) -> Result<StagedParents, EngineError> {
    let (columns, reads, stage) = (decoder.parent(), decoder.reads(), parents());
    let type_of = |parent: &Parent| {
        let all = targets.iter().flat_map(|target| &target.target.columns);
        let found = all.into_iter().find(|column| column.name.eq_ignore_ascii_case(&parent.target));
        found.map_or("VARCHAR", |column| column.data_type.as_str())
    };
    let place = |parent: &Parent| {
        reads.iter().position(|read| *read == parent.source).expect("a decoder reads what its rows say of their event")
    };
    let places: Vec<usize> = columns.iter().map(place).collect();
    let batches: Vec<RecordBatch> = window
        .batches
        .iter()
        .enumerate()
        .map(|(index, batch)| {
            let asked = batch.project(&places).expect("the columns were asked for");
            without_unread(&asked, index, decoded)
        })
        .collect();
    let schema = match batches.first() {
        Some(batch) => batch.schema(),
        None => return Ok(StagedParents { columns: Vec::new(), version: decoder.version() }),
    };
    let read = session.stage("read the events", &Relation::temp("_pt_events"), &schema, &batches)?;
    let typed: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(index, parent)| {
            format!("CAST({} AS {}) AS {}", Ident::new(&parent.source), type_of(parent), staged_name(index))
        })
        .collect();
    let sql = format!(
        "CREATE OR REPLACE TEMP TABLE {stage} AS\nSELECT DISTINCT {}\nFROM {}",
        typed.join(", "),
        read.relation()
    );
    session.run(&Statement::new("keep the events", sql))?;
    Ok(StagedParents { columns, version: decoder.version() })
}

/// Leaves out the rows of batch `index` whose payload could not be read.
fn without_unread(batch: &RecordBatch, index: usize, decoded: &DecodedWindow) -> RecordBatch {
    let unread = decoded.dead.iter().filter(|(of, dead)| *of == index && dead.is_unread);
    let mut is_read = vec![true; batch.num_rows()];
    unread.for_each(|(_, dead)| is_read[dead.row] = false);
    match is_read.contains(&false) {
        false => batch.clone(),
        true => filter_record_batch(batch, &BooleanArray::from(is_read)).expect("there is one answer for each row"),
    }
}

/// Returns the condition that a row of the source, which stands unqualified, is in `range` or is a twin of one there: its event
/// is the same as far as the identity of `decoder`'s rows can tell. What an event came to is replaced as a whole, so all of
/// its rows are read; and so are events that may come to the same rows, since one may have had what another has now.
///
/// `rows` are all rows of the source, as a FROM item with its WHERE, which has the condition of the range appended.
pub fn with_twins(session: &Session, decoder: &dyn Decoder, rows: &str, range: &str) -> Result<String, EngineError> {
    let targets = decoder.targets();
    let names = |target: &Target, name: &str| target.identity.columns.iter().any(|own| own.eq_ignore_ascii_case(name));
    let is_told = |parent: &Parent| targets.iter().all(|target| names(target, &parent.target));
    let columns: Vec<Parent> = decoder.parent().into_iter().filter(is_told).collect();
    debug_assert!(!columns.is_empty(), "a part of an event's name is in the identity of all of its rows");
    let twins = Relation::temp("_pt_twins");
    let names: Vec<String> = columns
        .iter()
        .enumerate()
        .map(|(index, parent)| format!("{} AS {}", Ident::new(&parent.source), staged_name(index)))
        .collect();
    let of_source = |parent: &Parent| Ident::new(&parent.source).to_string();
    let sql = formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {twins} AS
        WITH _pt_inside AS (
          SELECT {names}
          FROM {rows} AND {range}
        )
        SELECT DISTINCT {names}
        FROM {rows} AND ({range}) IS NOT TRUE AND {is_inside}",
        names = names.join(", "),
        is_inside = has_parent("_pt_inside", &columns, of_source),
    };
    match session.run(&Statement::new("look for events with rows outside of the range", sql))? {
        0 => Ok(range.to_owned()),
        _ => Ok(format!("(({range}) OR {})", has_parent(&twins.to_string(), &columns, of_source))),
    }
}

impl StagedParents {
    /// Deletes what older versions wrote of these events, and the older rows that `staged`, the decoded ones, say anew; keeps
    /// them for [`refresh`]. Returns how many rows.
    pub fn take_out(
        &self,
        transaction: &WriteTransaction<'_>,
        prepared: &PreparedTarget,
        index: usize,
        staged: Option<&Relation>,
    ) -> Result<u64, EngineError> {
        let Some(version) = &prepared.target.identity.version else { return Ok(0) };
        if self.columns.is_empty() {
            return Ok(0);
        }
        let (base, gone) = (&prepared.base, gone_of(index));
        let of_base = |parent: &Parent| format!("_pt_base.{}", Ident::new(&parent.target));
        let is_of_event = has_parent(&parents().to_string(), &self.columns, of_base);
        let is_replaced = match staged {
            None => is_of_event,
            Some(staged) => {
                let same = same_identity(&prepared.target);
                format!("({is_of_event} OR EXISTS (\n  SELECT 1\n  FROM {staged} AS _pt_new\n  WHERE {same}\n))")
            }
        };
        let is_older = format!("_pt_base.{} < {} AND {is_replaced}", Ident::new(version), self.version);
        let keep = formatdoc! {"
            CREATE OR REPLACE TEMP TABLE {gone} AS
            SELECT {columns}
            FROM {base} AS _pt_base
            WHERE {is_older}",
            columns = but_version(&prepared.target),
        };
        let kept = transaction.run(&Statement::new("find what older versions wrote", keep))?;
        if kept == 0 {
            return Ok(0);
        }
        let delete = format!("DELETE FROM {base} AS _pt_base\nWHERE {is_older}");
        let deleted = transaction.run(&Statement::new("take out what older versions wrote", delete))?;
        if deleted != kept {
            let detail = format!("{kept} rows were found in {base}, and {deleted} deleted");
            return Err(EngineError::Answer { purpose: "take out what older versions wrote", detail });
        }
        Ok(deleted)
    }
}

/// Brings the rollup of a target up to date after rows were taken out of it and `fresh` was written. Keys whose rows are the
/// same as before, but for the version, need nothing.
pub fn refresh(
    transaction: &WriteTransaction<'_>,
    prepared: &PreparedTarget,
    index: usize,
    fresh: Option<&Relation>,
) -> Result<(), EngineError> {
    let Some((rollup, table)) = prepared.target.rollup.as_deref().zip(prepared.rollup.as_ref()) else { return Ok(()) };
    let (columns, gone) = (but_version(&prepared.target), gone_of(index));
    let key: Vec<String> = rollup.key().iter().map(|name| Ident::new(name).to_string()).collect();
    let key = key.join(", ");
    let changed = Relation::temp("_pt_changed");
    let query = match fresh {
        None => format!("SELECT DISTINCT {key}\nFROM {gone}"),
        Some(fresh) => formatdoc! {"
            SELECT {key}
            FROM (SELECT {columns} FROM {gone} EXCEPT ALL SELECT {columns} FROM {fresh})
            UNION
            SELECT {key}
            FROM (SELECT {columns} FROM {fresh} EXCEPT ALL SELECT {columns} FROM {gone})"},
    };
    let sql = format!("CREATE OR REPLACE TEMP TABLE {changed} AS\n{query}");
    if transaction.run(&Statement::new("find the keys that have changed", sql))? == 0 {
        return Ok(());
    }
    for statement in rollup.refresh(&prepared.base_of_shard, &changed.to_string(), &table.to_string()) {
        transaction.run(&statement)?;
    }
    Ok(())
}

/// Returns the columns of a target without that of the version.
fn but_version(target: &Target) -> String {
    let is_version = |name: &str| target.identity.version.as_ref().is_some_and(|version| version == name);
    let columns = target.columns.iter().filter(|column| !is_version(&column.name));
    columns.map(|column| Ident::new(&column.name).to_string()).collect::<Vec<_>>().join(", ")
}
