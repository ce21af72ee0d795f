//! Named points between the steps of a protocol, where a test can stop, pause or kill the process.
//!
//! In a release binary the points do nothing: only a build with debug assertions lets the face fill them in.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// How long a step waits for other processes, all in all, before it gives up with nothing changed.
const PATIENCE: Duration = Duration::from_secs(120);

/// A point in the write protocol or in the upkeep of a lake; each lies between two steps that can be torn apart by a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultPoint {
    /// The lease is held, nothing is staged.
    Leased,
    /// The stage is complete, no transaction is open.
    Staged,
    /// The stage is guarded, and compared with the table where the write compares; no transaction is open.
    Compared,
    /// The transaction is open and checked, nothing is written.
    Checked,
    /// The rows are written, the tests have not run.
    Written,
    /// The stamp is set, COMMIT is not sent.
    Stamped,
    /// COMMIT returned, nothing is remembered.
    Committed,
    /// The store knows, the lease is still held.
    Remembered,
    /// Upkeep has compacted files of a table, COMMIT is not sent.
    Compacted,
    /// Upkeep has copied what expiry would destroy; nothing is expired.
    Kept,
    /// Upkeep has expired a chunk of snapshots.
    Expired,
    /// Upkeep has deleted files, not yet those without an owner.
    Cleaned,
}

impl FaultPoint {
    /// Every point of a write, in the order of the protocol.
    pub const ALL: [FaultPoint; 8] = [
        FaultPoint::Leased,
        FaultPoint::Staged,
        FaultPoint::Compared,
        FaultPoint::Checked,
        FaultPoint::Written,
        FaultPoint::Stamped,
        FaultPoint::Committed,
        FaultPoint::Remembered,
    ];

    /// The points of the upkeep of a lake, in its order.
    pub const UPKEEP: [FaultPoint; 4] =
        [FaultPoint::Compacted, FaultPoint::Kept, FaultPoint::Expired, FaultPoint::Cleaned];

    /// Returns the point's name as a test writes it.
    pub fn name(self) -> &'static str {
        match self {
            FaultPoint::Leased => "leased",
            FaultPoint::Staged => "staged",
            FaultPoint::Compared => "compared",
            FaultPoint::Checked => "checked",
            FaultPoint::Written => "written",
            FaultPoint::Stamped => "stamped",
            FaultPoint::Committed => "committed",
            FaultPoint::Remembered => "remembered",
            FaultPoint::Compacted => "compacted",
            FaultPoint::Kept => "kept",
            FaultPoint::Expired => "expired",
            FaultPoint::Cleaned => "cleaned",
        }
    }
}

/// What happens at a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies as by SIGKILL.
    Kill,
    /// The process writes the file `reached` and goes on once the file `release` exists.
    Pause {
        /// Written when the point is reached.
        reached: PathBuf,
        /// Awaited.
        release: PathBuf,
    },
    /// The thread panics, as a fault of Pintail would.
    Panic,
}

/// A fault, where it happens, and at which time of reaching that point.
#[derive(Clone, Debug)]
struct Planned {
    point: FaultPoint,
    fault: Fault,
    /// 1 for the first time; every time when absent.
    nth: Option<u32>,
    /// How often the point was reached, by whichever clone.
    reached: Arc<AtomicU32>,
}

/// The faults of this process; none by default.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    points: Vec<Planned>,
    patience: Option<Duration>,
}

