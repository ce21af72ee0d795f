//! Older versions: compared, brought back, computed again.

use pintail_core::id::SnapshotId;
use pintail_runner::pintail::{
    AssetDiff, Compared, DiffRequest, PlanRequest, ReplayOutcome, ReplayRequest, Replayed, Rollback, RollbackRequest,
    RowChange, RowDiff,
};
use pintail_runner::run::StepState;
use pintail_runner::{Pintail, RunnerError};

use crate::harness::{Folder, Told, facts, force, force_at, foreign, only, planned, query, run, run_plan};

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

/// Plans a rollback.
fn plan_back(pintail: &Pintail, asset: &str, to: SnapshotId, partition: Option<&str>) -> Result<Rollback, RunnerError> {
    pintail.plan_rollback(&RollbackRequest {
        asset: asset.to_owned(),
        to: to.to_string(),
        partition: partition.map(str::to_owned),
        limit: 10,
    })
}

/// Rolls back.
fn back(pintail: &Pintail, asset: &str, to: SnapshotId, partition: Option<&str>) -> Told {
    let rollback = plan_back(pintail, asset, to, partition).unwrap();
    assert!(!rollback.is_nothing());
    run_plan(pintail, &rollback.plan, &rollback.seen)
}

fn history(pintail: &Pintail, asset: &str) -> Vec<String> {
    let versions = pintail.history(&pintail.parse_asset(asset).unwrap(), 20).unwrap();
    let line = |version: &pintail_store::Materialization| {
        let partition = version.partition.as_ref().map_or_else(String::new, |key| format!(" {key}"));
        format!("{}{partition} rows {:?} -{} +{}", version.strategy, version.rows, version.deleted, version.inserted)
    };
    versions.iter().map(line).collect()
}

#[test]
fn a_rollback_is_a_new_version_and_makes_only_what_reads_it_due() {
    let folder = Folder::new("//- pipelines/u.sql\n-- materialize ducklake://main/u\nSELECT count(*) AS n FROM t\n");
    let first = write(&folder, "", "v\n1\n2\n3");
    write(&folder, "", "v\n9");
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    let id = facts(&pintail, "t").id;

    let rollback = plan_back(&pintail, "t", first, None).unwrap();
    assert_eq!(numbers(&rollback.diff.as_ref().unwrap().rows), (3, 1, 0, Some(0)));
    assert_eq!(rollback.downstream, ["u"]);
    let told = run_plan(&pintail, &rollback.plan, &rollback.seen);
    told.assert_good();
    assert_eq!((told.step("t").rows, told.step("t").changed), (Some(3), (1, 3)));

    assert_eq!(query(&pintail, "SELECT v FROM t ORDER BY v", None), ["1", "2", "3"]);
    assert_eq!(facts(&pintail, "t").id, id, "the table keeps its identity");
    assert_eq!(history(&pintail, "t")[0], "rollback rows Some(3) -1 +3");
    assert_eq!(planned(&folder.open(), &PlanRequest::default()), ["u: ducklake://main/t changed"]);
    assert!(plan_back(&pintail, "t", first, None).unwrap().is_nothing());
    pintail.rebuild_state().unwrap();
    assert_eq!(history(&pintail, "t")[0], "rollback rows Some(3) -1 +3");
    // What changes afterwards is due as ever.
    folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 5 AS v\n");
    assert_eq!(planned(&folder.open(), &only("t")), ["t: the script changed"]);
}

#[test]
fn a_script_that_was_mended_before_the_rollback_is_still_due_after_it() {
    let folder = Folder::new("");
    let first = write(&folder, "", "v\n1");
    write(&folder, "", "v\n2");
    folder.write("//- pipelines/t.sql\n-- materialize ducklake://main/t\nSELECT 5 AS v\n");
    let pintail = folder.open();
    back(&pintail, "t", first, None).assert_good();
    assert_eq!(planned(&folder.open(), &only("t")), ["t: the script changed"]);
}

const DAYS: &str = "//- pipelines/d.sql
-- partitioned daily
-- materialize ducklake://main/d append
SELECT n FROM read_csv('data/in.csv')
//- data/in.csv
n
1
";

