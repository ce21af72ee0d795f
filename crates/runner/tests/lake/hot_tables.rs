//! Compaction of tables whose rows another process changes all the time, without their leases, on a real Postgres.

use std::sync::atomic::{AtomicBool, Ordering};

use pintail_core::sql::{Relation, Statement};
use pintail_engine::fault::Faults;
use pintail_engine::{InstanceOptions, LakeLocation};
use pintail_runner::pintail::{Compaction, MaintainRequest, Maintained, PlanRequest};
use pintail_streams::commit::{begin_at, commit};
use pintail_streams::{Commit, Move, Outcome, PositionTable, Writer};
use pintail_testkit::services::database;

use crate::harness::{Folder, foreign, options, query, run, upkeep};

const PROJECT: &str = "//- pipelines/other.sql
-- materialize ducklake://main/other
SELECT 1 AS x
";

/// A consumer, as far as the lake sees one: every commit folds one row into `hot`, and appends one to `log`.
struct Consumer {
    writer: Writer,
    position: PositionTable,
}

impl Consumer {
    fn open(lake: &LakeLocation, options: InstanceOptions) -> Self {
        let writer = Writer::open(lake, options, Faults::default()).unwrap();
        let position = PositionTable::source("folding");
        begin_at(&writer, "folding", &position, "0", "a test").unwrap();
        Self { writer, position }
    }

    fn land(&self, from: u32) -> Outcome<()> {
        let (at, to) = (from.to_string(), (from + 1).to_string());
        let change = Move { from: &at, to: &to, source: "a test", token: 1 };
        let changes = [("main", "hot")];
        let asked = Commit { by: "folding", position: &self.position, change, changes: &changes };
        let table = |name: &str| Relation::in_catalog(self.writer.alias(), "main", name);
        let fold = [
            format!("UPDATE {} SET n = n + 1 WHERE k = {}", table("hot"), from % 8),
            format!("INSERT INTO {} VALUES ({from})", table("log")),
        ];
        let work = |transaction: &pintail_engine::WriteTransaction<'_>| {
            fold.iter().try_for_each(|sql| transaction.run(&Statement::new("fold", sql.clone())).map(drop))
        };
        commit(&self.writer, &asked, work, |()| "fold".to_owned())
    }

    /// Commits until `is_over`, and says how often and which commits did not land at once.
    fn land_until(&self, is_over: &AtomicBool) -> (u32, Vec<String>) {
        let (mut landed, mut others) = (0, Vec::new());
        while !is_over.load(Ordering::SeqCst) || landed < 10 {
            match self.land(landed) {
                Outcome::Committed { .. } => landed += 1,
                other => others.push(format!("{other:?}")),
            }
        }
        (landed, others)
    }
}

#[test]
fn a_table_that_is_changed_all_the_time_is_merged_and_none_of_the_changes_fails() {
    let folder = Folder::on_postgres(PROJECT, database());
    let pintail = folder.open();
    run(&pintail, &PlanRequest::default()).assert_good();
    foreign(&pintail, "CREATE TABLE log (i INTEGER)");
    foreign(&pintail, "CREATE TABLE hot AS SELECT k, 0 AS n FROM range(8) t(k)");
    for file in 1..12 {
        foreign(&pintail, &format!("INSERT INTO hot SELECT {file} * 100 + k, 0 FROM range(50) t(k)"));
    }
    let lake = folder.as_another_process(pintail.lakes().values().next().unwrap());
    let options = options(&pintail);
    let is_over = AtomicBool::new(false);
    let request = MaintainRequest { compaction: Some(Compaction::default()), ..upkeep() };
    let (rounds, (landed, others)) = std::thread::scope(|scope| {
        let working = scope.spawn(|| Consumer::open(&lake, options).land_until(&is_over));
        let rounds: Vec<_> = (0..2).map(|_| pintail.maintain(&request).unwrap().remove(0)).collect();
        is_over.store(true, Ordering::SeqCst);
        (rounds, working.join().unwrap())
    });
    assert_eq!(others, Vec::<String>::new());
    let hot = |done: &Maintained| done.compacted.iter().find(|table| table.table == "hot").cloned();
    let first = hot(&rounds[0]).unwrap();
    assert!(12 <= first.merged.unwrap().files_before, "{first:?}");
    let left: Vec<String> = rounds.iter().filter_map(hot).filter_map(|table| table.left).collect();
    assert_eq!(left, Vec::<String>::new());
    let counts =
        "SELECT (SELECT sum(n)::BIGINT FROM hot), (SELECT count(*) FROM hot), count(*), count(DISTINCT i) FROM log";
    assert_eq!(query(&pintail, counts, None), [format!("{landed}|558|{landed}|{landed}")]);
    assert_eq!(pintail.audit(None, &|_, _| Vec::new()).unwrap().remove(0).findings, []);
}
