//! Older versions: compared, brought back, computed again.

use std::path::Path;

use pintail_core::id::SnapshotId;
use pintail_runner::Pintail;
use pintail_runner::pintail::{AssetDiff, Compared, DiffRequest, RowChange, RowDiff};

use crate::harness::{Folder, force, foreign, only, query, run};

/// Compares and returns the numbers added, removed, changed and the same.
fn diff(pintail: &Pintail, asset: &str, from: SnapshotId, to: Option<SnapshotId>) -> AssetDiff {
    let request = DiffRequest {
        asset: asset.to_owned(),
        from: from.to_string(),
        to: to.map(|to| to.to_string()),
        partition: None,
        limit: 10,
    };
    pintail.diff(&request).unwrap()
}

fn numbers(rows: &RowDiff) -> (u64, u64, u64, Option<u64>) {
    (rows.added, rows.removed, rows.changed, rows.same)
}

/// One line per row of the sample: the sign, then each value, or what it was and is.
fn lines(rows: &RowDiff) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "NULL".to_owned());
    let one = |row: &pintail_runner::pintail::DiffRow| {
        let sign = match row.change {
            RowChange::Added => "+",
            RowChange::Removed => "-",
            RowChange::Changed => "~",
        };
        let cells: Vec<String> = (0..rows.columns.len())
            .map(|place| {
                let (before, after) = (row.before.as_ref(), row.after.as_ref());
                match (before.map(|row| text(&row[place])), after.map(|row| text(&row[place]))) {
                    (Some(before), Some(after)) if before != after => format!("{before}>{after}"),
                    (before, after) => after.or(before).unwrap_or_default(),
                }
            })
            .collect();
        format!("{sign}{} {}", if row.times == 1 { String::new() } else { row.times.to_string() }, cells.join("|"))
    };
    rows.sample.iter().map(one).collect()
}

/// Writes `t` from `rows`, and returns the snapshot.
fn write(folder: &Folder, header: &str, rows: &str) -> SnapshotId {
    folder.write(&format!("//- data/in.csv\n{rows}\n"));
    folder.write(&format!(
        "//- pipelines/t.sql\n-- materialize ducklake://main/t{header}\nFROM read_csv('data/in.csv')\n"
    ));
    let told = run(&folder.open(), &force("t"));
    told.assert_good();
    told.step("t").snapshot.unwrap()
}

#[test]
fn a_diff_by_key_says_what_came_went_and_changed() {
    let folder = Folder::new("");
    let header = "\n-- test unique id";
    let first = write(&folder, header, "id,v\n1,a\n2,b\n3,c\n4,");
    let second = write(&folder, header, "id,v\n1,a\n2,B\n4,d\n5,e");
    let found = diff(&folder.open(), "t", first, Some(second));
    assert_eq!(numbers(&found.rows), (1, 1, 2, Some(1)));
    assert_eq!(found.rows.key, ["id"]);
    assert_eq!(lines(&found.rows), ["+ 5|e", "- 3|c", "~ 2|b>B", "~ 4|NULL>d"]);
    assert!(found.shape.is_empty() && !found.is_empty());
    let back = diff(&folder.open(), "t", second, Some(first));
    assert_eq!(numbers(&back.rows), (1, 1, 2, Some(1)));
}

#[test]
fn without_a_key_equal_rows_are_counted() {
    let folder = Folder::new("");
    let first = write(&folder, "", "v\na\na\na\nb\nc");
    write(&folder, "", "v\na\nb\nd\nd");
    let found = diff(&folder.open(), "t", first, None);
    assert_eq!(numbers(&found.rows), (2, 3, 0, Some(2)));
    let mut lines = lines(&found.rows);
    lines.sort();
    assert_eq!(lines, ["+2 d", "- c", "-2 a"]);
}

#[test]
fn a_key_that_is_not_unique_and_null_keys_are_compared_as_groups() {
    let folder = Folder::new("");
    let header = "\n-- test unique k severity=warn";
    let first = write(&folder, header, "k,v\n1,a\n1,b\n,x\n2,q");
    write(&folder, header, "k,v\n1,b\n1,a\n,y\n2,q\n2,q");
    let found = diff(&folder.open(), "t", first, None);
    assert_eq!((found.rows.added, found.rows.removed, found.rows.changed), (0, 0, 3), "{:?}", lines(&found.rows));
    assert_eq!(found.rows.same, Some(2), "the rows of key 1 are the same in another order");
}

#[test]
fn equal_versions_answer_without_a_look_at_rows() {
    let folder = Folder::new("");
    let first = write(&folder, "", "v\n1\n2");
    let second = write(&folder, "", "v\n2\n1");
    let pintail = folder.open();
    let found = diff(&pintail, "t", first, Some(second));
    assert_eq!((found.rows.compared, found.rows.same), (Compared::ByFingerprint, Some(2)));
    foreign(&pintail, "CREATE TABLE other AS SELECT 1 AS x");
    let found = diff(&pintail, "t", second, None);
    assert!(second < found.to && found.rows.compared == Compared::ByCommits && found.is_empty());
}

