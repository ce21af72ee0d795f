//! Scripts that write with statements of their own: sent one by one under the lane and the whole asset's lease, each
//! commit stamped. Their tests run after the last commit: what they find is already published, and that is said.

use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::schema::Schema;
use pintail_core::source::Span;
use pintail_core::sql::classify::Need;
use pintail_core::sql::stamp::{StampEntry, commit_message, to_extra_info};
use pintail_core::sql::strategy::fence;
use pintail_core::sql::{Relation, Statement};
use pintail_engine::fault::FaultPoint;
use pintail_engine::transaction::{CommitWords, roll_back};
use pintail_engine::{Session, WriteTransaction, lake};

use super::attempt::{Attempt, Ended, Landed};
use super::data_tests::{self, TestRows};
use super::shape::check_contract;
use super::staging::prepare_session;
use super::text::{ReadAs, rewrite};
use crate::executors::{Slot, StepFailure};

/// What the script has done so far.
#[derive(Default)]
struct Progress {
    snapshot: Option<SnapshotId>,
    inserted: u64,
    deleted: u64,
    commits: u32,
    /// Inserted and deleted as far as a stamp has told it.
    stamped: (u64, u64),
    /// Whether statements that commit follow the one that is sent.
    has_more: bool,
    /// The table's columns before the script; `None` when there was no table.
    columns_before: Option<Schema>,
    /// The version of the columns, as the last stamp tells it.
    schema_version: Option<u32>,
}

/// Runs the script.
pub fn run(attempt: &mut Attempt<'_>, slot: &mut Slot) -> Result<Ended, StepFailure> {
    slot.attach_for_writing(attempt.lake)?;
    for name in attempt.script.lakes_needed(&attempt.ctx.project) {
        if name == attempt.lake.name {
            continue;
        }
        if let (Some(location), Some(pin)) = (attempt.ctx.lakes.get(&name), attempt.pins.get(&name)) {
            slot.attach_pinned(location, *pin)?;
        }
    }
    slot.attach_for_script(attempt.lake)?;
    let ended = run_attached(attempt, slot);
    if slot.detach_from_script(attempt.lake).is_err() {
        // A lake that stays attached for writing would let the next script see past its pin.
        slot.discard();
    }
    ended
}

fn run_attached(attempt: &mut Attempt<'_>, slot: &mut Slot) -> Result<Ended, StepFailure> {
    let session = slot.session()?;
    let _watch = attempt.ctx.cancel.watch(slot.number, &session);
    let lane = attempt.lake.lane();
    let pass = attempt.enter(&lane)?;
    let outcome = send_all(attempt, &session);
    attempt.sent.extend(session.take_sent());
    drop(pass);
    let (progress, entry) = outcome?;
    let snapshot = progress.snapshot.expect("a script that ran to its end has at least the stamp of its fence");
    let schema = columns(attempt, &session);
    let checked = check(attempt, &session, schema.as_ref());
    attempt.sent.extend(session.take_sent());
    if let Err(mut failure) = checked {
        failure.committed = format!(
            "the script's own commits stand (the last is snapshot {snapshot}): a manual script is checked after it has \
             published"
        );
        return Err(failure);
    }
    Ok(Ended::Landed(Box::new(Landed { snapshot, entry, schema })))
}

fn own_table(attempt: &Attempt<'_>) -> Relation {
    Relation::in_catalog(&attempt.lake.sql_name(), attempt.table.0, attempt.table.1)
}

/// Returns the columns of the script's table as the session sees it now; `None` when there is no table.
fn columns(attempt: &Attempt<'_>, session: &Session) -> Option<Schema> {
    session.describe(&own_table(attempt).to_string()).ok().map(lake::schema_of)
}

fn send_all(attempt: &mut Attempt<'_>, session: &Session) -> Result<(Progress, StampEntry), StepFailure> {
    let alias = attempt.lake.sql_name();
    session.batch("use the script's lake", &format!("USE {}", pintail_core::sql::Ident::new(&alias)))?;
    let head = lake::head(session, &alias)?;
    attempt.pins.insert(attempt.lake.name.clone(), head);
    prepare_session(session, attempt.ctx, attempt.job, attempt.script, Some(head))?;
    let (schema, _) = attempt.table;
    if attempt.script.text.deferral.is_some() && !lake::has_schema(session, &alias, schema)? {
        // The script's own statements name the project's schema, which this profile has under another name.
        let schema = pintail_core::sql::Ident::new(schema);
        session.batch("create the profile's schema", &format!("CREATE SCHEMA {schema}"))?;
    }
    let mut progress = Progress { columns_before: columns(attempt, session), ..Progress::default() };
    let mut open: Option<WriteTransaction<'_>> = None;
    let statements = attempt.script.statements.clone();
    for (index, (span, need)) in statements.iter().copied().enumerate() {
        attempt.go_on("run the script").map_err(|failure| with_progress(failure, &progress))?;
        let commits = |need: &Need| matches!(need, Need::OwnTransaction | Need::Commit);
        progress.has_more = statements[index + 1..].iter().any(|(_, need)| commits(need));
        let outcome = send_one(attempt, session, span, need, &mut open, &mut progress);
        outcome.map_err(|failure| with_progress(failure, &progress))?;
    }
    if progress.snapshot.is_none() {
        // Nothing was written: the fence carries the stamp, so that the run can be found in the lake.
        let transaction = WriteTransaction::begin(session, &alias)?;
        transaction.run(&fence(&alias, attempt.asset))?;
        commit(attempt, session, transaction, &mut progress)?;
    }
    let mut entry = StampEntry { deleted: progress.deleted, inserted: progress.inserted, ..attempt.entry() };
    entry.schema_version = progress.schema_version.unwrap_or(entry.schema_version);
    Ok((progress, entry))
}

