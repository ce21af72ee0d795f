//! Real processes: this test binary started once more, to run a project as a face would, and to be paused, killed or
//! raced there.
//!
//! A process is told what to do by its environment, says on standard output what became of its steps, and meets others
//! at files; nothing waits for time to pass.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use pintail_engine::fault::Faults;
use pintail_engine::native::ExtensionFolders;
use pintail_runner::pintail::{BackfillRange, BackfillSummary, Compaction, MaintainRequest, PlanRequest};
use pintail_runner::project::compile;
use pintail_runner::{Pintail, RunnerError, Settings};
use pintail_store::BackfillId;

use crate::harness::run;

const FOLDER: &str = "PINTAIL_TEST_FOLDER";
const FAULTS: &str = "PINTAIL_TEST_FAULTS";
const WORK: &str = "PINTAIL_TEST_WORK";

/// No wait in these tests is longer: a process that hangs is a failure, not a hang of the suite.
const LIMIT: Duration = Duration::from_secs(100);

/// One process at work on a project.
pub struct Process(Option<Child>);

/// How to start a process.
#[derive(Clone, Debug, Default)]
pub struct Work {
    faults: String,
    words: Vec<String>,
    shell: Option<String>,
}

impl Work {
    /// Plans and runs everything once.
    pub fn run() -> Self {
        Self::default()
    }

    /// Sets faults, as in `staged=kill`.
    pub fn faults(mut self, faults: impl Into<String>) -> Self {
        self.faults = faults.into();
        self
    }

    /// Runs although nothing has changed.
    pub fn force(self) -> Self {
        self.word("force".to_owned())
    }

    /// Runs in one transaction.
    pub fn atomic(self) -> Self {
        self.word("atomic".to_owned())
    }

    /// Looks after the lakes instead: everything that is not needed goes at once, and files are compacted.
    pub fn maintain(self) -> Self {
        self.word("maintain".to_owned())
    }

    /// Runs one partition.
    pub fn partition(self, partition: &str) -> Self {
        self.word(format!("partition={partition}"))
    }

    /// Backfills `script` from one partition up to another, which is not included.
    pub fn backfill(self, script: &str, from: &str, to: &str) -> Self {
        self.word(format!("backfill={script},{from},{to}"))
    }

    /// Begins a backfill job of `script` from one partition up to another, which is not included.
    pub fn job(self, script: &str, from: &str, to: &str) -> Self {
        self.word(format!("job={script},{from},{to}"))
    }

    /// Goes on with the first backfill job.
    pub fn resume(self) -> Self {
        self.word("resume".to_owned())
    }

    /// Runs the partitions from the first of January 2026 on, one run each, and meets the other `players` before each.
    pub fn days(self, count: u32, meeting: &Path, player: u32, players: u32) -> Self {
        self.word(format!("days={count},{player},{players},{}", meeting.display()))
    }

    /// Runs everything `runs` times, for a day that all `players` share and for one of its own in turn.
    pub fn storm(self, runs: u32, meeting: &Path, player: u32, players: u32) -> Self {
        self.word(format!("storm={runs},{player},{players},{}", meeting.display()))
    }

    /// Opens the project, then meets the other `players`, then runs.
    pub fn meet(self, meeting: &Path, player: u32, players: u32) -> Self {
        self.word(format!("meet={player},{players},{}", meeting.display()))
    }

    /// Says in the end how much memory was resident at most, in bytes.
    pub fn peak(self) -> Self {
        self.word("peak".to_owned())
    }

    /// Starts the process behind shell commands, such as limits.
    pub fn behind(mut self, shell: &str) -> Self {
        self.shell = Some(shell.to_owned());
        self
    }

    fn word(mut self, word: String) -> Self {
        self.words.push(word);
        self
    }

