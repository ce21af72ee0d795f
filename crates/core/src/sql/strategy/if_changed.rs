//! `if_changed`: nothing is written when nothing differs, and otherwise only what differs, so that the change feed holds
//! real changes.
//!
//! The sides are compared before the transaction, which stays short; that the table is still the one that was compared
//! is what the check inside the transaction makes sure of. A replace compares fingerprints (count, sum and xor of row
//! hashes) and then rows as a multiset; a merge compares the rows of the staged keys. Two values are the same when they
//! are not distinct *and* look the same: NULL is NULL and NaN is NaN, but `0.0` is not `-0.0`, nor one month 30 days.

use indoc::formatdoc;

use super::append::insert;
use super::{Slice, Target, replace};
use crate::annotation::WriteStrategy;
use crate::sql::{Ident, Relation, Statement};

/// Below how many rows a table with consumers is compared without being asked to.
const SMALL: u64 = 1_000_000;

/// One column of the table after the write, as the two sides know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedColumn {
    /// Its name in the table.
    pub name: String,
    /// Its type in the table.
    pub data_type: String,
    /// Whether the query gives it; what it does not give is written as NULL.
    pub is_staged: bool,
    /// Whether the table has it already; in an added column every row holds NULL.
    pub is_live: bool,
}

/// The two sides of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The stage and the table.
    pub target: &'a Target,
    /// The table's columns.
    pub columns: &'a [ComparedColumn],
    /// The rows of the table that are compared; all without one.
    pub slice: Option<&'a Slice>,
}

/// What is asked before the transaction of a write that may find nothing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Sent first.
    pub before: Vec<Statement>,
    /// A query of one BOOLEAN: whether nothing would change.
    pub question: Statement,
    /// Sent when something would change: it finds out what.
    pub after: Vec<Statement>,
    /// Whether the step ends when nothing would change; a write that changes the columns goes on.
    pub ends_when_same: bool,
}

impl Comparison {
    /// Returns every statement in the order in which it may be sent.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.before.iter().chain([&self.question]).chain(&self.after)
    }
}

/// What decides whether a write compares first.
#[derive(Clone, Copy, Debug)]
pub struct IfChangedFacts<'a> {
    /// `if_changed`.
    pub is_declared: bool,
    /// How the step writes.
    pub strategy: &'a WriteStrategy,
    /// Whether the step writes the whole table.
    pub is_whole: bool,
    /// Whether the script declares a key.
    pub has_key: bool,
    /// Whether somebody reads the table's change feed.
    pub has_consumers: bool,
    /// Rows in the table, when known.
    pub rows: Option<u64>,
}

/// Returns whether a write compares first: when it is asked to, and when it replaces a whole table whose change feed
/// somebody reads, with a key or of less than a million rows.
pub fn compares_first(facts: &IfChangedFacts<'_>) -> bool {
    match facts.strategy {
        WriteStrategy::Replace => {
            let is_cheap = facts.has_key || facts.rows.is_some_and(|rows| rows < SMALL);
            facts.is_declared || (facts.has_consumers && facts.is_whole && is_cheap)
        }
        WriteStrategy::Merge { .. } => facts.is_declared,
        WriteStrategy::Append | WriteStrategy::History { .. } | WriteStrategy::View | WriteStrategy::Manual => false,
    }
}

/// Returns how a replace is compared with what it would replace.
pub fn compare_replace(compared: &Compared<'_>) -> Comparison {
    let (staged, live) = (staged_rows(compared), live_rows(compared));
    let hash = row_hash(compared.columns, None);
    let question = formatdoc! {"
        SELECT (
        {staged_print}
        ) IS NOT DISTINCT FROM (
        {live_print}
        ) AS is_same",
        staged_print = indented(&fingerprint(&staged, &hash)),
        live_print = indented(&fingerprint(&live, &hash)),
    };
    Comparison {
        before: Vec::new(),
        question: Statement::new("compare the fingerprints", question),
        after: if has_row_ids(compared.columns) {
            find_differing_rows(compared.target, &staged, &live, &hash)
        } else {
            Vec::new()
        },
        ends_when_same: true,
    }
}

