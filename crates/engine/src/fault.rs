//! Named points between the steps of a protocol, where a test can stop, pause or kill the process.
//!
//! In a release binary the points do nothing: only a build with debug assertions lets the face fill them in.

use std::path::PathBuf;

/// A point in the write protocol; each lies between two steps that can be torn apart by a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultPoint {
    /// The lease is held, nothing is staged.
    Leased,
    /// The stage is complete, no transaction is open.
    Staged,
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
}

impl FaultPoint {
    /// Every point, in the order of the protocol.
    pub const ALL: [FaultPoint; 7] = [
        FaultPoint::Leased,
        FaultPoint::Staged,
        FaultPoint::Checked,
        FaultPoint::Written,
        FaultPoint::Stamped,
        FaultPoint::Committed,
        FaultPoint::Remembered,
    ];

    /// Returns the point's name as a test writes it.
    pub fn name(self) -> &'static str {
        match self {
            FaultPoint::Leased => "leased",
            FaultPoint::Staged => "staged",
            FaultPoint::Checked => "checked",
            FaultPoint::Written => "written",
            FaultPoint::Stamped => "stamped",
            FaultPoint::Committed => "committed",
            FaultPoint::Remembered => "remembered",
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
}

/// The faults of this process; none by default.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<(FaultPoint, Fault)>);

impl Faults {
    /// Reads `point=kill` or `point=pause:<folder>`, separated by `;`: with `pause`, `<folder>/<point>.reached` is
    /// written and `<folder>/<point>.release` awaited.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut faults = Vec::new();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let (name, action) = part.split_once('=').ok_or_else(|| format!("`{part}` is not point=action"))?;
            let point = FaultPoint::ALL
                .into_iter()
                .find(|point| point.name() == name)
                .ok_or_else(|| format!("`{name}` is no fault point"))?;
            let fault = match action.split_once(':') {
                None if action == "kill" => Fault::Kill,
                Some(("pause", folder)) => Fault::Pause {
                    reached: PathBuf::from(folder).join(format!("{name}.reached")),
                    release: PathBuf::from(folder).join(format!("{name}.release")),
                },
                _ => return Err(format!("`{action}` is neither kill nor pause:<folder>")),
            };
            faults.push((point, fault));
        }
        Ok(Self(faults))
    }

    /// Marks that `point` was reached, and does what the test asked for there.
    pub fn reach(&self, point: FaultPoint) {
        for (at, fault) in &self.0 {
            if *at == point {
                act(fault);
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
        Fault::Pause { reached, release } => {
            let written = std::fs::write(reached, std::process::id().to_string());
            debug_assert!(written.is_ok(), "a paused fault point announces itself");
            while !release.exists() {
                std::thread::park_timeout(std::time::Duration::from_millis(2));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, FaultPoint, Faults};

    #[test]
    fn faults_are_read_and_wrong_ones_named() {
        let faults = Faults::parse("staged=kill;committed=pause:/x").unwrap();
        assert_eq!(faults.0[0], (FaultPoint::Staged, Fault::Kill));
        assert!(matches!(&faults.0[1], (FaultPoint::Committed, Fault::Pause { .. })));
        assert_eq!(Faults::parse("stagd=kill").unwrap_err(), "`stagd` is no fault point");
        assert_eq!(Faults::parse("staged=die").unwrap_err(), "`die` is neither kill nor pause:<folder>");
    }
}
