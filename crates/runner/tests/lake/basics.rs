//! Replace, merge, append, view, manual; whole and per slice.

use pintail_runner::pintail::PlanRequest;

use crate::harness::{Folder, at, forced};

#[test]
fn a_step_reads_what_an_earlier_step_of_the_run_wrote_and_a_second_run_does_nothing() {
    let folder = Folder::new(
        "//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT i AS n FROM range(10) t(i)
//- pipelines/b.sql
-- materialize ducklake://main/b
SELECT sum(n) AS total FROM a
//- pipelines/c.sql
-- materialize view ducklake://main/c
SELECT total * 2 AS doubled FROM lake.b
",
    );
    let told = folder.run_all();
    told.assert_good();
    assert_eq!(told.steps.len(), 3);
    assert_eq!(folder.query("SELECT doubled FROM c"), ["90"]);
    let again = folder.run_all();
    assert_eq!(again.steps.len(), 0, "{}", again.text());
    assert_eq!(again.summary.up_to_date, 3);
}

#[test]
fn a_slice_is_replaced_and_its_siblings_stay() {
    let folder = Folder::new(
        "//- pipelines/d.sql
-- partitioned daily by=ts
-- materialize ducklake://main/d
SELECT ts, v FROM (VALUES (TIMESTAMPTZ '2026-01-01 10:00:00+00', 1), (TIMESTAMPTZ '2026-01-02 11:00:00+00', 2)) t(ts, v)
WHERE in_partition(ts)
//- pipelines/e.sql
-- partitioned daily
-- materialize ducklake://main/e
SELECT * FROM d WHERE in_partition(ts)
//- pipelines/f.sql
-- partitioned daily
-- materialize ducklake://main/f
SELECT * FROM e WHERE _partition = $partition
",
    );
    folder.run(&at("2026-01-01")).assert_good();
    folder.run(&at("2026-01-02")).assert_good();
    assert_eq!(folder.query("SELECT count(*), sum(v) FROM d"), ["2|3"]);
    assert_eq!(folder.query("SELECT _partition, v FROM f ORDER BY v"), ["2026-01-01|1", "2026-01-02|2"]);
    let again = folder.run(&PlanRequest { force: true, ..at("2026-01-02") });
    again.assert_good();
    assert_eq!(again.step("d 2026-01-02").changed, (1, 1));
    assert_eq!(folder.query("SELECT count(*), sum(v) FROM f"), ["2|3"]);
}

#[test]
fn merge_append_and_manual_write_what_they_say() {
    let folder = Folder::new(
        "//- pipelines/m.sql
-- materialize ducklake://main/m key=k order_by=\"v desc\"
SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (2, 'c')) t(k, v)
//- pipelines/p.sql
-- materialize ducklake://main/p append
SELECT k, v FROM m
//- pipelines/w.sql
-- materialize manual ducklake://main/w
ATTACH 'ducklake' AS l;
CREATE TABLE IF NOT EXISTS l.w (n BIGINT);
BEGIN;
DELETE FROM l.w;
INSERT INTO l.w SELECT count(*) FROM l.p;
COMMIT;
",
    );
    folder.run_all().assert_good();
    assert_eq!(folder.query("SELECT k, v FROM m ORDER BY k"), ["1|a", "2|c"]);
    assert_eq!(folder.query("SELECT count(*) FROM p"), ["2"]);
    assert_eq!(folder.query("SELECT n FROM w"), ["2"]);
    let again = folder.run_all();
    assert_eq!(again.steps.len(), 0, "{}", again.text());
    let forced = folder.run(&forced());
    forced.assert_good();
    assert_eq!(forced.step("m").changed, (2, 2));
    assert_eq!(folder.query("SELECT count(*) FROM p"), ["4"]);
}
