//! Upkeep while the server, the object store or the disk fails: nothing is lost, what happened is said, and the next upkeep
//! does what is left.

use pintail_engine::fault::FaultPoint;
use pintail_runner::Pintail;
use pintail_runner::pintail::{CompactedTable, Compaction, MaintainRequest, Maintained, PlanRequest};
use pintail_testkit::services::{Fault, Flaky, ObjectPrefix, object_prefix, private_postgres};

use crate::harness::{Folder, foreign, planned, query, run, upkeep};
use crate::processes::{Pause, Work};
use crate::spill::{SMALL_FILES, SmallDisk};

const PROJECT: &str = "
[run]
slots = 1
keep_runs = 0
keep_days = 0
//- pipelines/a.sql
-- materialize ducklake://main/a
SELECT v FROM read_csv('data/in.csv')
//- data/in.csv
v
0
";

/// About one and a half megabytes that do not compress, as one more file.
const MORE: &str =
    "INSERT INTO appended SELECT md5(i::VARCHAR || random()) || md5(random()::VARCHAR) FROM range(25_000) t(i)";

/// Makes a table `appended` of `files` files.
fn append(pintail: &Pintail, files: usize) {
    foreign(pintail, "CREATE TABLE IF NOT EXISTS appended (text VARCHAR)");
    (0..files).for_each(|_| foreign(pintail, MORE));
}

fn everything() -> MaintainRequest {
    MaintainRequest { compaction: Some(Compaction::default()), ..upkeep() }
}

fn maintained(pintail: &Pintail) -> Maintained {
    pintail.maintain(&everything()).unwrap().remove(0)
}

fn of_appended(done: &Maintained) -> &CompactedTable {
    done.compacted.iter().find(|table| table.table == "appended").unwrap_or_else(|| panic!("{done:?}"))
}

fn rows(pintail: &Pintail) -> Vec<String> {
    query(pintail, "SELECT count(*), sum(hash(text)::HUGEINT) FROM appended", None)
}

fn assert_clean(pintail: &Pintail, when: &str) {
    let audit = pintail.audit(None, &|_, _| Vec::new()).unwrap().remove(0);
    assert_eq!(audit.findings, [], "{when}");
}

#[test]
fn a_server_that_crashes_at_any_point_of_the_upkeep_costs_nothing() {
    let mut server = private_postgres();
    let folder = Folder::on_postgres(&format!("//- pintail.toml{PROJECT}"), server.database());
    folder.run_all().assert_good();
    for (version, point) in (1..).zip(FaultPoint::UPKEEP) {
        append(&folder.open(), 2);
        folder.write(&format!("//- data/in.csv\nv\n{version}\n"));
        folder.run_all().assert_good();
        let before = rows(&folder.open());
        let pause = Pause::at(point.name());
        let mut process = Work::run().maintain().faults(pause.fault()).start(folder.path());
        process.reaches(&pause.reached());
        server.kill();
        server.resume().unwrap();
        pause.release();
        let told = process.done().join("\n");
        let says_why = ["connection", "server", "Postgres"].iter().any(|word| told.contains(word));
        assert!(says_why || !told.contains("error"), "{point:?}: {told}");
        let pintail = folder.open();
        assert_eq!(rows(&pintail), before, "{point:?}: {told}");
        let done = maintained(&pintail);
        assert!(!done.is_led_elsewhere && of_or_nothing(&done).is_none(), "{point:?}: {done:?}");
        assert_eq!(rows(&pintail), before, "{point:?}");
        assert_eq!(planned(&pintail, &PlanRequest::default()), [""; 0], "{point:?}");
        assert_clean(&pintail, &format!("{point:?}, afterwards"));
    }
}

/// Why the table was left, if it was.
fn of_or_nothing(done: &Maintained) -> Option<&str> {
    done.compacted.iter().find(|table| table.table == "appended")?.left.as_deref()
}