/// Returns the statements that write what [`compare_replace`] has found.
pub fn replace_differing(compared: &Compared<'_>) -> Vec<Statement> {
    let target = compared.target;
    if !has_row_ids(compared.columns) {
        return replace(target, compared.slice);
    }
    let difference = difference(target);
    let in_slice = in_slice(compared.slice);
    // The row's hash beside its id: DuckLake's row ids are not unique after every kind of foreign write.
    let delete = formatdoc! {"
        DELETE FROM {table} AS _pt_old
        WHERE EXISTS (
          SELECT 1
          FROM {difference} AS _pt_row
          WHERE NOT _pt_row._pt_is_new
            AND _pt_row._pt_row_id = _pt_old.rowid
            AND _pt_row._pt_hash = {hash}
        ){in_slice}",
        table = target.write,
        hash = row_hash(compared.columns, Some("_pt_old")),
    };
    let insert = formatdoc! {"
        {insert}
        WHERE rowid IN (
          SELECT _pt_row_id
          FROM {difference}
          WHERE _pt_is_new
        )",
        insert = insert(target).sql,
    };
    vec![
        Statement::new("delete the rows that are gone", delete),
        Statement::new("insert the rows that are new", insert),
    ]
}

/// Returns how a merge by `key` is compared with the rows of its keys.
pub fn compare_merge(compared: &Compared<'_>, key: &[String]) -> Comparison {
    let difference = difference(compared.target);
    let hash = row_hash(compared.columns, None);
    let keys = name_list(key);
    let find = formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {difference} AS
        WITH _pt_staged AS (
          SELECT {keys}, {hash} AS _pt_hash
          FROM (
        {staged}
          )
        )
        SELECT {staged_keys}
        FROM _pt_staged
        LEFT JOIN (
          SELECT {keys}, count(*) AS _pt_copies, min(_pt_hash) AS _pt_hash
          FROM (
            SELECT {keys}, {hash} AS _pt_hash
            FROM (
        {live}
            )
          ) AS _pt_live
          WHERE EXISTS (
            SELECT 1
            FROM _pt_staged
            WHERE {live_key}
          )
          GROUP BY {keys}
        ) AS _pt_old ON {old_key}
        WHERE _pt_old._pt_copies IS DISTINCT FROM 1
          OR _pt_staged._pt_hash <> _pt_old._pt_hash",
        staged = shifted(&staged_rows(compared), 4),
        live = shifted(&live_rows(compared), 6),
        staged_keys = names(key).map(|name| format!("_pt_staged.{name}")).collect::<Vec<_>>().join(", "),
        live_key = same_key(key, "_pt_staged", "_pt_live"),
        old_key = same_key(key, "_pt_staged", "_pt_old"),
    };
    let question = formatdoc! {"
        SELECT count(*) = 0 AS is_same
        FROM {difference}"};
    Comparison {
        before: vec![Statement::new("find the keys whose rows differ", find)],
        question: Statement::new("see whether any row differs", question),
        after: Vec::new(),
        ends_when_same: true,
    }
}

/// Returns the statements that write what [`compare_merge`] has found.
pub fn merge_differing(compared: &Compared<'_>, key: &[String]) -> Vec<Statement> {
    let difference = difference(compared.target);
    let target = compared.target;
    let delete = formatdoc! {"
        DELETE FROM {table} AS _pt_old
        WHERE EXISTS (
          SELECT 1
          FROM {difference} AS _pt_key
          WHERE {same_key}
        ){in_slice}",
        table = target.write,
        same_key = same_key(key, "_pt_key", "_pt_old"),
        in_slice = in_slice(compared.slice),
    };
    let insert = formatdoc! {"
        {insert} AS _pt_new
        WHERE EXISTS (
          SELECT 1
          FROM {difference} AS _pt_key
          WHERE {same_key}
        )",
        insert = insert(target).sql,
        same_key = same_key(key, "_pt_key", "_pt_new"),
    };
    vec![
        Statement::new("delete the rows that have changed", delete),
        Statement::new("insert the rows that are new", insert),
    ]
}

