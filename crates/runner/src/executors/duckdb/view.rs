//! A lake view over the script's query: no stage and no rows, but the same check, tests, stamp and proof.

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::sql::strategy::view;
use pintail_engine::fault::FaultPoint;
use pintail_engine::lake::TableFacts;
use pintail_engine::{Session, WriteTransaction, lake};

use super::attempt::{Attempt, Ended};
use super::commit::{Applied, check_commits, finish, refuse_foreign_target};
use super::data_tests::{self, TestRows};
use super::shape::check_contract;
use super::staging::{self, Staged};
use super::text::{ReadAs, own_relations, rewrite};
use crate::executors::{Slot, StepFailure};

/// Makes the view.
pub fn try_once(attempt: &mut Attempt<'_>, slot: &mut Slot, staged: &mut Option<Staged>) -> Result<Ended, StepFailure> {
    let _ = staged;
    slot.attach_for_writing(attempt.lake)?;
    for name in attempt.script.lakes_needed(&attempt.ctx.project) {
        // Tests of a view may read other assets at the run's pin.
        if let (Some(location), Some(pin)) = (attempt.ctx.lakes.get(&name), attempt.pins.get(&name)) {
            slot.attach_pinned(location, *pin)?;
        }
    }
    let session = slot.session()?;
    let _watch = attempt.ctx.cancel.watch(slot.number, &session);
    let base = lake::head(&session, &attempt.alias)?;
    let facts = view_facts(attempt, &session, base)?;
    attempt.pins.entry(attempt.lake.name.clone()).or_insert(base);
    let outcome = attempt.phase("commit", |attempt| {
        let lane = attempt.lake.lane();
        let _pass = attempt.enter(&lane)?;
        let transaction = WriteTransaction::begin(&session, &attempt.alias)?;
        match apply(attempt, &session, &transaction, base, facts.as_ref())? {
            Applied::Written(entry, columns) => finish(attempt, transaction, *entry, Some(columns)),
            Applied::Ended(ended) => {
                transaction.roll_back();
                Ok(ended)
            }
        }
    });
    attempt.sent.extend(session.take_sent());
    debug_assert!(matches!(attempt.strategy(), WriteStrategy::View), "the dispatcher sends views here");
    outcome
}

/// Returns the view as it is, and refuses what is in its place.
pub fn view_facts(
    attempt: &Attempt<'_>,
    session: &Session,
    base: SnapshotId,
) -> Result<Option<TableFacts>, StepFailure> {
    let facts = attempt.target_table(session, base)?;
    refuse_foreign_target(attempt, facts.as_ref())?;
    match &facts {
        Some(facts) if !facts.is_view => Err(StepFailure::user(
            Code::TARGET_NOT_OURS,
            "check the target",
            format!("{} is a table, and the script makes a view", attempt.asset),
        )
        .with_help("drop the table by hand, or materialize the view under another name")),
        _ => Ok(facts),
    }
}

/// Checks, makes the view and tests it inside an open transaction.
pub fn apply(
    attempt: &mut Attempt<'_>,
    session: &Session,
    transaction: &WriteTransaction<'_>,
    base: SnapshotId,
    facts: Option<&TableFacts>,
) -> Result<Applied, StepFailure> {
    if let Some(ended) = check_commits(attempt, transaction, base, facts)? {
        return Ok(Applied::Ended(ended));
    }
    attempt.reach(FaultPoint::Checked);
    staging::create_schema_if_missing(session, attempt, transaction)?;
    // A view keeps the names of its tables: they are those of the lake itself, not of a pinned alias.
    let alias = attempt.alias.clone();
    let own = own_relations(&attempt.lake.name, &alias);
    let span = attempt.script.query_span();
    let query = rewrite(&attempt.script.text, span, &ReadAs { special: &own }, None);
    let relation = attempt.target();
    for statement in view(&relation, &query.sql, &attempt.script.layout_words()) {
        let starts_at = statement.sql.find(&query.sql).unwrap_or(0);
        transaction.run(&statement).map_err(|error| {
            StepFailure::in_text(error, |position| query.original_offset_in(position, starts_at), span)
        })?;
    }
    attempt.reach(FaultPoint::Written);
    let columns = lake::schema_of(session.describe(&relation.to_string())?);
    check_contract(attempt.script, &columns, &mut attempt.notes)?;
    data_tests::in_transaction_of_view(attempt, session, &relation, TestRows::Written { slice: None })?;
    let mut entry = attempt.entry();
    entry.schema_version += u32::from(facts.map(|facts| &facts.schema) != Some(&columns));
    Ok(Applied::Written(Box::new(entry), columns))
}
