//! Removing a consumer: its cursor and what the guard knows of it, so that nothing waits for it any more.
//!
//! Invariant: whoever has the consumer keeps it. The cursor goes before the guard's row: what is left after a crash between
//! the two holds versions that nobody needs, instead of a cursor whose versions may go. What it wrote stays.

use std::collections::BTreeSet;

use pintail_core::sql::Statement;
use pintail_engine::EngineError;

use super::lease::{Holder, Ownership};
use super::pass::system_now;
use crate::commit::change_tables;
use crate::cursors::cursors;
use crate::position::{self, PositionTable};
use crate::writer::Writer;

/// What was removed of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Whether it had a cursor.
    pub had_cursor: bool,
    /// Whether expiry waited for it, or did so once.
    pub had_progress: bool,
}

/// Returns the consumers that have left something in the lake or its guard, shard by shard, whether anybody still configures
/// them or not; a script is there by the name of its cursor, such as `script.big_orders`.
pub fn known(writer: &Writer) -> Result<BTreeSet<String>, EngineError> {
    let cursors = cursors(writer.session(), writer.alias())?.into_iter().map(|cursor| cursor.consumer);
    let told = writer.guard().ask(|guard| async move { guard.consumers().await })?;
    Ok(cursors.chain(told.into_iter().map(|row| row.consumer)).collect())
}

/// Removes the consumer, or the shard, `full_name`; whoever has it is told instead.
pub fn remove(writer: &Writer, full_name: &str) -> Result<Result<Removed, Holder>, EngineError> {
    let ownership = match Ownership::ask(writer.guard(), full_name, system_now())? {
        Ok(ownership) => ownership,
        Err(holder) => return Ok(Err(holder)),
    };
    let table = PositionTable::cursor(full_name);
    let had_cursor = !position::is_absent(writer, &table)?;
    if had_cursor {
        let drop = format!("DROP TABLE IF EXISTS {}", table.relation(writer.alias()));
        let statement = Statement::new("drop the cursor", drop);
        change_tables(writer, &format!("consumer {full_name}: removed"), &[statement])?;
    }
    let name = full_name.to_owned();
    let had_progress = writer.guard().ask(|guard| async move { guard.forget_consumer(&name).await })?;
    drop(ownership);
    Ok(Ok(Removed { had_cursor, had_progress }))
}