/// Returns the temp table of what differs: rows of both sides, or keys. It has its name from the stage, since several
/// stages may lie side by side.
fn difference(target: &Target) -> Relation {
    beside_stage(target, "difference")
}

/// Returns a temp table that belongs to the stage.
pub(super) fn beside_stage(target: &Target, what: &str) -> Relation {
    Relation::temp(&format!("{}_{what}", target.stage.table.0))
}

/// A column of that name hides the row's id.
fn has_row_ids(columns: &[ComparedColumn]) -> bool {
    !columns.iter().any(|column| column.name.eq_ignore_ascii_case("rowid"))
}

/// Returns the statements that leave in the difference the rows that only one side has, as often as it has them more.
fn find_differing_rows(target: &Target, staged: &str, live: &str, hash: &str) -> Vec<Statement> {
    let (rows, difference) = (beside_stage(target, "rows"), difference(target));
    let number = formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {rows} AS
        SELECT true AS _pt_is_new, _pt_row_id, {hash} AS _pt_hash
        FROM (
        {staged}
        )
        UNION ALL
        SELECT false AS _pt_is_new, _pt_row_id, {hash} AS _pt_hash
        FROM (
        {live}
        )",
        staged = indented(staged),
        live = indented(live),
    };
    let find = formatdoc! {"
        CREATE OR REPLACE TEMP TABLE {difference} AS
        SELECT _pt_is_new, _pt_row_id, _pt_hash
        FROM (
          SELECT
            _pt_is_new,
            _pt_row_id,
            _pt_hash,
            CASE WHEN _pt_is_new THEN _pt_old_copies ELSE _pt_new_copies END AS _pt_other_copies,
            row_number() OVER (PARTITION BY _pt_is_new, _pt_hash ORDER BY _pt_row_id) AS _pt_copy
          FROM {rows}
          JOIN (
            SELECT
              _pt_hash,
              count(*) FILTER (WHERE _pt_is_new) AS _pt_new_copies,
              count(*) FILTER (WHERE NOT _pt_is_new) AS _pt_old_copies
            FROM {rows}
            GROUP BY _pt_hash
            HAVING count(*) FILTER (WHERE _pt_is_new) <> count(*) FILTER (WHERE NOT _pt_is_new)
          ) USING (_pt_hash)
        )
        WHERE _pt_other_copies < _pt_copy"};
    vec![
        Statement::new("hash the rows of both sides", number),
        Statement::new("find the rows that differ", find),
        Statement::new("drop the hashes", format!("DROP TABLE {rows}")),
    ]
}

fn fingerprint(rows: &str, hash: &str) -> String {
    formatdoc! {"
        SELECT (count(*), sum(CAST(_pt_hash AS HUGEINT)), bit_xor(_pt_hash))
        FROM (
          SELECT {hash} AS _pt_hash
          FROM (
        {rows}
          )
        )",
        rows = shifted(rows, 4),
    }
}

/// Returns the query of the staged rows in the columns and types of the table.
pub(super) fn staged_rows(compared: &Compared<'_>) -> String {
    let row_id = if has_row_ids(compared.columns) { "rowid" } else { "0" };
    let column = |column: &ComparedColumn| match column.is_staged {
        true => Some(Ident::new(&column.name)),
        false => None,
    };
    formatdoc! {"
        SELECT
          _pt_row_id,
        {columns}
        FROM (
          SELECT
            {row_id} AS _pt_row_id,
        {projection}
          FROM {stage}
        )",
        columns = typed(compared.columns, column),
        projection = shifted(&compared.target.projection.to_string(), 2),
        stage = compared.target.stage,
    }
}

