//! What a snapshot changed: DuckLake's `changes_made` text, read into questions that decisions ask.
//!
//! The text is a list of `key:value` with table ids for changes of rows and shape and quoted names for creations, such
//! as `created_table:"main"."t",inserted_into_table:3`. Invariant: what is not understood counts as touching every
//! table, so that an unknown kind of change stops a write instead of being missed.

use crate::id::TableId;

/// The changes of one snapshot, or of several joined with [`ChangeSet::extend`].
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ChangeSet {
    changes: Vec<Change>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Rows came: `inserted_into_table`, `inlined_insert`.
    Inserted(TableId),
    /// Rows went: `deleted_from_table`, `inlined_delete`.
    Deleted(TableId),
    /// Another shape, partition spec or description: `altered_table`.
    Altered(TableId),
    /// `dropped_table`.
    Dropped(TableId),
    /// Files were rewritten and no row changed: compaction, and the flush of inlined rows.
    Maintained(TableId),
    /// `created_table`.
    CreatedTable {
        /// The schema.
        schema: String,
        /// The table.
        table: String,
    },
    /// `created_view`.
    CreatedView {
        /// The schema.
        schema: String,
        /// The view.
        view: String,
    },
    /// Schemas, views and macros, by what happened to them; no table's rows.
    Other {
        /// The key, such as `dropped_view`.
        key: String,
        /// The value as written.
        value: String,
    },
    /// A key that this version does not know, or text that is no `key:value`.
    Unknown {
        /// The text as written.
        text: String,
    },
}

/// Changes that touch no table's rows or shape.
const BESIDE_TABLES: [&str; 9] = [
    "created_schema",
    "dropped_schema",
    "dropped_view",
    "altered_view",
    "created_scalar_macro",
    "created_table_macro",
    "dropped_scalar_macro",
    "dropped_table_macro",
    "created_macro",
];

impl ChangeSet {
    /// Reads the text of one snapshot; an empty text is no change.
    pub fn parse(changes_made: &str) -> Self {
        Self { changes: split(changes_made).into_iter().map(parse_change).collect() }
    }

    /// Adds the changes of another snapshot.
    pub fn extend(&mut self, other: ChangeSet) {
        self.changes.extend(other.changes);
    }

    /// Returns the changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns whether the table's rows or shape may have changed: inserted into, deleted from, altered, dropped, or a
    /// change of an unknown kind. Compaction is none of these.
    pub fn touches_table(&self, table: TableId) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Inserted(id) | Change::Deleted(id) | Change::Altered(id) | Change::Dropped(id) => *id == table,
            Change::Unknown { .. } => true,
            _ => false,
        })
    }

    /// Returns whether all that happened to `table` is that rows came or went, or that its files were rewritten.
    pub fn changes_only_rows(&self, table: TableId) -> bool {
        self.changes.iter().all(|change| match change {
            Change::Altered(id) | Change::Dropped(id) => *id != table,
            Change::Unknown { .. } => false,
            _ => true,
        })
    }

    /// Returns whether rows of the table may have come or gone; a changed shape alone is not meant.
    pub fn changes_rows(&self, table: TableId) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Inserted(id) | Change::Deleted(id) | Change::Dropped(id) => *id == table,
            Change::Unknown { .. } => true,
            _ => false,
        })
    }

    /// Returns whether a table or view of that name was created; names compare without case.
    pub fn creates(&self, schema: &str, name: &str) -> bool {
        self.changes.iter().any(|change| match change {
            Change::CreatedTable { schema: in_schema, table: created }
            | Change::CreatedView { schema: in_schema, view: created } => {
                in_schema.eq_ignore_ascii_case(schema) && created.eq_ignore_ascii_case(name)
            }
            _ => false,
        })
    }

    /// Returns whether there are changes and all of them rewrote files only.
    pub fn is_maintenance_only(&self) -> bool {
        !self.changes.is_empty() && self.changes.iter().all(|change| matches!(change, Change::Maintained(_)))
    }
}

