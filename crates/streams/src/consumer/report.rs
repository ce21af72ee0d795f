//! What a consumer tells: its progress to the lake's guard, its counts and its lag to whoever measures.

use pintail_core::id::SnapshotId;
use pintail_core::stream::Touch;
use pintail_engine::EngineError;
use pintail_engine::fault::FaultPoint;

use super::observe::Observation;
use super::outcome::Landed;
use super::pass::Consumer;
use super::write::Written;

/// How often progress is told while there is work, and when there is none.
const REPORT_MICROS: (i64, i64) = (5_000_000, 60_000_000);

impl Consumer<'_> {
    /// Tells the guard how far this consumer has come. When the commit was sent before, a failure costs nothing but room.
    pub(super) fn report(&mut self, upto: SnapshotId, is_caught_up: bool) -> Result<(), EngineError> {
        let now = (self.now)();
        let is_due = self.reported.as_ref().is_none_or(|last| {
            let silent = now.saturating_sub(last.updated_micros);
            let (busy, idle) = REPORT_MICROS;
            if last.snapshot < upto { is_caught_up || busy <= silent } else { idle <= silent }
        });
        if !is_due {
            return Ok(());
        }
        let progress = self.progress(upto);
        let row = progress.clone();
        let told = self.writer.guard().ask(|guard| async move { guard.report_progress(&row).await });
        if let Err(error) = told {
            metrics::counter!("pintail_consumer_report_errors_total", "consumer" => self.spec.full_name()).increment(1);
            tracing::warn!(%error, "a consumer's progress was not told; expiry waits for longer than it needs to");
            return Ok(());
        }
        self.reported = Some(progress);
        self.writer.faults().reach(FaultPoint::Remembered);
        Ok(())
    }

    /// Counts a window that is committed.
    pub(super) fn count(&self, written: &Written, rows: u64, landed: &mut Landed) {
        let targets = self.targets.as_deref().unwrap_or_default();
        let name = self.spec.full_name();
        for (index, (target, inserted)) in targets.iter().zip(&written.inserted).enumerate() {
            let table = &target.target.table;
            match landed.written.get_mut(index) {
                Some((_, total)) => *total += inserted,
                None => landed.written.push((table.clone(), *inserted)),
            }
            metrics::counter!("pintail_consumer_rows_total", "consumer" => name.clone(), "table" => table.clone())
                .increment(*inserted);
        }
        landed.rows += rows;
        landed.duplicates += written.duplicates;
        landed.replaced += written.replaced;
        landed.letters += written.letters;
        landed.windows += 1;
        metrics::counter!("pintail_consumer_read_rows_total", "consumer" => name.clone()).increment(rows);
        metrics::counter!("pintail_consumer_duplicates_total", "consumer" => name.clone())
            .increment(written.duplicates);
        metrics::counter!("pintail_consumer_dead_letters_total", "consumer" => name.clone()).increment(written.letters);
        metrics::counter!("pintail_consumer_windows_total", "consumer" => name).increment(1);
    }

    pub(super) fn count_gap(&self, policy: &'static str) {
        metrics::counter!("pintail_consumer_gaps_total", "consumer" => self.spec.full_name(), "policy" => policy)
            .increment(1);
    }

    /// Shows how far behind the consumer is: how old the oldest snapshot is that it has not consumed.
    pub(super) fn show_lag(&self, seen: &Observation) {
        let name = self.spec.full_name();
        let oldest = seen.snapshots.iter().find(|snapshot| snapshot.touch == Touch::Rows);
        let micros = oldest.map_or(0, |snapshot| (self.now)().saturating_sub(snapshot.at_micros).max(0));
        metrics::gauge!("pintail_consumer_lag_seconds", "consumer" => name.clone()).set(micros as f64 / 1e6);
        metrics::gauge!("pintail_consumer_head_snapshot", "consumer" => name).set(seen.head.0 as f64);
    }
}