    /// Starts it.
    pub fn start(&self, folder: &Path) -> Process {
        let this = std::env::current_exe().unwrap();
        let arguments = ["--exact", "processes::works_on_a_project_when_started_as_a_process", "--nocapture"];
        let mut command = match &self.shell {
            Some(shell) => {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("{shell}; exec \"$0\" \"$@\"")).arg(this);
                command
            }
            None => Command::new(this),
        };
        command
            .args(arguments)
            .env(FOLDER, folder)
            .env(FAULTS, &self.faults)
            .env(WORK, self.words.join(";"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Process(Some(command.spawn().unwrap()))
    }
}

impl Process {
    /// Waits until the process has ended well, and returns what became of its steps.
    pub fn done(self) -> Vec<String> {
        let output = self.output();
        let told = lines(&output);
        assert!(output.status.success(), "{}\n{}", told.join("\n"), String::from_utf8_lossy(&output.stderr));
        told
    }

    /// Waits until the process has died by SIGKILL.
    pub fn killed(self) {
        use std::os::unix::process::ExitStatusExt;
        let output = self.output();
        assert_eq!(output.status.signal(), Some(9), "{}\n{:?}", lines(&output).join("\n"), output);
    }

    /// Sends the signal `name`, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let id = self.0.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().unwrap();
        assert!(sent.success(), "the process takes signals while it lives");
    }

    /// Waits until the process has ended, well or by SIGKILL, and returns whether it was killed.
    pub fn ended(self) -> bool {
        use std::os::unix::process::ExitStatusExt;
        let output = self.output();
        let is_killed = output.status.signal() == Some(9);
        assert!(is_killed || output.status.success(), "{}\n{output:?}", lines(&output).join("\n"));
        is_killed
    }

    /// Kills the process at once, if it still lives.
    pub fn kill(mut self) -> ExitStatus {
        let child = self.0.as_mut().unwrap();
        let _ = child.kill();
        let status = child.wait().unwrap();
        self.0 = None;
        status
    }

    /// Waits until `file` exists; the process must not end before.
    pub fn reaches(&mut self, file: &Path) {
        let child = self.0.as_mut().unwrap();
        wait_for(&format!("{} to appear", file.display()), || {
            let is_there = file.exists();
            let ended = child.try_wait().unwrap();
            assert!(is_there || ended.is_none(), "the process ended before it reached {}: {ended:?}", file.display());
            is_there
        });
    }

    fn output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A failed test leaves no process behind.
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().filter_map(|line| line.strip_prefix("told: ")).map(str::to_owned).collect()
}

/// Waits until `condition` holds.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// A fault point at which a process pauses, and how it goes on.
pub struct Pause {
    folder: tempfile::TempDir,
    point: &'static str,
}

impl Pause {
    /// Returns a pause at `point`.
    pub fn at(point: &'static str) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), point }
    }

    /// Returns the fault that makes it.
    pub fn fault(&self) -> String {
        format!("{}=pause:{}", self.point, self.folder.path().display())
    }

    /// Returns the file that says that the point is reached.
    pub fn reached(&self) -> PathBuf {
        self.folder.path().join(format!("{}.reached", self.point))
    }

    /// Lets the process go on.
    pub fn release(&self) {
        std::fs::write(self.folder.path().join(format!("{}.release", self.point)), "").unwrap();
    }
}

/// Opens the project in `folder` with `faults`.
pub fn open(folder: &Path, faults: &str) -> Pintail {
    let vendor = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vendor/duckdb/extensions");
    open_with_extensions(folder, faults, vendor)
}

/// Opens the project in `folder` with the extensions in another folder.
pub fn open_with_extensions(folder: &Path, faults: &str, extensions: PathBuf) -> Pintail {
    let settings = Settings {
        extensions: ExtensionFolders(vec![extensions]),
        command: vec!["test".to_owned()],
        faults: Faults::parse(faults).unwrap(),
        now: Utc::now,
    };
    let compiled = compile(crate::catalogs::load(folder)).unwrap();
    Pintail::open(Arc::new(compiled), settings).unwrap()
}

/// Meets the others: says that `player` is here and waits for all of them.
fn meet(folder: &Path, round: &str, player: u32, players: u32) {
    std::fs::write(folder.join(format!("{round}.{player}")), "").unwrap();
    wait_for("the other processes", || (0..players).all(|other| folder.join(format!("{round}.{other}")).exists()));
}