/// Returns the query of the live rows, an added column as NULL.
fn live_rows(compared: &Compared<'_>) -> String {
    let row_id = if has_row_ids(compared.columns) { "rowid" } else { "0" };
    let condition = compared.slice.map_or_else(String::new, |slice| format!("\nWHERE {}", slice.predicate(None)));
    formatdoc! {"
        SELECT
          {row_id} AS _pt_row_id,
        {columns}
        FROM {table}{condition}",
        columns = live_columns(compared.columns),
        table = compared.target.write,
    }
}

/// Returns the select list of the table's columns before it has those that are added, one on a line.
pub(super) fn live_columns(columns: &[ComparedColumn]) -> String {
    let column = |column: &ComparedColumn| {
        let name = Ident::new(&column.name);
        match column.is_live {
            true => format!("  {name}"),
            false => format!("  CAST(NULL AS {}) AS {name}", column.data_type),
        }
    };
    columns.iter().map(column).collect::<Vec<_>>().join(",\n")
}

fn typed(columns: &[ComparedColumn], of: impl Fn(&ComparedColumn) -> Option<Ident>) -> String {
    let column = |column: &ComparedColumn| {
        let value = of(column).map_or_else(|| "NULL".to_owned(), |name| name.to_string());
        format!("  CAST({value} AS {}) AS {}", column.data_type, Ident::new(&column.name))
    };
    columns.iter().map(column).collect::<Vec<_>>().join(",\n")
}

/// Returns the hash of a row, of `alias` when one is given.
fn row_hash(columns: &[ComparedColumn], alias: Option<&str>) -> String {
    let parts: Vec<String> = columns.iter().flat_map(|column| comparable(column, alias)).collect();
    format!("hash({})", parts.join(", "))
}

/// Returns the expressions that are all not distinct exactly when the column holds the same value. Values that the
/// engine calls equal although they look different bring what tells them apart.
pub(super) fn comparable(column: &ComparedColumn, alias: Option<&str>) -> Vec<String> {
    let prefix = alias.map(|alias| format!("{alias}.")).unwrap_or_default();
    let value = format!("{prefix}{}", Ident::new(&column.name));
    let data_type = column.data_type.to_ascii_uppercase();
    let mentions = |names: &[&str]| names.iter().any(|name| data_type.contains(name));
    if matches!(data_type.as_str(), "FLOAT" | "DOUBLE" | "REAL") {
        return vec![value.clone(), format!("{value} = 0 AND signbit({value})")];
    }
    if mentions(&["FLOAT", "DOUBLE", "REAL", "INTERVAL", "TIME WITH TIME ZONE", "TIMETZ"]) {
        return vec![value.clone(), format!("CAST({value} AS VARCHAR)")];
    }
    vec![value]
}

/// Returns the condition that two relations have the same key.
pub(super) fn same_key(key: &[String], one: &str, other: &str) -> String {
    let same = names(key).map(|name| format!("{one}.{name} IS NOT DISTINCT FROM {other}.{name}"));
    same.collect::<Vec<_>>().join(" AND ")
}

pub(super) fn names(columns: &[String]) -> impl Iterator<Item = Ident> + '_ {
    columns.iter().map(Ident::new)
}

pub(super) fn name_list(columns: &[String]) -> String {
    names(columns).map(|name| name.to_string()).collect::<Vec<_>>().join(", ")
}

fn in_slice(slice: Option<&Slice>) -> String {
    slice.map(|slice| format!("\n  AND {}", slice.predicate(Some("_pt_old")))).unwrap_or_default()
}

fn indented(text: &str) -> String {
    shifted(text, 2)
}

/// Returns `text` moved to the right.
pub(super) fn shifted(text: &str, by: usize) -> String {
    let space = " ".repeat(by);
    text.lines().map(|line| format!("{space}{line}")).collect::<Vec<_>>().join("\n")
}
