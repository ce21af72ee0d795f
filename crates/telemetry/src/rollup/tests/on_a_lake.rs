//! The same statements on a lake: partitioned base, sorted rollup, several commits.

use std::path::PathBuf;

use pintail_core::id::LakeName;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, LakeLocation};
use pintail_streams::rollup::{shard_table, union_view};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use super::random::{columns, row, values};
use super::*;

/// A lake in a folder that vanishes, attached.
struct Lake {
    _instance: Instance,
    session: Session,
    schema: String,
    folder: tempfile::TempDir,
}

fn lake() -> Lake {
    let folder = tempfile::tempdir().unwrap();
    let vendor = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    let options = InstanceOptions { extensions: ExtensionFolders(vec![vendor]), ..InstanceOptions::default() };
    let instance = Instance::open(options).unwrap();
    let session = instance.session().unwrap();
    let location = LakeLocation {
        name: LakeName("main".to_owned()),
        catalog: Catalog::Sqlite(folder.path().join("main.sqlite")),
        data: format!("{}/data/", folder.path().display()),
    };
    location.attach_for_writing(&instance, &session).unwrap();
    Lake { schema: format!("{}.main", location.write_alias()), _instance: instance, session, folder }
}

/// Gives a table its layout.
fn lay_out(tables: &Tables<'_>) {
    let sorted = tables.rollup().sorted_by().join(", ");
    tables.sql(format!("ALTER TABLE {} SET PARTITIONED BY ({})", tables.base, tables.target.partitioned_by.join(", ")));
    tables.sql(format!("ALTER TABLE {} SET SORTED BY ({})", tables.base, tables.target.sorted_by.join(", ")));
    tables.sql(format!("ALTER TABLE {} SET SORTED BY ({sorted})", tables.rollup_table));
}

#[test]
fn folds_on_a_partitioned_lake_are_the_recomputation() {
    let lake = lake();
    let mut runner = TestRunner::deterministic();
    for table in ["signals", "events"] {
        let tables = Tables::make(&lake.session, &lake.schema, table);
        lay_out(&tables);
        for _ in 0..4 {
            let batch = proptest::collection::vec(row(), 1..14).new_tree(&mut runner).unwrap().current();
            tables.write(columns(table), &values(table, &batch));
            assert_eq!(tables.drift(), Drift::default(), "{table} after {batch:?}");
        }
        tables.retire("TIMESTAMPTZ '2025-01-03 00:00:00Z'");
        assert_eq!(tables.drift(), Drift::default());
        tables.sql(format!("DELETE FROM {}", tables.rollup_table));
        assert_ne!(tables.drift(), Drift::default());
        tables.run(&tables.rollup().rebuild(&tables.base, &tables.rollup_table));
        assert_eq!(tables.drift(), Drift::default());
    }
}

/// Deletes the files of a table behind the lake's back.
fn lose_files(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => lose_files(&path),
            false => std::fs::remove_file(path).unwrap(),
        }
    }
}

#[test]
fn a_fold_reads_no_file_of_the_base_unless_something_is_late() {
    let lake = lake();
    let tables = Tables::make(&lake.session, &lake.schema, "signals");
    lay_out(&tables);
    let row = |second: u8| {
        format!("('a', 1, 'speed', TIMESTAMPTZ '2025-01-01 00:00:{second:02}Z', 's', 'e{second}', 1, 1, 1)")
    };
    tables.write(columns("signals"), &row(10));
    lose_files(&lake.folder.path().join("data/main/signals"));

    let fresh = |second: u8| {
        let columns = columns("signals");
        tables.sql("CREATE OR REPLACE TEMP TABLE _pt_fresh AS SELECT * FROM _pt_staged".to_owned());
        tables.sql(format!("INSERT INTO _pt_fresh BY NAME SELECT * FROM (VALUES {}) AS rows({columns})", row(second)));
        tables.session.run_all(&tables.rollup().fold(&tables.base, "_pt_fresh", &tables.rollup_table))
    };
    assert!(fresh(11).is_ok());
    let error = fresh(10).unwrap_err();
    assert!(format!("{error:?}").contains("No such file"), "{error:?}");
}

#[test]
fn shards_fold_tables_of_their_own_and_are_read_as_one() {
    let lake = lake();
    let tables = Tables::make(&lake.session, &lake.schema, "signals");
    tables.write(
        columns("signals"),
        "('a', 0, 'speed', TIMESTAMPTZ '2025-01-01', 's', 'e1', 1, 1, 1),
         ('b', 1, 'speed', TIMESTAMPTZ '2025-01-02', 's', 'e2', 2, 1, 1),
         ('b', 1, 'speed', TIMESTAMPTZ '2025-01-01', 's', 'e3', 3, 1, 1)",
    );
    let rollup = tables.rollup();
    let mut relations = Vec::new();
    for shard in 0..2 {
        let table = format!("{}.{}", lake.schema, shard_table("by_shard", shard));
        let rows = |relation: &str| format!("(SELECT * FROM {relation} WHERE subject_bucket % 2 = {shard})");
        tables.run(&[create(&table, &rollup.columns())]);
        let nothing = format!("(SELECT * FROM {} WHERE false)", tables.base);
        tables.run(&rollup.fold(&nothing, &rows(&tables.base), &table));
        relations.push(table);
    }
    let view = format!("{}.by_shard", lake.schema);
    tables.run(&[union_view(&view, rollup, &relations)]);
    let counts = "SELECT subject, value_number, count FROM";
    assert_eq!(tables.rows(&format!("{counts} {view} ORDER BY ALL")), "a | 1.0 | 1\nb | 2.0 | 2\n");
    let checked = Tables { rollup_table: view, ..tables };
    assert_eq!(checked.drift(), Drift::default());
}