impl Faults {
    /// Reads `point=kill`, `point=panic` or `point=pause:<folder>`, separated by `;`: with `pause`,
    /// `<folder>/<point>.reached` is written and `<folder>/<point>.release` awaited. `point*3=kill` means the third time
    /// that the point is reached, by any step, and no other. `patience=<milliseconds>` shortens the wait for other
    /// processes.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (name, action) = part.split_once('=').ok_or_else(|| format!("`{part}` is not point=action"))?;
            if name == "patience" {
                let millis = action.parse().map_err(|_| format!("`{action}` is no number of milliseconds"))?;
                faults.patience = Some(Duration::from_millis(millis));
                continue;
            }
            let (name, nth) = match name.split_once('*') {
                Some((name, nth)) => (name, Some(nth.parse().map_err(|_| format!("`{nth}` is no number"))?)),
                None => (name, None),
            };
            let point = FaultPoint::ALL
                .into_iter()
                .chain(FaultPoint::UPKEEP)
                .find(|point| point.name() == name)
                .ok_or_else(|| format!("`{name}` is no fault point"))?;
            let fault = match action.split_once(':') {
                None if action == "kill" => Fault::Kill,
                None if action == "panic" => Fault::Panic,
                Some(("pause", folder)) => Fault::Pause {
                    reached: PathBuf::from(folder).join(format!("{name}.reached")),
                    release: PathBuf::from(folder).join(format!("{name}.release")),
                },
                _ => return Err(format!("`{action}` is none of kill, panic and pause:<folder>")),
            };
            faults.points.push(Planned { point, fault, nth, reached: Arc::default() });
        }
        Ok(faults)
    }

    /// Returns how long a step waits for other processes before it gives up with nothing changed.
    pub fn patience(&self) -> Duration {
        self.patience.unwrap_or(PATIENCE)
    }

    /// Marks that `point` was reached, and does what the test asked for there.
    pub fn reach(&self, point: FaultPoint) {
        for planned in self.points.iter().filter(|planned| planned.point == point) {
            let time = planned.reached.fetch_add(1, Ordering::Relaxed) + 1;
            if planned.nth.is_none_or(|nth| nth == time) {
                act(&planned.fault);
            }
        }
    }
}

fn act(fault: &Fault) {
    match fault {
        Fault::Kill => {
            // SIGKILL runs no handler and no destructor, as a power cut would not.
            let _ = std::process::Command::new("kill").args(["-KILL", &std::process::id().to_string()]).status();
            std::process::abort();
        }
        Fault::Panic => panic!("a test asked for a panic here"),
        Fault::Pause { reached, release } => {
            let written = std::fs::write(reached, std::process::id().to_string());
            debug_assert!(written.is_ok(), "a paused fault point announces itself");
            while !release.exists() {
                std::thread::park_timeout(Duration::from_millis(2));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Fault, FaultPoint, Faults};

    #[test]
    fn faults_are_read_and_wrong_ones_named() {
        let faults = Faults::parse("staged=kill;committed=pause:/x").unwrap();
        assert_eq!((faults.points[0].point, &faults.points[0].fault), (FaultPoint::Staged, &Fault::Kill));
        assert!(matches!(&faults.points[1].fault, Fault::Pause { .. }));
        assert_eq!(Faults::parse("staged*x=kill").unwrap_err(), "`x` is no number");
        assert_eq!(Faults::parse("stagd=kill").unwrap_err(), "`stagd` is no fault point");
        assert_eq!(Faults::parse("staged=die").unwrap_err(), "`die` is none of kill, panic and pause:<folder>");
        assert_eq!(Faults::parse("patience=250").unwrap().patience(), Duration::from_millis(250));
        assert_eq!(Faults::parse("patience=long").unwrap_err(), "`long` is no number of milliseconds");
        assert_eq!(Faults::default().patience(), Duration::from_secs(120));
    }
    #[test]
    fn a_fault_for_the_third_time_happens_once() {
        let faults = Faults::parse("written*3=panic").unwrap();
        let panics = |faults: &Faults| {
            let reach = std::panic::AssertUnwindSafe(|| faults.reach(FaultPoint::Written));
            std::panic::catch_unwind(reach).is_err()
        };
        // Whoever reaches the point counts, through every clone.
        let reached: Vec<bool> = (0..5).map(|_| panics(&faults.clone())).collect();
        assert_eq!(reached, [false, false, true, false, false]);
    }
}
