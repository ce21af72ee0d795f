//! Small tables that are kept equal to a recomputation of their base, from what is new alone.
//!
//! Invariant: after every commit a rollup holds exactly the rows of [`Rollup::recompute`] over its base. Whoever writes
//! the base sends [`Rollup::fold`] in the same transaction; whoever deletes old rows of it sends [`Rollup::retire`]; and
//! [`Rollup::check`] says whether all of them did. The statements are SQL text: nothing here talks to a lake.

use indoc::formatdoc;
use pintail_core::schema::Column;
use pintail_core::sql::{Ident, Literal, Statement};

/// A rollup: its table, and the statements that keep it.
///
/// `base`, `fresh` and `rollup` are relations as they stand after FROM, so that a shard of a table can be given as a query
/// in brackets; `rollup` is also written, so it is a table's name.
pub trait Rollup: Send + Sync {
    /// The name of the table, without its schema.
    fn table(&self) -> &str;

    /// The columns, in order.
    fn columns(&self) -> Vec<Column>;

    /// The columns of which each combination has one row; none of them is ever NULL.
    fn key(&self) -> Vec<String>;

    /// The list of `ALTER TABLE … SET SORTED BY (…)`.
    fn sorted_by(&self) -> Vec<String>;

    /// The statements that fold `fresh` into `rollup`; sent in the transaction that inserts the rows of `fresh` into
    /// `base`, before that insert. `fresh` has the columns of the base, no row of it is in the base yet, and no two rows
    /// of it have one identity.
    ///
    /// The last statement fails when a touched key does not have exactly one row afterwards: a delete that hits nothing
    /// must not pass for a fold.
    fn fold(&self, base: &str, fresh: &str, rollup: &str) -> Vec<Statement>;

    /// The statements that take the rows of `base` before `cutoff` (an SQL expression of type TIMESTAMPTZ) out of
    /// `rollup`; sent in the transaction that deletes those rows, before that delete.
    fn retire(&self, base: &str, rollup: &str, cutoff: &str) -> Vec<Statement>;

    /// The query over `base` whose rows are the whole rollup: the truth that [`Self::fold`] must agree with. It does not read
    /// the version of the decoder: rows that differ in it alone come to the same.
    fn recompute(&self, base: &str) -> String;

    /// The statements that make `rollup` anew from `base`.
    fn rebuild(&self, base: &str, rollup: &str) -> Vec<Statement> {
        let recompute = self.recompute(base);
        vec![
            Statement::new("empty the rollup", format!("DELETE FROM {rollup}")),
            Statement::new("fill the rollup from its base", format!("INSERT INTO {rollup} BY NAME\n{recompute}")),
        ]
    }

    /// The statements that make the rows of the keys in `touched`, a relation with the columns of the key, anew; sent in the
    /// transaction that replaced or deleted rows of `base`, after it did: what an older version of a decoder wrote cannot be
    /// folded out.
    fn refresh(&self, base: &str, touched: &str, rollup: &str) -> Vec<Statement> {
        let key = self.key();
        let is_touched = |rows: &str| {
            format!(
                "EXISTS (\n  SELECT 1\n  FROM {touched} AS _pt_touched\n  WHERE {}\n)",
                same(&key, "_pt_touched", rows)
            )
        };
        let part = format!("(\nSELECT *\nFROM {base} AS _pt_base\nWHERE {}\n)", is_touched("_pt_base"));
        let rows = format!("CREATE OR REPLACE TEMP TABLE {REFRESHED} AS\n{}", self.recompute(&part));
        let delete = format!("DELETE FROM {rollup} AS _pt_rollup\nWHERE {}", is_touched("_pt_rollup"));
        vec![
            Statement::new("make the rows of touched keys anew", rows),
            Statement::new("take the touched keys out of the rollup", delete),
            Statement::new(
                "put the touched keys into the rollup",
                format!("INSERT INTO {rollup} BY NAME\nSELECT *\nFROM {REFRESHED}"),
            ),
            prove_keys(self.table(), &key, rollup, touched, REFRESHED),
        ]
    }

    /// The query whose one row says how far `rollup` is from its truth: the BIGINT columns `missing`, `extra` and
    /// `different`, as in [`Drift`].
    fn check(&self, base: &str, rollup: &str) -> String {
        let key = self.key();
        let names = |columns: &[String]| columns.iter().map(|name| Ident::new(name).to_string()).collect::<Vec<_>>();
        let columns: Vec<String> = self.columns().into_iter().map(|column| column.name).collect();
        let differs: Vec<String> = names(&columns)
            .into_iter()
            .filter(|name| !names(&key).contains(name))
            .map(|name| format!("_pt_is.{name} IS DISTINCT FROM _pt_should.{name}"))
            .collect();
        let same_key = same(&key, "_pt_is", "_pt_should");
        let (all, key) = (names(&columns).join(", "), names(&key).join(", "));
        // The copies of a key beyond the first are extra, whatever they hold.
        formatdoc! {"
            WITH _pt_should AS (
            SELECT {all}, 1 AS _pt_copy
            FROM (
            {recompute}
            )
            ), _pt_is AS (
              SELECT {all}, row_number() OVER (PARTITION BY {key}) AS _pt_copy
              FROM {rollup}
            )
            SELECT
              count(*) FILTER (_pt_is._pt_copy IS NULL) AS missing,
              count(*) FILTER (_pt_should._pt_copy IS NULL) AS extra,
              count(*) FILTER (_pt_is._pt_copy = 1 AND _pt_should._pt_copy = 1 AND ({differs})) AS different
            FROM _pt_is
            FULL JOIN _pt_should
              ON {same_key}
              AND _pt_is._pt_copy = _pt_should._pt_copy",
            recompute = self.recompute(base),
            differs = differs.join("\n                OR "),
        }
    }
}

