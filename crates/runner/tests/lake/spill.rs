//! Disks that are full, spill directories that are full, and memory that is short: the step fails and says what is short
//! and what to do, nothing is committed, the process lives, and the next run works once there is room.

use pintail_runner::pintail::PlanRequest;
pub use pintail_testkit::{SMALL_FILES, SmallDisk};

use crate::harness::{Folder, Told, only, query, run};
use crate::processes::{Work, open};

/// Two million rows that do not compress, and a small table.
const BIG: &str = "//- pipelines/big.sql
-- materialize ducklake://main/big
SELECT i, md5(i::VARCHAR) || md5((i + 1)::VARCHAR) AS text FROM range(400000) t(i)
//- pipelines/small.sql
-- materialize ducklake://main/small
SELECT 1 AS n
";

const CONFIG: &str = "//- pintail.toml
[run]
slots = 1
";

/// What a failed step tells: its message, what to do, and what is committed.
fn told_of(told: &Told, step: &str) -> String {
    let failure = told.failure(step);
    format!("{}\nhelp: {}\ncommitted: {}", failure.message, failure.help.as_deref().unwrap_or("-"), failure.committed)
}

#[test]
fn a_full_disk_fails_the_step_and_the_next_run_works_once_there_is_room() {
    let Some(disk) = SmallDisk::mount(8) else { return a_file_that_may_not_grow_fails_the_step() };
    let folder = Folder::new(&format!(
        "{CONFIG}[lake.main]\ncatalog = \"sqlite:.pintail/main.sqlite\"\ndata = \"{}\"\n{BIG}",
        disk.path().display()
    ));
    let pintail = folder.open();
    let told = run(&pintail, &only("big"));
    if crate::catalogs::on_s3() {
        // There the data lie elsewhere, and nothing is full.
        told.assert_good();
        return;
    }
    let text = told_of(&told, "big");
    assert!(text.contains("No space left on device") && text.contains(&disk.path().display().to_string()), "{text}");
    assert!(text.contains("help: make room") && text.contains("nothing of this step is committed"), "{text}");
    assert_eq!(query(&pintail, "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'big'", None), ["0"]);
    // The same process goes on as soon as there is room.
    disk.grow(200);
    run(&pintail, &PlanRequest::default()).assert_good();
    assert_eq!(query(&pintail, "SELECT (SELECT count(*) FROM big), (SELECT n FROM small)", None), ["400000|1"]);
}

#[test]
fn a_file_that_may_not_grow_fails_the_step() {
    let folder = Folder::new(&format!("{CONFIG}{BIG}"));
    let told = Work::run().behind(SMALL_FILES).start(folder.path()).done();
    if crate::catalogs::on_s3() {
        return;
    }
    let is_told = |line: &String| line.starts_with("big: Failed") && line.contains("File too large");
    assert!(told.iter().any(is_told), "{told:?}");
    assert!(told.iter().any(|line| line == "small: Materialized"), "{told:?}");
    let pintail = open(folder.path(), "");
    run(&pintail, &only("big")).assert_good();
    assert_eq!(query(&pintail, "SELECT count(*) FROM big", None), ["400000"]);
}

/// A sort of five million rows, which does not fit into 150 MB.
const SORT: &str = "//- pipelines/big.sql
-- materialize ducklake://main/big
SELECT i, repeat('x', 100) || i AS text FROM range(5000000) t(i) ORDER BY hash(i)
//- pipelines/small.sql
-- materialize ducklake://main/small
SELECT 1 AS n
";

#[test]
fn a_full_spill_directory_names_its_limit_and_a_larger_one_lets_the_next_run_pass() {
    let config = |limit: &str| format!("{CONFIG}memory_limit = \"150MB\"\ntemp_limit = \"{limit}\"\n");
    let folder = Folder::new(&format!("{}{SORT}", config("1MB")));
    let pintail = folder.open();
    let text = told_of(&run(&pintail, &only("big")), "big");
    assert!(text.contains("help: what does not fit") && text.contains("`memory_limit`"), "{text}");
    assert!(text.contains("nothing of this step is committed"), "{text}");
    run(&pintail, &only("small")).assert_good();
    drop(pintail);
    folder.write(&config("2GB"));
    let told = folder.run(&only("big"));
    assert_eq!(told.assert_good().step("big").rows, Some(5_000_000));
}

#[test]
fn a_full_disk_under_the_spill_directory_says_so() {
    let Some(disk) = SmallDisk::mount(4) else { return };
    let folder = Folder::new(&format!(
        "{CONFIG}memory_limit = \"150MB\"\ntemp_directory = \"{}\"\n{SORT}",
        disk.path().display()
    ));
    let pintail = folder.open();
    let text = told_of(&run(&pintail, &only("big")), "big");
    let names_the_disk = text.contains(&disk.path().display().to_string());
    assert!(names_the_disk && text.contains("help: make room"), "{text}");
    run(&pintail, &only("small")).assert_good();
    disk.grow(2_000);
    run(&pintail, &only("big")).assert_good();
}

#[test]
fn a_merge_far_larger_than_its_memory_stays_near_its_memory() {
    let folder = Folder::new(&format!(
        "{CONFIG}memory_limit = \"128MB\"
//- pipelines/source.sql
-- materialize ducklake://main/source
SELECT i AS id, i % 1000 AS customer, 'note ' || (i % 97) AS note FROM range(2000000) t(i)
//- pipelines/merged.sql
-- materialize ducklake://main/merged key=id
SELECT * FROM source
"
    ));
    let first = Work::run().peak().start(folder.path()).done();
    assert_eq!(first.iter().filter(|line| line.ends_with(": Materialized")).count(), 2, "{first:?}");
    let told = Work::run().force().peak().start(folder.path()).done();
    assert_eq!(told.iter().filter(|line| line.ends_with(": Materialized")).count(), 2, "{told:?}");
    let peak = told.iter().find_map(|line| line.strip_prefix("peak: ")?.parse::<u64>().ok()).unwrap();
    println!("peak resident size: {} MB", peak / 1_000_000);
    assert!(peak < 700_000_000, "{peak} bytes were resident");
    assert_eq!(folder.query("SELECT count(*), count(DISTINCT id) FROM merged"), ["2000000|2000000"]);
}