fn send_one<'s>(
    attempt: &Attempt<'_>,
    session: &'s Session,
    span: Span,
    need: Need,
    open: &mut Option<WriteTransaction<'s>>,
    progress: &mut Progress,
) -> Result<(), StepFailure> {
    let alias = attempt.lake.sql_name();
    match need {
        Need::Interpreted | Need::Ignored => Ok(()),
        Need::Nothing | Need::InTransaction => send(attempt, session, span, progress).inspect_err(|_| {
            if open.take().is_none() {
                roll_back(session);
            }
        }),
        Need::OwnTransaction => {
            let transaction = WriteTransaction::begin(session, &alias)?;
            send(attempt, session, span, progress)?;
            commit(attempt, session, transaction, progress)
        }
        Need::Begin => {
            *open = Some(WriteTransaction::begin(session, &alias)?);
            Ok(())
        }
        Need::Commit => match open.take() {
            Some(transaction) => commit(attempt, session, transaction, progress),
            None => Ok(()),
        },
        Need::Rollback => {
            if let Some(transaction) = open.take() {
                transaction.roll_back();
            }
            Ok(())
        }
    }
}

fn send(attempt: &Attempt<'_>, session: &Session, span: Span, progress: &mut Progress) -> Result<(), StepFailure> {
    let text = rewrite(&attempt.script.text, span, &ReadAs::PINNED, attempt.partition());
    let changed = session
        .run(&Statement::new("run the script's statement", text.sql.clone()))
        .map_err(|error| StepFailure::in_text(error, |position| text.original_offset(position), span))?;
    let first = text.sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    match first.as_str() {
        "INSERT" => progress.inserted += changed,
        "DELETE" | "TRUNCATE" => progress.deleted += changed,
        "CREATE" if text.sql.to_ascii_uppercase().contains(" AS") => progress.inserted += changed,
        _ => {}
    }
    Ok(())
}

/// Stamps and commits; a commit that changed nothing makes no snapshot and needs no stamp.
fn commit(
    attempt: &Attempt<'_>,
    session: &Session,
    transaction: WriteTransaction<'_>,
    progress: &mut Progress,
) -> Result<(), StepFailure> {
    let (inserted, deleted) = (progress.inserted - progress.stamped.0, progress.deleted - progress.stamped.1);
    let mut entry = StampEntry { deleted, inserted, ..attempt.entry() };
    if progress.has_more {
        // A crash after this commit leaves a script that has not come to its end.
        "part".clone_into(&mut entry.strategy);
    } else if let Some(now) = columns(attempt, session) {
        entry.schema_version += u32::from(progress.columns_before.as_ref() != Some(&now));
    }
    let (message, extra_info) = (commit_message(&entry), to_extra_info(std::slice::from_ref(&entry)));
    let words = CommitWords { attempt: &attempt.id, message: &message, extra_info: &extra_info };
    attempt.reach(FaultPoint::Written);
    match transaction.commit(&words, || attempt.reach(FaultPoint::Stamped)) {
        Ok(snapshot) => {
            progress.snapshot = Some(snapshot);
            progress.commits += 1;
            progress.schema_version = Some(entry.schema_version);
            progress.stamped = (progress.inserted, progress.deleted);
            attempt.reach(FaultPoint::Committed);
            Ok(())
        }
        Err(pintail_engine::EngineError::NotCommitted { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn with_progress(mut failure: StepFailure, progress: &Progress) -> StepFailure {
    failure.committed = match (progress.commits, progress.snapshot) {
        (0, _) | (_, None) => "the script has committed nothing".to_owned(),
        (commits, Some(snapshot)) => format!(
            "the script's {} before this statement stand{} (the last is snapshot {snapshot})",
            if commits == 1 { "commit".to_owned() } else { format!("{commits} commits") },
            if commits == 1 { "s" } else { "" }
        ),
    };
    failure
}

/// Checks what was published: its columns, then its rows.
fn check(attempt: &mut Attempt<'_>, session: &Session, schema: Option<&Schema>) -> Result<(), StepFailure> {
    if let Some(schema) = schema {
        check_contract(attempt.script, schema, &mut attempt.notes)?;
    }
    test(attempt, session)
}

fn test(attempt: &mut Attempt<'_>, session: &Session) -> Result<(), StepFailure> {
    let has_tests = !attempt.script.header.tests.is_empty()
        || !attempt.script.singular_tests.is_empty()
        || attempt.script.header.columns.iter().any(|column| column.value.not_null);
    if !has_tests {
        return Ok(());
    }
    attempt.notes.push("the tests of a manual script run after it has published".to_owned());
    let relation = own_table(attempt);
    data_tests::in_transaction_of_view(attempt, session, &relation, TestRows::Written { slice: None }).map_err(
        |failure| match failure.code {
            Code::TEST_FAILED => failure,
            _ => StepFailure { stage: "test what was published".to_owned(), ..failure },
        },
    )
}