/// Splits at commas outside quoted names.
fn split(text: &str) -> Vec<&str> {
    let mut in_name = false;
    let parts = text.split(|c| {
        in_name ^= c == '"';
        c == ',' && !in_name
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn parse_change(text: &str) -> Change {
    let unknown = || Change::Unknown { text: text.to_owned() };
    let Some((key, value)) = text.split_once(':') else { return unknown() };
    let table =
        |change: fn(TableId) -> Change| value.parse().map(|id| change(TableId(id))).unwrap_or_else(|_| unknown());
    match key {
        "inserted_into_table" | "inlined_insert" => table(Change::Inserted),
        "deleted_from_table" | "inlined_delete" => table(Change::Deleted),
        "altered_table" => table(Change::Altered),
        "dropped_table" => table(Change::Dropped),
        "merge_adjacent" | "rewrite_delete" | "compacted_table" | "flushed_inlined" | "inline_flush" => {
            table(Change::Maintained)
        }
        "created_table" => match qualified_name(value) {
            Some((schema, table)) => Change::CreatedTable { schema, table },
            None => unknown(),
        },
        "created_view" => match qualified_name(value) {
            Some((schema, view)) => Change::CreatedView { schema, view },
            None => unknown(),
        },
        key if BESIDE_TABLES.contains(&key) => Change::Other { key: key.to_owned(), value: value.to_owned() },
        _ => unknown(),
    }
}

/// Reads `"schema"."name"`, inner quotes doubled.
fn qualified_name(text: &str) -> Option<(String, String)> {
    let (schema, rest) = quoted_name(text)?;
    let (name, rest) = quoted_name(rest.strip_prefix('.')?)?;
    rest.is_empty().then_some((schema, name))
}

/// Reads one quoted name at the start of `text` and returns what follows it.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut name = String::new();
    let mut chars = inner.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '"' && chars.next_if(|(_, next)| *next == '"').is_none() {
            return Some((name, &inner[at + 1..]));
        }
        name.push(c);
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sql::Ident;

    const T: TableId = TableId(3);

    #[test]
    fn rows_and_shape_touch_their_own_table_only() {
        for text in ["inserted_into_table:3", "deleted_from_table:3", "inlined_insert:3", "dropped_table:3"] {
            let changes = ChangeSet::parse(text);
            assert!(changes.touches_table(T) && changes.changes_rows(T), "{text}");
            assert!(!changes.touches_table(TableId(33)) && !changes.is_maintenance_only(), "{text}");
        }
        let altered = ChangeSet::parse("altered_table:3");
        assert!(altered.touches_table(T) && !altered.changes_rows(T));
    }

    #[test]
    fn a_replaced_table_touches_both_ids() {
        let text = r#"dropped_table:1,created_table:"main"."t",inserted_into_table:4,inserted_into_table:5,deleted_from_table:4,altered_table:5"#;
        let changes = ChangeSet::parse(text);
        assert!([1, 4, 5].into_iter().all(|id| changes.touches_table(TableId(id))));
        assert!(changes.creates("MAIN", "T") && !changes.creates("main", "u"));
    }

    #[test]
    fn compaction_touches_nothing() {
        let changes = ChangeSet::parse("merge_adjacent:3,rewrite_delete:3,compacted_table:3,flushed_inlined:3");
        assert!(changes.is_maintenance_only() && !changes.touches_table(T) && !changes.changes_rows(T));
        assert!(!ChangeSet::parse("merge_adjacent:3,inserted_into_table:3").is_maintenance_only());
        assert!(!ChangeSet::parse("").is_maintenance_only());
    }

    #[test]
    fn names_may_hold_commas_colons_and_quotes() {
        let text = r#"created_schema:"s,",created_view:"main"."v,"",x:1",created_table:"s,"."t""",dropped_view:9"#;
        let changes = ChangeSet::parse(text);
        assert!(changes.creates("main", r#"v,",x:1"#) && changes.creates("s,", "t\""));
        assert!(!changes.touches_table(T));
        assert_eq!(changes.changes().len(), 4);
    }

    #[test]
    fn what_is_not_understood_touches_every_table() {
        for text in ["teleported_table:9", "nonsense", "inserted_into_table:x", "created_table:main.t"] {
            let changes = ChangeSet::parse(text);
            assert!(changes.touches_table(T) && changes.changes_rows(T) && !changes.is_maintenance_only(), "{text}");
        }
    }

    #[test]
    fn several_snapshots_join() {
        let mut changes = ChangeSet::parse("merge_adjacent:3");
        changes.extend(ChangeSet::parse("deleted_from_table:3"));
        assert!(changes.touches_table(T) && !changes.is_maintenance_only());
    }

    proptest! {
        #[test]
        fn any_name_is_found_again(schema in "[a-c\",.:é]{1,6}", table in "[a-c\",.:é]{1,6}") {
            let text = format!("inserted_into_table:1,created_table:{}.{},dropped_view:2", Ident::new(&schema), Ident::new(&table));
            let changes = ChangeSet::parse(&text);
            prop_assert!(changes.creates(&schema, &table));
            prop_assert_eq!(changes.changes().len(), 3);
            prop_assert!(!changes.touches_table(TableId(2)));
        }
    }
}
