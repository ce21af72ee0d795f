//! Backfill jobs on real lakes: what they do, leave, and take up again, also after a kill.

use expect_test::expect;
use pintail_core::plan::backfill::{JobState, PartitionState};
use pintail_runner::Pintail;
use pintail_runner::pintail::{
    BackfillEvent, BackfillRange, BackfillRequest, BackfillSummary, CancelledBackfill, UnwrittenUpstream,
};
use pintail_runner::run::RunEvent;
use pintail_store::{BackfillCounts, BackfillId};

use crate::harness::{Folder, query};
use crate::processes::{Pause, Work, open};

const DAILY: &str = "//- pipelines/d.sql
-- partitioned daily by=ts start=2026-01-01
-- materialize ducklake://main/d
SELECT $partition_start AS ts, 1 AS n
";

/// Each partition in a commit of its own: a step with a timeout shares none.
const ALONE: &str = "//- pipelines/d.sql
-- partitioned daily by=ts start=2026-01-01
-- materialize ducklake://main/d
-- timeout 10m
SELECT $partition_start AS ts, 1 AS n
";

/// Fails on every third day.
const SOME_FAIL: &str = "//- pipelines/d.sql
-- partitioned daily by=ts start=2026-01-01
-- materialize ducklake://main/d
SELECT $partition_start AS ts,
    CASE WHEN day($partition_start) % 3 = 0 THEN error('a bad day') ELSE '1' END AS n
";

const ONE: BackfillId = BackfillId(1);

/// Asks for the partitions of `script` from one up to another, which is not included.
pub fn request(script: &str, from: &str, to: &str) -> BackfillRequest {
    let range = BackfillRange {
        script: script.to_owned(),
        from: Some(from.to_owned()),
        to: Some(to.to_owned()),
        ..BackfillRange::default()
    };
    BackfillRequest { range, ..BackfillRequest::default() }
}

fn begin(pintail: &Pintail, request: &BackfillRequest) -> BackfillSummary {
    let plan = pintail.plan_backfill(request).unwrap();
    pintail.start_backfill(&plan, &mut |_| {}).unwrap()
}

fn counts(done: u64, failed: u64) -> BackfillCounts {
    BackfillCounts { running: 0, done, failed, cancelled: 0 }
}

/// The days of `d` that are in the lake, each with its rows.
fn days(pintail: &Pintail) -> Vec<String> {
    query(pintail, "SELECT strftime(ts, '%d'), count(*) FROM d GROUP BY ALL ORDER BY ALL", None)
}

#[test]
fn a_job_makes_its_partitions_and_remembers_them() {
    let folder = Folder::new(DAILY);
    let pintail = folder.open();
    let summary = begin(&pintail, &request("d", "2026-01-01", "2026-01-06"));
    assert_eq!((summary.id, summary.state, summary.counts), (ONE, JobState::Done, counts(5, 0)));
    assert_eq!(days(&pintail), ["01|1", "02|1", "03|1", "04|1", "05|1"]);
    let info = pintail.backfill(ONE).unwrap();
    assert_eq!((info.backfill.job.request.as_str(), info.is_interrupted), ("--from 2026-01-01 --to 2026-01-06", false));
    let run = &pintail.runs(1).unwrap()[0];
    assert_eq!(run.triggered_by, "backfill 1");
    // What is there is not a part of the next job.
    let plan = pintail.plan_backfill(&request("d", "2026-01-01", "2026-01-08")).unwrap();
    assert_eq!((plan.total, plan.up_to_date), (2, 5));
    assert_eq!(plan.estimate.unwrap().samples, 5);
}

