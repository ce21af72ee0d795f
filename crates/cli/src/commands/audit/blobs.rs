//! Whether the blob store and the rows of raw events go together.

use chrono::TimeDelta;
use pintail_core::id::LakeName;
use pintail_engine::lake::absent_names;
use pintail_runner::Pintail;
use pintail_runner::pintail::{Audit, Finding};
use pintail_runner::with_sources;
use pintail_telemetry::blob::{Stock, take_stock};
use tokio::runtime::Runtime;

use crate::app::App;
use crate::commands::ingest::parts::Parts;
use crate::environment::now;
use crate::failure::Failure;

const CHECK: &str = "blobs";

/// An object that is younger may belong to an event that is still in a log.
const YOUNG: TimeDelta = TimeDelta::days(1);

/// So many keys are named.
const NAMED: usize = 5;

/// Adds what is wrong to the audit of the lake that takes events in; nothing, where there are none.
pub fn add(audits: &mut [Audit], pintail: &Pintail, app: &App) -> Result<(), Failure> {
    let parts = Parts { app, pintail };
    let lake: &LakeName = &parts.config().lake;
    let Some(audit) = audits.iter_mut().find(|audit| audit.lake == *lake) else { return Ok(()) };
    let (writer, table) = (parts.writer(1)?, parts.table());
    let names = [(table.schema.as_str(), table.name.as_str())];
    if !absent_names(writer.session(), writer.alias(), &names)?.is_empty() {
        return Ok(());
    }
    audit.checks.push(CHECK);
    let runtime = Runtime::new().map_err(|error| Failure::internal(format!("could not start: {error}")))?;
    let (blobs, before) = (parts.blobs()?, now() - YOUNG);
    let stock = runtime.block_on(take_stock(&blobs, writer.session(), writer.alias(), &table, before));
    let place = table.to_string();
    match stock {
        Ok(stock) => audit.findings.extend(findings(&stock, &place)),
        // A question without an answer is a finding.
        Err(error) => audit.findings.push(Finding { check: CHECK, place, message: with_sources(&error) }),
    }
    Ok(())
}

fn findings(stock: &Stock, place: &str) -> Vec<Finding> {
    let finding = |keys: &[String], what: &str, advice: &str| {
        let more = keys.len().saturating_sub(NAMED);
        let named = keys.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if 0 < more { format!(" and {more} more") } else { String::new() };
        let message = format!("{}: {named}{more}; {advice}", crate::render::text::count(keys.len(), what));
        (!keys.is_empty()).then(|| Finding { check: CHECK, place: place.to_owned(), message })
    };
    let orphans = finding(
        &stock.orphans,
        "object",
        "they are older than a day and no row names them: their events were never answered, or their rows are gone; remove \
         them when no log of `pintail ingest` still waits for the lake, and no older version of the table is needed",
    );
    let missing = finding(
        &stock.missing,
        "payload",
        "rows name them and the blob store has none of that key: look whether `blobs` in `[ingest]` is the right place, or \
         put them back from a copy",
    );
    orphans.into_iter().chain(missing).collect()
}