/// The rows of touched keys, made anew.
const REFRESHED: &str = "_pt_refreshed";

/// Returns the condition that two relations have one key.
fn same(key: &[String], one: &str, other: &str) -> String {
    let parts: Vec<String> =
        key.iter().map(Ident::new).map(|column| format!("{one}.{column} = {other}.{column}")).collect();
    parts.join(" AND ")
}

/// Returns the statement that fails unless the keys of `touched`, a relation, have exactly one row in `rollup` for each key
/// of `made`, and no other; `name` is the rollup's, for people.
///
/// A delete that hits nothing looks like success, and a key would be there twice for ever. The answer is looked at inside
/// the transaction, which then ends without a commit.
pub fn prove_keys(name: &str, key: &[String], rollup: &str, touched: &str, made: &str) -> Statement {
    let message = Literal::new(format!(
        "the rollup `{name}` does not have exactly one row per touched key; nothing was committed, and `pintail consume \
         rebuild` makes it anew from its base (rows expected, rows found): "
    ));
    let columns: Vec<String> = key.iter().map(|column| Ident::new(column).to_string()).collect();
    let sql = formatdoc! {"
        SELECT CASE
          WHEN _pt_made = _pt_found THEN _pt_found
          ELSE error({message} || _pt_made || ', ' || _pt_found)
        END
        FROM (
          SELECT
            (SELECT count(*) FROM (SELECT DISTINCT {columns} FROM {made})) AS _pt_made,
            (
              SELECT count(*)
              FROM {rollup} AS _pt_rollup
              WHERE EXISTS (
                SELECT 1
                FROM {touched} AS _pt_rows
                WHERE {same}
              )
            ) AS _pt_found
        )",
        columns = columns.join(", "),
        same = same(key, "_pt_rows", "_pt_rollup"),
    };
    Statement::new("prove that each touched key has one row", sql)
}

/// How far a rollup is from its truth, in keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drift {
    /// Keys of the truth that the rollup lacks.
    pub missing: u64,
    /// Rows of the rollup without a key in the truth, and copies of a key beyond the first.
    pub extra: u64,
    /// Keys whose values differ.
    pub different: u64,
}

/// What to do about a rollup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Healing {
    /// It is right.
    Keep,
    /// It is made anew, for the given reason.
    Rebuild(String),
}

impl Drift {
    /// Returns whether there is any.
    pub fn is_any(self) -> bool {
        self != Drift::default()
    }

    /// Returns what is to be done: anything but equality is a reason to rebuild, because a fold on a wrong row keeps it
    /// wrong.
    pub fn healing(self, rollup: &str) -> Healing {
        let Drift { missing, extra, different } = self;
        match self.is_any() {
            false => Healing::Keep,
            true => Healing::Rebuild(format!(
                "rollup `{rollup}` is not what its base says: {missing} keys missing, {extra} rows too many, {different} \
                 rows with other values"
            )),
        }
    }
}

/// Returns the name of a shard's own table, such as `signals_latest_s02`: conflicts are table-wide, so shards that
/// shared one would commit one at a time.
pub fn shard_table(table: &str, shard: u32) -> String {
    format!("{table}_s{shard:02}")
}

/// Returns the statement that makes `view` the rows of the shards' tables together. Shards hold different keys, so nothing
/// is added up.
pub fn union_view(view: &str, rollup: &dyn Rollup, shard_relations: &[String]) -> Statement {
    let columns: Vec<String> =
        rollup.columns().into_iter().map(|column| format!("  {}", Ident::new(column.name))).collect();
    let columns = columns.join(",\n");
    let selects: Vec<String> =
        shard_relations.iter().map(|relation| format!("SELECT\n{columns}\nFROM {relation}")).collect();
    Statement::new(
        "show the shards as one table",
        format!("CREATE OR REPLACE VIEW {view} AS\n{}", selects.join("\nUNION ALL\n")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_difference_is_a_reason_to_rebuild() {
        assert_eq!(Drift::default().healing("t"), Healing::Keep);
        let drifts = [
            Drift { missing: 1, ..Drift::default() },
            Drift { extra: 1, ..Drift::default() },
            Drift { different: 1, ..Drift::default() },
        ];
        for drift in drifts {
            let Healing::Rebuild(reason) = drift.healing("signals_latest") else { panic!("{drift:?} was kept") };
            assert!(reason.contains("signals_latest") && reason.contains('1'), "{reason}");
        }
    }

    #[test]
    fn tables_of_shards_sort_by_number() {
        assert_eq!(shard_table("signals_latest", 7), "signals_latest_s07");
        assert!(shard_table("t", 9) < shard_table("t", 10));
    }
}