#[test]
fn case_j53_every_failed_partition_is_marked_and_a_retry_does_only_those() {
    let folder = Folder::new(SOME_FAIL);
    let pintail = folder.open();
    let summary = begin(&pintail, &request("d", "2026-01-01", "2026-01-11"));
    assert_eq!((summary.state, summary.counts), (JobState::Failed, counts(7, 3)));
    let failed: Vec<String> = summary.failures.iter().map(|part| part.partition.to_string()).collect();
    assert_eq!(failed, ["2026-01-03", "2026-01-06", "2026-01-09"]);
    assert!(summary.failures.iter().all(|part| part.error.as_deref().unwrap().contains("a bad day")));
    // Nothing is left to resume; the failed ones are a retry's.
    let refused = pintail.resume_backfill(ONE, &mut |_| {}).unwrap_err().to_string();
    expect!["backfill 1: nothing of it is left to do, but 3 failed; `pintail backfill retry 1` does them again"]
        .assert_eq(&refused);
    let mut again = begin_list();
    let summary = pintail.retry_backfill(ONE, &mut |event| again.see(&event)).unwrap();
    assert_eq!((summary.state, summary.counts), (JobState::Failed, counts(7, 3)));
    assert_eq!(again.sorted(), failed);
    drop(pintail);

    folder.write(&SOME_FAIL.replace("error('a bad day')", "'2'"));
    let pintail = folder.open();
    let mut again = begin_list();
    let summary = pintail.retry_backfill(ONE, &mut |event| again.see(&event)).unwrap();
    assert_eq!((summary.state, summary.counts), (JobState::Done, counts(10, 0)));
    assert_eq!(again.sorted(), failed);
    let refused = pintail.retry_backfill(ONE, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(refused, "backfill 1: nothing of it has failed");
}

/// The partitions that a job begins.
struct Begun {
    partitions: Vec<String>,
    steps: Vec<pintail_core::plan::Step>,
}

fn begin_list() -> Begun {
    Begun { partitions: Vec::new(), steps: Vec::new() }
}

impl Begun {
    fn see(&mut self, event: &BackfillEvent) {
        match event {
            BackfillEvent::Run(RunEvent::Started { steps, .. }) => self.steps = steps.clone(),
            BackfillEvent::Run(RunEvent::StepStarted { index }) => {
                let step = &self.steps[*index];
                self.partitions.push(step.partition.as_ref().unwrap_or_else(|| panic!("{step:?}")).to_string());
            }
            _ => {}
        }
    }

    fn sorted(mut self) -> Vec<String> {
        self.partitions.sort();
        self.partitions
    }
}

#[test]
fn missing_failed_and_stale_choose_what_they_say() {
    let folder = Folder::new(SOME_FAIL);
    let pintail = folder.open();
    begin(&pintail, &request("d", "2026-01-01", "2026-01-05"));
    drop(pintail);
    folder.write(DAILY);
    let pintail = folder.open();
    let chosen = |change: fn(&mut BackfillRange)| {
        let mut request = request("d", "2026-01-01", "2026-01-08");
        change(&mut request.range);
        let plan = pintail.plan_backfill(&request).unwrap();
        let ranges = plan.ranges.as_slice().iter();
        ranges.map(|range| format!("{}..{}", range.first, range.last)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(chosen(|range| range.missing = true), "2026-01-03..2026-01-03 2026-01-05..2026-01-07");
    assert_eq!(chosen(|range| range.failed = true), "2026-01-03..2026-01-03");
    // The script is another one than the one that wrote them.
    assert_eq!(chosen(|range| range.stale = true), "2026-01-01..2026-01-02 2026-01-04..2026-01-04");
    let all = chosen(|range| (range.failed, range.stale) = (true, true));
    assert_eq!(all, "2026-01-01..2026-01-04");
}

#[test]
fn a_job_in_which_nothing_goes_well_leaves_the_rest() {
    let folder = Folder::new(
        "//- pipelines/d.sql
-- partitioned hourly by=ts
-- materialize ducklake://main/d
SELECT $partition_start AS ts, error('never') AS n
",
    );
    let pintail = folder.open();
    let summary = begin(&pintail, &request("d", "2026-01-01T00", "2026-01-12T00"));
    assert_eq!((summary.state, summary.counts, summary.total), (JobState::Failed, counts(0, 256), 264));
    assert_eq!(summary.reason.as_deref(), Some("all of the last 256 failed, so the rest was left"));
    assert_eq!(summary.failures.len(), 10);
}

const CHAIN: &str = "//- pipelines/up.sql
-- partitioned daily by=ts start=2026-01-02
-- materialize ducklake://main/up
SELECT $partition_start AS ts, 1 AS n
//- pipelines/down.sql
-- partitioned daily by=ts
-- materialize ducklake://main/down
SELECT * FROM up WHERE in_partition(ts)
";

#[test]
fn upstream_partitions_that_were_never_written_are_told_and_made_first() {
    let folder = Folder::new(CHAIN);
    let pintail = folder.open();
    let mut request = request("down", "2026-01-01", "2026-01-06");
    let plan = pintail.plan_backfill(&request).unwrap();
    // The first day lies before the upstream's start, so nobody expects it.
    assert_eq!(
        plan.unwritten,
        [UnwrittenUpstream { script: pintail_core::id::ScriptName("up".into()), partitions: Some(4) }]
    );
    request.range.upstream = true;
    request.range.from = Some("2026-01-02".into());
    assert_eq!(pintail.plan_backfill(&request).unwrap().unwritten, []);
    let summary = begin(&pintail, &request);
    assert_eq!((summary.state, summary.counts), (JobState::Done, counts(4, 0)));
    assert_eq!(query(&pintail, "SELECT count(*), sum(n) FROM down", None), ["4|4"]);
}

#[test]
fn a_partition_whose_upstream_failed_has_failed_too() {
    let folder = Folder::new(CHAIN);
    folder.write(
        "//- pipelines/up.sql
-- partitioned daily by=ts start=2026-01-02
-- materialize ducklake://main/up
SELECT $partition_start AS ts, CASE WHEN day($partition_start) = 3 THEN error('no') ELSE '1' END AS n
",
    );
    let pintail = folder.open();
    let mut request = request("down", "2026-01-02", "2026-01-05");
    request.range.upstream = true;
    let summary = begin(&pintail, &request);
    assert_eq!((summary.state, summary.counts), (JobState::Failed, counts(2, 1)));
    assert_eq!(summary.failures[0].partition.as_str(), "2026-01-03");
    assert_eq!(summary.failures[0].error.as_deref(), Some("a step before it failed"));
}

#[test]
fn a_stopped_job_keeps_what_is_done_and_goes_on_where_it_was() {
    let folder = Folder::new(ALONE);
    folder.write("//- pintail.toml\n[run]\nslots = 1\n");
    let pintail = folder.open();
    let cancel = pintail.cancel();
    let plan = pintail.plan_backfill(&request("d", "2026-01-01", "2026-01-11")).unwrap();
    let mut ended = 0;
    let summary = pintail.start_backfill(&plan, &mut |event| {
        if let BackfillEvent::Run(RunEvent::StepFinished { report: Some(_), .. }) = event {
            ended += 1;
            if ended == 3 {
                cancel.cancel();
            }
        }
    });
    let summary = summary.unwrap();
    assert_eq!((summary.state, summary.counts.done), (JobState::Cancelled, 3));
    let done = days(&pintail).len();
    drop(pintail);

    let pintail = folder.open();
    let mut begun = begin_list();
    let summary = pintail.resume_backfill(ONE, &mut |event| begun.see(&event)).unwrap();
    assert_eq!((summary.state, summary.counts), (JobState::Done, counts(10, 0)));
    assert_eq!(begun.partitions.len(), 10 - done);
    assert_eq!(days(&pintail).len(), 10);
}

#[test]
fn a_job_of_another_calendar_is_not_resumed() {
    let folder = Folder::new(SOME_FAIL);
    begin(&folder.open(), &request("d", "2026-01-01", "2026-01-05"));
    folder.write(&DAILY.replace("daily by=ts", "daily by=ts tz=Europe/Berlin"));
    let refused = folder.open().retry_backfill(ONE, &mut |_| {}).unwrap_err().to_string();
    expect!["`d` is daily Europe/Berlin and was daily UTC when backfill 1 began, so its partitions are other ones; begin a new one: `pintail backfill d --missing`"].assert_eq(&refused);
}

/// Kills the second job of `project` at `point` of its first commit, resumes it, and returns how many partitions the dead
/// process had committed.
fn kill_in_the_middle(project: &str, point: &'static str) -> usize {
    let folder = Folder::new(project);
    folder.write("//- pintail.toml\n[run]\nslots = 1\n");
    let first = Work::run().job("d", "2026-01-01", "2026-01-03").start(folder.path()).done();
    assert_eq!(first, ["Done BackfillCounts { running: 0, done: 2, failed: 0, cancelled: 0 }"]);
    let work = Work::run().job("d", "2026-01-03", "2026-01-13").faults(format!("{point}=kill"));
    work.start(folder.path()).killed();

    let pintail = open(folder.path(), "");
    let info = pintail.backfill(BackfillId(2)).unwrap();
    assert!(info.is_interrupted, "{info:?}");
    assert_eq!(info.counts.running, 10, "the whole window was in work");
    let committed = days(&pintail).len() - 2;
    let mut begun = begin_list();
    let summary = pintail.resume_backfill(BackfillId(2), &mut |event| begun.see(&event)).unwrap();
    assert_eq!((summary.state, summary.counts), (JobState::Done, counts(10, 0)));
    // What the dead process committed is not done again.
    assert_eq!(begun.partitions.len(), 10 - committed);
    assert_eq!(days(&pintail).len(), 12);
    assert!(days(&pintail).iter().all(|day| day.ends_with("|1")), "{:?}", days(&pintail));
    let commits = query(
        &pintail,
        r#"SELECT count(*) FROM lake.snapshots() WHERE commit_extra_info LIKE '%"partition":"2026-01-03"%'"#,
        None,
    );
    assert_eq!(commits, ["1"]);
    committed
}

#[test]
fn a_job_that_is_killed_before_a_commit_does_the_partition_again() {
    assert_eq!(kill_in_the_middle(ALONE, "stamped"), 0);
    assert_eq!(kill_in_the_middle(DAILY, "stamped"), 0);
}

#[test]
fn a_job_that_is_killed_after_a_commit_finds_the_partition_done() {
    assert_eq!(kill_in_the_middle(ALONE, "committed"), 1);
}

#[test]
fn a_job_that_is_killed_after_a_commit_of_many_partitions_finds_them_all_done() {
    // How many share the commit depends on how fast they are staged.
    assert!(1 <= kill_in_the_middle(DAILY, "committed"));
}

#[test]
fn a_living_job_is_neither_resumed_nor_doubled_and_stops_when_asked() {
    let folder = Folder::new(DAILY);
    folder.write("//- pintail.toml\n[run]\nslots = 1\n");
    let pause = Pause::at("staged");
    let work = Work::run().job("d", "2026-01-01", "2026-11-01").faults(pause.fault());
    let mut process = work.start(folder.path());
    process.reaches(&pause.reached());

    let pintail = folder.open();
    assert!(!pintail.backfill(ONE).unwrap().is_interrupted);
    let refused = pintail.resume_backfill(ONE, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(refused, "backfill 1: its process is at work; `pintail backfill cancel 1` stops it");
    let plan = pintail.plan_backfill(&request("d", "2026-01-05", "2026-02-01")).unwrap();
    let refused = pintail.start_backfill(&plan, &mut |_| {}).unwrap_err().to_string();
    assert!(refused.starts_with("backfill 1 makes some of the same partitions of `d` right now"), "{refused}");
    assert_eq!(pintail.cancel_backfill(ONE).unwrap(), CancelledBackfill::Asked);
    // It looks every half second, and has ten months of days before it.
    pause.release();
    let told = process.done();
    assert!(told[0].starts_with("Cancelled"), "{told:?}");
    let info = pintail.backfill(ONE).unwrap();
    assert_eq!(info.backfill.state, JobState::Cancelled);
    assert_eq!(pintail.cancel_backfill(ONE).unwrap(), CancelledBackfill::HadEnded(JobState::Cancelled));
}

#[test]
fn the_job_of_a_dead_process_can_be_cancelled_and_resumed() {
    let folder = Folder::new(DAILY);
    folder.write("//- pintail.toml\n[run]\nslots = 1\n");
    Work::run().job("d", "2026-01-01", "2026-01-04").faults("committed=kill").start(folder.path()).killed();
    let pintail = folder.open();
    assert_eq!(pintail.plan_backfill(&request("d", "2026-01-01", "2026-01-04")).unwrap().interrupted, [ONE]);
    assert_eq!(pintail.cancel_backfill(ONE).unwrap(), CancelledBackfill::Cancelled);
    let info = pintail.backfill(ONE).unwrap();
    assert_eq!((info.backfill.state, info.counts), (JobState::Cancelled, counts(1, 0)));
    drop(pintail);
    let told = Work::run().resume().start(folder.path()).done();
    assert_eq!(told, ["Done BackfillCounts { running: 0, done: 3, failed: 0, cancelled: 0 }"]);
}

#[test]
fn ten_thousand_partitions_are_a_range_and_windows() {
    let folder = Folder::new(
        "//- pipelines/d.sql
-- partitioned hourly by=ts
-- materialize ducklake://main/d
SELECT $partition_start AS ts, 1 AS n
",
    );
    let pintail = folder.open();
    let plan = pintail.plan_backfill(&request("d", "2024-01-01T00", "2025-02-20T16")).unwrap();
    assert_eq!((plan.total, plan.ranges.as_slice().len(), plan.first.len()), (10_000, 1, 3));
    let cancel = pintail.cancel();
    let mut largest = 0;
    let summary = pintail.start_backfill(&plan, &mut |event| match event {
        BackfillEvent::Run(RunEvent::Started { steps, .. }) => largest = largest.max(steps.len()),
        BackfillEvent::Run(RunEvent::StepFinished { report: Some(_), .. }) => cancel.cancel(),
        _ => {}
    });
    let summary = summary.unwrap();
    assert_eq!((summary.state, largest), (JobState::Cancelled, 256));
    let info = pintail.backfill(ONE).unwrap();
    // What was not begun has no row.
    let rows = info.counts.running + info.counts.done + info.counts.failed + info.counts.cancelled;
    assert!(0 < rows && rows <= 4, "{:?}", info.counts);
    let stopped = pintail.backfill_partitions_in(ONE, PartitionState::Running, 10).unwrap();
    assert_eq!(stopped, []);
}

#[test]
fn concurrency_is_how_many_are_in_work_at_once() {
    let folder = Folder::new(ALONE);
    let pintail = folder.open();
    // The first makes the table, at which others would meet.
    begin(&pintail, &request("d", "2026-01-01", "2026-01-02"));
    let most = |concurrency: u32, from: &str, to: &str| {
        let mut request = request("d", from, to);
        request.concurrency = std::num::NonZeroU32::new(concurrency);
        let plan = pintail.plan_backfill(&request).unwrap();
        let (mut running, mut most) = (0_u32, 0);
        let summary = pintail.start_backfill(&plan, &mut |event| match event {
            BackfillEvent::Run(RunEvent::StepStarted { .. }) => {
                running += 1;
                most = most.max(running);
            }
            BackfillEvent::Run(RunEvent::StepFinished { .. }) => running -= 1,
            _ => {}
        });
        assert_eq!(summary.unwrap().state, JobState::Done);
        most
    };
    assert_eq!(most(1, "2026-01-02", "2026-01-06"), 1);
    assert_eq!(most(3, "2026-01-06", "2026-01-12"), 3);
}

#[test]
fn a_shared_store_tells_projects_apart_and_holds_their_jobs() {
    let database = pintail_testkit::services::database();
    let project = |name: &str| {
        let folder = Folder::new(DAILY);
        folder.write(&format!("//- pintail.toml\n[project]\nname = \"{name}\"\n[store]\nurl = \"${{STORE_URL}}\"\n"));
        folder.write(&format!("//- test.env\nSTORE_URL={}\n", database.url()));
        folder
    };
    let (shop, cellar) = (project("shop"), project("cellar"));
    let summary = begin(&shop.open(), &request("d", "2026-01-01", "2026-01-04"));
    assert_eq!((summary.id, summary.counts), (ONE, counts(3, 0)));
    let other = cellar.open();
    assert_eq!(other.backfills(10).unwrap(), []);
    assert_eq!(begin(&other, &request("d", "2026-01-01", "2026-01-03")).id, ONE);
    // Another process of the first project sees what it did.
    let again = shop.open();
    assert_eq!(again.backfills(10).unwrap()[0].counts, counts(3, 0));
    assert_eq!(again.runs(10).unwrap().len(), 1);
    assert_eq!(again.plan_backfill(&request("d", "2026-01-01", "2026-01-04")).unwrap().total, 0);
}
