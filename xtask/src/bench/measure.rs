//! Measuring two sides in turn, and the median of each.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process;

/// Does the work of one side once and returns how long it took; what it prepares or cleans up is not counted.
pub type Measure = Box<dyn FnMut() -> anyhow::Result<Duration>>;

/// The two sides of a benchmark.
pub struct Sides {
    /// What Pintail does.
    pub ours: Measure,
    /// The same work without Pintail.
    pub plain: Measure,
}

/// What was measured.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The benchmark.
    pub name: &'static str,
    /// The median of our side.
    pub ours: Duration,
    /// The median of the plain side.
    pub plain: Duration,
}

impl Outcome {
    /// Returns how many times the plain side's time ours is.
    pub fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.plain.as_secs_f64()
    }
}

/// Measures both sides `rounds` times in turn.
pub fn interleaved(name: &'static str, rounds: u32, mut sides: Sides) -> anyhow::Result<Outcome> {
    let mut ours = Vec::new();
    let mut plain = Vec::new();
    for _ in 0..rounds {
        ours.push((sides.ours)()?);
        plain.push((sides.plain)()?);
    }
    Ok(Outcome { name, ours: median(ours), plain: median(plain) })
}

/// Returns how long `command` runs, with its output thrown away.
pub fn time(command: &mut Command) -> anyhow::Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let started = Instant::now();
    process::run(command)?;
    Ok(started.elapsed())
}

/// Returns the middle duration; of an even number, the lower of the two in the middle.
pub fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    durations[(durations.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn one_slow_round_does_not_move_the_median() {
        let seconds = |values: &[u64]| values.iter().map(|value| Duration::from_secs(*value)).collect();
        assert_eq!(median(seconds(&[3, 1, 900, 2, 2])), Duration::from_secs(2));
        assert_eq!(median(seconds(&[4, 1])), Duration::from_secs(1));
    }

    #[test]
    fn sides_are_measured_in_turn() {
        let order = Rc::new(RefCell::new(String::new()));
        let side = |letter: char, seconds: u64| -> Measure {
            let order = Rc::clone(&order);
            Box::new(move || {
                order.borrow_mut().push(letter);
                Ok(Duration::from_secs(seconds))
            })
        };
        let outcome = interleaved("both", 3, Sides { ours: side('o', 3), plain: side('p', 2) }).unwrap();
        assert_eq!(*order.borrow(), "opopop");
        assert!((outcome.ratio() - 1.5).abs() < 1e-9);
    }
}