/// The body of a started process; in the suite itself there is no work, and nothing happens.
#[test]
fn works_on_a_project_when_started_as_a_process() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let words = std::env::var(WORK).unwrap();
    let pintail = open(Path::new(&folder), &std::env::var(FAULTS).unwrap());
    let mut request = PlanRequest::default();
    let mut tells_peak = false;
    for word in words.split(';').filter(|word| !word.is_empty()) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let parts: Vec<&str> = value.split(',').collect();
        match (name, parts.as_slice()) {
            ("force", _) => request.force = true,
            ("maintain", _) => return tell_maintained(&pintail),
            ("atomic", _) => request.atomic = true,
            ("peak", _) => tells_peak = true,
            ("partition", [partition]) => request.partition = Some((*partition).to_owned()),
            ("backfill", [script, from, to]) => {
                let range = BackfillRange {
                    script: (*script).to_owned(),
                    from: Some((*from).to_owned()),
                    to: Some((*to).to_owned()),
                    ..BackfillRange::default()
                };
                request.backfill = Some(range);
            }
            ("job", [script, from, to]) => {
                let request = crate::backfills::request(script, from, to);
                let plan = pintail.plan_backfill(&request).unwrap();
                return tell_job(pintail.start_backfill(&plan, &mut |_| {}));
            }
            ("resume", _) => return tell_job(pintail.resume_backfill(BackfillId(1), &mut |_| {})),
            ("meet", [player, players, folder]) => {
                meet(Path::new(folder), "start", player.parse().unwrap(), players.parse().unwrap());
            }
            ("days", [count, player, players, folder]) => {
                let (player, players) = (player.parse().unwrap(), players.parse().unwrap());
                return work_days(&pintail, count.parse().unwrap(), |day| {
                    meet(Path::new(folder), day, player, players);
                });
            }
            ("storm", [runs, player, players, folder]) => {
                let player = player.parse().unwrap();
                meet(Path::new(folder), "start", player, players.parse().unwrap());
                return work_storm(&pintail, runs.parse().unwrap(), player);
            }
            _ => panic!("no work is called {word}"),
        }
    }
    tell(&pintail, &request);
    if tells_peak {
        println!("\ntold: peak: {}", peak_resident_bytes());
    }
}

/// Returns the most memory that this process has had resident, as the kernel counts it.
fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

fn tell_maintained(pintail: &Pintail) {
    let request = MaintainRequest { compaction: Some(Compaction::default()), ..crate::harness::upkeep() };
    let done = match pintail.maintain(&request) {
        Ok(mut done) => done.remove(0),
        Err(error) => return println!("\ntold: {error}"),
    };
    for table in done.compacted {
        println!("\ntold: {}: {:?} {:?} {:?}", table.table, table.merged, table.rewritten, table.left);
    }
}

fn tell_job(summary: Result<BackfillSummary, RunnerError>) {
    match summary {
        Ok(summary) => println!("\ntold: {:?} {:?}", summary.state, summary.counts),
        Err(error) => println!("\ntold: {error}"),
    }
}

fn work_days(pintail: &Pintail, count: u32, meet: impl Fn(&str)) {
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
    for day in first.iter_days().take(usize::try_from(count).unwrap()) {
        let day = day.to_string();
        meet(&day);
        tell(pintail, &PlanRequest { partition: Some(day), force: true, ..PlanRequest::default() });
    }
}

fn work_storm(pintail: &Pintail, runs: u32, player: u32) {
    for round in 0..runs {
        let day = if round % 2 == 0 { 1 } else { 2 + player };
        let partition = Some(format!("2026-01-{day:02}"));
        tell(pintail, &PlanRequest { partition, force: true, ..PlanRequest::default() });
    }
}

fn tell(pintail: &Pintail, request: &PlanRequest) {
    let told = run(pintail, request);
    for step in &told.steps {
        let why = step.failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.message));
        println!("\ntold: {}: {:?}{}", step.name, step.state, why.replace('\n', " "));
        for note in &step.notes {
            println!("\ntold: note of {}: {}", step.name, note.replace('\n', " "));
        }
    }
}