/// A project whose data lie in an object store that is reached through `flaky`.
fn on_store(flaky: &Flaky, prefix: &ObjectPrefix) -> Folder {
    let folder = Folder::new(&format!(
        "//- test.env
S3_KEY={}
S3_SECRET={}
//- pintail.toml
[lake.main]
data = \"{url}/lake\"
[object_store.raw]
url = \"{url}\"
endpoint = \"{}\"
url_style = \"path\"
use_ssl = false
key = \"${{S3_KEY}}\"
secret = \"${{S3_SECRET}}\"
{PROJECT}",
        prefix.key,
        prefix.secret,
        flaky.endpoint(),
        url = prefix.url,
    ));
    run(&folder.open(), &PlanRequest::default()).assert_good();
    folder
}

#[test]
fn a_store_that_fails_while_files_are_merged_leaves_the_table_as_it_was() {
    let prefix = object_prefix();
    let flaky = Flaky::before(&prefix.endpoint);
    let folder = on_store(&flaky, &prefix);
    append(&folder.open(), 3);
    let before = rows(&folder.open());
    // Whatever is larger than what was merged is cut: questions pass, and the merged file does not.
    flaky.set(Fault::CutRequests(2_000_000), 1);
    let pintail = folder.open();
    let done = maintained(&pintail);
    let left = of_appended(&done).left.clone().unwrap();
    assert!(0 < flaky.hits() && of_appended(&done).merged.is_none(), "{done:?}");
    assert!(left.contains("s3://") || left.contains("HTTP"), "{left}");
    flaky.set(Fault::None, 1);
    let pintail = folder.open();
    assert_eq!(rows(&pintail), before);
    assert_clean(&pintail, &left);
    let done = maintained(&pintail);
    assert_eq!(of_appended(&done).merged.unwrap().files_before, 3, "{done:?}");
    assert_eq!(rows(&folder.open()), before);
    assert_clean(&folder.open(), "afterwards");
}

#[test]
fn a_store_that_fails_while_files_are_deleted_keeps_them_for_the_next_time() {
    let prefix = object_prefix();
    let flaky = Flaky::before(&prefix.endpoint);
    let folder = on_store(&flaky, &prefix);
    append(&folder.open(), 2);
    let before = rows(&folder.open());
    let pause = Pause::at("expired");
    let mut process = Work::run().maintain().faults(pause.fault()).start(folder.path());
    process.reaches(&pause.reached());
    flaky.set(Fault::Refuse, 1);
    pause.release();
    let told = process.done().join("\n");
    assert!(0 < flaky.hits() && told.contains("HTTP"), "{told}");
    flaky.set(Fault::None, 1);
    let pintail = folder.open();
    assert_eq!(rows(&pintail), before);
    assert_clean(&pintail, &told);
    let done = maintained(&pintail);
    assert!(2 <= done.files_deleted, "{done:?}");
    assert_eq!(rows(&folder.open()), before);
    assert_clean(&folder.open(), "afterwards");
}

#[test]
fn on_local_files_a_disk_that_is_full_while_files_are_merged_leaves_the_table_as_it_was() {
    // Six megabytes do not fit beside six, or not into one file where nobody may mount a small disk.
    let disk = SmallDisk::mount(10);
    let data =
        disk.as_ref().map_or_else(String::new, |disk| format!("[lake.main]\ndata = \"{}\"", disk.path().display()));
    let folder = Folder::new(&format!("//- pintail.toml\n{data}{PROJECT}"));
    run(&folder.open(), &PlanRequest::default()).assert_good();
    append(&folder.open(), 4);
    let before = rows(&folder.open());
    let work = match &disk {
        Some(_) => Work::run().maintain(),
        None => Work::run().maintain().behind(SMALL_FILES),
    };
    let told = work.start(folder.path()).done().join("\n");
    assert!(told.contains("No space left on device") || told.contains("File too large"), "{told}");
    let pintail = folder.open();
    assert_eq!(rows(&pintail), before, "{told}");
    assert_clean(&pintail, &told);
    if let Some(disk) = &disk {
        disk.grow(100);
    }
    let done = maintained(&pintail);
    assert_eq!(of_appended(&done).merged.unwrap().files_before, 4, "{done:?}");
    assert_eq!(rows(&folder.open()), before);
}
