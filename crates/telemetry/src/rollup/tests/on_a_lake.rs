//! The same statements on a lake: partitioned base, sorted rollup, several commits.

use std::path::PathBuf;

use pintail_core::id::LakeName;
use pintail_engine::native::ExtensionFolders;
use pintail_engine::{Catalog, LakeLocation};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use super::random::{columns, row, values};
use super::*;

/// A lake in a folder that vanishes, attached.
struct Lake {
    _instance: Instance,
    session: Session,
    schema: String,
    _folder: tempfile::TempDir,
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
    Lake { schema: format!("{}.main", location.write_alias()), _instance: instance, session, _folder: folder }
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