#[test]
fn one_partition_goes_back_and_the_others_stay() {
    let folder = Folder::new(DAYS);
    let pintail = folder.open();
    run(&pintail, &force_at("d", "2026-01-01"));
    let old = run(&pintail, &force_at("d", "2026-01-02")).steps[0].snapshot.unwrap();
    for day in ["2026-01-01", "2026-01-02"] {
        run(&pintail, &force_at("d", day));
    }
    let told = back(&pintail, "d", old, Some("2026-01-01"));
    assert_eq!(told.assert_good().steps[0].rows, Some(1));
    let rows = query(&pintail, "SELECT _partition, count(*) FROM d GROUP BY ALL ORDER BY ALL", None);
    assert_eq!(rows, ["2026-01-01|1", "2026-01-02|2"]);
    // The number of rows goes on from what is there.
    let next = run(&pintail, &force_at("d", "2026-01-01"));
    assert_eq!(next.assert_good().steps[0].rows, Some(2));
}

#[test]
fn a_whole_partitioned_table_goes_back_and_the_rows_of_its_slices_are_no_longer_known() {
    let folder = Folder::new(DAYS);
    let pintail = folder.open();
    let old = run(&pintail, &force_at("d", "2026-01-01")).steps[0].snapshot.unwrap();
    for day in ["2026-01-01", "2026-01-02"] {
        run(&pintail, &force_at("d", day));
    }
    back(&pintail, "d", old, None).assert_good();
    assert_eq!(query(&pintail, "SELECT _partition, n FROM d", None), ["2026-01-01|1"]);
    let day = |partition: &str| PlanRequest { force: false, ..force_at("d", partition) };
    let fresh = folder.open();
    assert_eq!(planned(&fresh, &day("2026-01-02")), ["d 2026-01-02: never written"], "it came later, and is gone");
    assert_eq!(planned(&fresh, &day("2026-01-01")), [""; 0], "it is what it was then");
    fresh.rebuild_state().unwrap();
    assert_eq!(planned(&fresh, &day("2026-01-02")), ["d 2026-01-02: never written"]);
    for pintail in [pintail, folder.open()] {
        let next = run(&pintail, &force_at("d", "2026-01-02"));
        assert_eq!(next.assert_good().steps[0].rows, None, "nobody has counted this slice since");
    }
}

#[test]
fn a_table_takes_its_old_columns_back_as_a_new_generation() {
    let folder = Folder::new("");
    let header = "\n-- on_schema_change sync_all_columns";
    let first = write(&folder, header, "id,a\n1,7");
    write(&folder, header, "id,b\n1,x");
    let pintail = folder.open();
    let told = back(&pintail, "t", first, None);
    assert!(
        told.notes()[0].contains("the table takes its old columns back:\n+ a BIGINT\n- b VARCHAR"),
        "{:?}",
        told.notes()
    );
    assert_eq!(query(&pintail, "FROM t", None), ["1|7"]);
    // The next write knows the columns that are there.
    let forced = run(&folder.open(), &force("t"));
    forced.assert_good();
    assert_eq!(query(&pintail, "SELECT * FROM t", None), ["1|x"]);
}

#[test]
fn a_partition_comes_back_into_a_table_with_more_columns_and_not_into_one_with_fewer() {
    let folder = Folder::new(&DAYS.replace(" append", "").replace("SELECT n", "-- x\nSELECT n, 1 AS m"));
    let pintail = folder.open();
    let first = run(&pintail, &force_at("d", "2026-01-01")).steps[0].snapshot.unwrap();
    foreign(&pintail, "ALTER TABLE d ADD COLUMN more VARCHAR");
    foreign(&pintail, "DELETE FROM d");
    let told = back(&folder.open(), "d", first, Some("2026-01-01"));
    assert!(
        told.notes().iter().any(|note| note.ends_with("NULL, because they came after that version: more")),
        "{:?}",
        told.notes()
    );
    assert_eq!(query(&folder.open(), "SELECT n, m, more FROM d", None), ["1|1|NULL"]);
    foreign(&pintail, "ALTER TABLE d DROP COLUMN m");
    let told = back(&folder.open(), "d", first, Some("2026-01-01"));
    let failure = told.failure("d 2026-01-01");
    assert_eq!(failure.code.as_str(), "P536");
    assert!(failure.message.ends_with("`m` INTEGER is no column of the table any more"), "{}", failure.message);
    back(&folder.open(), "d", first, None).assert_good();
    assert_eq!(query(&folder.open(), "SELECT n, m FROM d", None), ["1|1"]);
}