#[test]
fn columns_that_came_went_or_changed_their_type_are_told() {
    let folder = Folder::new("");
    let header = "\n-- on_schema_change sync_all_columns\n-- test unique id";
    let first = write(&folder, header, "id,a,gone\n1,7,x\n2,8,y");
    let second = write(&folder, header, "id,a,new\n1,7,n\n2,8.5,m");
    let found = diff(&folder.open(), "t", first, Some(second));
    let shape: Vec<String> = found.shape.iter().map(ToString::to_string).collect();
    assert_eq!(shape, ["~ a BIGINT -> DOUBLE", "+ new VARCHAR", "- gone VARCHAR"]);
    assert_eq!(numbers(&found.rows), (0, 0, 1, Some(1)));
    assert_eq!(lines(&found.rows), ["~ 2|8>8.5|NULL>m|y>NULL"]);
}

#[test]
fn a_column_that_was_widened_in_place_does_not_poison_the_older_version() {
    let folder = Folder::new("");
    folder.write(
        "//- pipelines/t.sql\n-- materialize ducklake://main/t\n-- test unique id\nSELECT 1 AS id, 2::INTEGER AS n\n",
    );
    let pintail = folder.open();
    let first = run(&pintail, &only("t")).step("t").snapshot.unwrap();
    foreign(&pintail, "ALTER TABLE t ALTER n TYPE BIGINT");
    foreign(&pintail, "INSERT INTO t VALUES (2, 5000000000)");
    let found = diff(&folder.open(), "t", first, None);
    assert_eq!(numbers(&found.rows), (1, 0, 0, Some(1)));
    assert_eq!(found.shape.len(), 1);
}

#[test]
fn a_version_may_be_a_moment_or_a_run_and_a_wrong_one_is_explained() {
    let folder = Folder::new("");
    let first = write(&folder, "", "v\n1");
    write(&folder, "", "v\n2");
    let pintail = folder.open();
    let runs = pintail.runs(2).unwrap();
    let moment = runs[0].started.to_rfc3339();
    let ask = |from: &str, to: Option<&str>| {
        let request = DiffRequest {
            asset: "t".to_owned(),
            from: from.to_owned(),
            to: to.map(str::to_owned),
            partition: None,
            limit: 0,
        };
        pintail.diff(&request)
    };
    assert_eq!(ask(runs[1].id.as_str(), Some("last")).unwrap().from, first);
    assert_eq!(ask(&moment, None).unwrap().from, first);
    let wrong = |from: &str| ask(from, None).unwrap_err().to_string();
    assert!(wrong("99").starts_with("there is no snapshot 99 in lake `main`; the oldest is 0"), "{}", wrong("99"));
    assert!(wrong("0").starts_with("ducklake://main/t did not exist at snapshot 0"), "{}", wrong("0"));
    assert!(wrong("2020-01-01").contains("has no snapshot as old as"), "{}", wrong("2020-01-01"));
    assert!(wrong("soon").starts_with("`soon` names no version"), "{}", wrong("soon"));
}

#[test]
fn one_partition_is_compared_alone() {
    let folder = Folder::new(
        "//- pipelines/d.sql
-- partitioned daily
-- materialize ducklake://main/d
SELECT $partition AS p, n FROM read_csv('data/in.csv')
//- data/in.csv
n
1
",
    );
    let day = |partition: &str| crate::harness::force_at("d", partition);
    let pintail = folder.open();
    let first = run(&pintail, &day("2026-01-01")).steps[0].snapshot.unwrap();
    run(&pintail, &day("2026-01-02"));
    folder.write("//- data/in.csv\nn\n2\n");
    run(&pintail, &day("2026-01-01"));
    let ask = |partition: Option<&str>| {
        let request = DiffRequest {
            asset: "d".to_owned(),
            from: first.to_string(),
            to: None,
            partition: partition.map(str::to_owned),
            limit: 10,
        };
        numbers(&pintail.diff(&request).unwrap().rows)
    };
    assert_eq!(ask(Some("2026-01-01")), (1, 1, 0, Some(0)));
    assert_eq!(ask(Some("2026-01-02")), (1, 0, 0, Some(0)));
    assert_eq!(ask(None), (2, 1, 0, Some(0)));
}

#[expect(dead_code, reason = "used by the tests of rollback")]
fn rows_of(pintail: &Pintail, _folder: &Path) -> Vec<String> {
    query(pintail, "FROM t ORDER BY ALL", None)
}
