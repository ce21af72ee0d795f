//! Targets outside lakes: what datatables and files share from the attempt to what is remembered.
//!
//! Invariant: every write carries its stamp in what it publishes (a row of the same Postgres transaction, the metadata of
//! the file itself), so that a look-up proves it and the store can be rebuilt. Lakes have their own protocol in
//! `executors/duckdb`; the order of the steps is the same here.

mod attempt;
mod explain;
mod lease;
mod stage;
mod tests;

use std::time::{Duration, Instant};

use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::source::Language;

pub use attempt::{Attempt, Ended, Landed};
pub use explain::explain;
pub use lease::FileLease;
pub use stage::{Staged, guard_stage, stage};
pub use tests::{Tested, run_tests, test_new_rows};

use super::{RunContext, Slot, StepFailure, StepJob, StepOutcome, StepReport, datatable, object};
use crate::project::CompiledScript;

/// Does one step whose target is no lake table.
pub fn execute(
    ctx: &RunContext,
    slot: &mut Slot,
    job: &StepJob,
    script: &CompiledScript,
    asset: &Asset,
    report_phase: &dyn Fn(usize, &'static str),
) -> StepReport {
    let started = Instant::now();
    let report_phase = |phase: &'static str| report_phase(job.index, phase);
    let mut number = 1;
    loop {
        let mut attempt = Attempt::new(ctx, job, script, asset, slot.number, &report_phase);
        let ended = match attempt.begin(number) {
            Ok(()) => write(&mut attempt, slot),
            Err(failure) => Err(failure),
        };
        let ended = ended.map_err(|failure| attempt.with_timeout(failure));
        let is_last = match &ended {
            Ok(_) => true,
            Err(failure) => !script.retries(failure.class, number) || attempt.is_stopped(),
        };
        let outcome = attempt.remember(ended, is_last, started);
        if is_last {
            return attempt.report(outcome, started.elapsed());
        }
        wait(ctx, slot.number, script.retry_delay(number));
        number += 1;
    }
}

fn write(attempt: &mut Attempt<'_>, slot: &mut Slot) -> Result<Ended, StepFailure> {
    match (attempt.asset, attempt.script.language()) {
        (Asset::Datatable { .. }, Language::PostgresSql) => attempt.tries(slot, datatable::try_native),
        (Asset::Datatable { .. }, _) => attempt.tries(slot, datatable::try_staged),
        (Asset::Object { .. } | Asset::Volume { .. }, _) => object::write(attempt, slot),
        (Asset::Lake { .. }, _) => Err(StepFailure::user(
            Code::ENGINE_ERROR,
            "find the target",
            format!("{} is a lake table, which another executor writes", attempt.asset),
        )),
    }
}

/// Waits before the next attempt, unless the step is stopped.
fn wait(ctx: &RunContext, slot: usize, delay: Duration) {
    let until = Instant::now() + delay;
    while !ctx.cancel.is_set() && !ctx.cancel.is_late(slot) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        ctx.pause(left.min(Duration::from_millis(50)));
    }
}

impl Attempt<'_> {
    fn report(self, outcome: StepOutcome, elapsed: Duration) -> StepReport {
        StepReport {
            index: self.job.index,
            outcome,
            tests: self.tests,
            notes: self.notes,
            phases: self.phases,
            elapsed,
        }
    }
}