#[test]
fn a_table_that_was_dropped_is_made_again() {
    let folder = Folder::new("");
    let first = write(&folder, "", "v\n1");
    let pintail = folder.open();
    foreign(&pintail, "DROP TABLE t");
    let rollback = plan_back(&pintail, "t", first, None).unwrap();
    assert!(rollback.diff.is_none());
    run_plan(&pintail, &rollback.plan, &rollback.seen).assert_good();
    assert_eq!(query(&pintail, "FROM t", None), ["1"]);
}

#[test]
fn a_version_that_came_after_the_preview_stops_the_rollback() {
    let folder = Folder::new("");
    let first = write(&folder, "", "v\n1");
    write(&folder, "", "v\n2");
    let pintail = folder.open();
    let rollback = plan_back(&pintail, "t", first, None).unwrap();
    write(&folder, "", "v\n3");
    let told = run_plan(&pintail, &rollback.plan, &rollback.seen);
    assert_eq!(told.step("t").state, StepState::Superseded);
    assert_eq!(query(&pintail, "FROM t", None), ["3"]);
}

#[test]
fn views_and_foreign_tables_are_not_rolled_back() {
    let folder = Folder::new(
        "//- pipelines/v.sql
-- materialize view ducklake://main/v
SELECT 1 AS a
//- pipelines/w.sql
-- materialize ducklake://main/w
SELECT 1 AS a
",
    );
    let pintail = folder.open();
    let made = run(&pintail, &only("v")).step("v").snapshot.unwrap();
    foreign(&pintail, "CREATE TABLE w AS SELECT 2 AS a");
    foreign(&pintail, "CREATE TABLE x AS SELECT 2 AS a");
    let refused = |asset: &str| plan_back(&pintail, asset, made, None).unwrap_err().to_string();
    assert!(refused("v").contains("is a view: it has no rows of its own"), "{}", refused("v"));
    assert!(refused("w").starts_with("Pintail has not written"), "{}", refused("w"));
    assert!(refused("x").starts_with("no script of this project writes"), "{}", refused("x"));
}

fn replay(pintail: &Pintail, run: &str, into: Option<&str>) -> Result<Replayed, RunnerError> {
    pintail.replay(&ReplayRequest { run: run.to_owned(), step: None, into: into.map(str::to_owned), limit: 10 })
}

fn outcomes(replayed: &Replayed) -> Vec<String> {
    let word = |outcome: &ReplayOutcome| match outcome {
        ReplayOutcome::Equal { rows } => format!("equal {rows}"),
        ReplayOutcome::Different { rows, .. } => {
            format!("different +{} -{} ~{}", rows.added, rows.removed, rows.changed)
        }
        ReplayOutcome::Skipped(reason) => format!("skipped: {reason}"),
        ReplayOutcome::Failed(failure) => format!("failed: {}", failure.message),
    };
    replayed.steps.iter().map(|step| format!("{}: {}", step.script, word(&step.outcome))).collect()
}

#[test]
fn a_run_is_computed_again_from_its_text_and_pins_whatever_happened_since() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT i FROM range(5) r(i)
//- pipelines/b.sql
-- materialize ducklake://main/b key=i
SELECT i, i * 2 AS twice FROM a WHERE i < 4
//- pipelines/c.sql
-- materialize ducklake://main/c append
SELECT sum(twice) AS total FROM b
//- pipelines/s.sql
-- materialize ducklake://main/s
-- column n BIGINT
SELECT coalesce(max(n), 0) + 1 AS n FROM s
//- pipelines/v.sql
-- materialize view ducklake://main/v
SELECT * FROM a
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    let first = pintail.runs(1).unwrap()[0].id.to_string();
    folder.write("//- pipelines/a.sql\n-- materialize ducklake://main/a\nSELECT 100 + i AS i FROM range(3) r(i)\n");
    std::fs::remove_file(folder.path().join("pipelines/c.sql")).unwrap();
    run(&folder.open(), &PlanRequest::default()).assert_good();
    run(&folder.open(), &force("s")).assert_good();

    let pintail = folder.open();
    let replayed = replay(&pintail, &first, Some("audit")).unwrap();
    let mut found = outcomes(&replayed);
    found.sort();
    assert_eq!(found, ["a: equal 5", "b: equal 4", "c: equal 1", "s: equal 1", "v: skipped: a view holds no rows"]);
    assert!(replayed.is_proven());
    assert_eq!(query(&pintail, "SELECT count(*), max(i) FROM audit.a", None), ["5|4"]);
    assert_eq!(query(&pintail, "SELECT total FROM audit.c", None), ["12"]);
    let again = replay(&pintail, &first, Some("audit")).unwrap_err().to_string();
    assert!(again.starts_with("ducklake://main/audit.a exists") || again.contains("exists, and a replay"), "{again}");
    let last = replay(&pintail, "last", None).unwrap();
    assert_eq!(outcomes(&last), ["s: equal 1"]);
}

#[test]
fn each_partition_of_a_run_is_replayed_and_its_results_share_a_table() {
    let folder = Folder::new(&DAYS.replace("SELECT n", "SELECT n, $partition AS p"));
    let pintail = folder.open();
    let range = pintail_runner::pintail::BackfillRange {
        script: "d".to_owned(),
        from: Some("2026-01-01".to_owned()),
        to: Some("2026-01-04".to_owned()),
        ..Default::default()
    };
    run(&pintail, &PlanRequest { backfill: Some(range), ..PlanRequest::default() }).assert_good();
    let replayed = replay(&pintail, "last", Some("again")).unwrap();
    assert_eq!(outcomes(&replayed), ["d: equal 1", "d: equal 1", "d: equal 1"]);
    assert_eq!(query(&pintail, "SELECT count(DISTINCT p) FROM again.d", None), ["3"]);
}

#[test]
fn what_depends_on_chance_or_on_a_file_is_shown_as_different_with_a_reason() {
    let folder =
        Folder::new("//- pipelines/r.sql\n-- materialize ducklake://main/r\nSELECT random() AS x, now() AS at\n");
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    let replayed = replay(&pintail, "last", None).unwrap();
    assert_eq!(outcomes(&replayed), ["r: different +1 -1 ~0"]);
    assert_eq!(replayed.steps[0].hints, ["its query uses random, now, which gives another value each time"]);
    write(&folder, "\n-- test unique v", "v\n1\n2");
    folder.write("//- data/in.csv\nv\n2\n3\n");
    let replayed = replay(&folder.open(), "last", None).unwrap();
    assert_eq!(outcomes(&replayed), ["t: different +1 -1 ~0"]);
    assert!(replayed.steps[0].hints[0].ends_with("in.csv has changed since: files have no versions"));
    assert!(!replayed.is_proven());
}

#[test]
fn upstream_snapshot_is_the_pin_of_the_step_also_behind_a_step_of_the_same_run() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT 1 AS i, $upstream_snapshot AS pin
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT $upstream_snapshot AS pin, $WM_UPSTREAM_SNAPSHOT AS same FROM a
",
    );
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    let told = run(&pintail, &crate::harness::forced());
    let made = told.step("a").snapshot.unwrap();
    assert_eq!(query(&pintail, "SELECT pin, same FROM b", None), [format!("{made}|{made}")], "b reads what a has made");
    let run = pintail.runs(1).unwrap().remove(0);
    let pinned = run.pins.values().next().unwrap();
    assert_eq!(query(&pintail, "SELECT pin FROM a", None), [pinned.to_string()], "a reads at the run's pin");
}
