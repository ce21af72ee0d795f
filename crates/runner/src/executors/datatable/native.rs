//! A datatable written from a Postgres SQL script: everything happens in the server, in one transaction.

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::id::SnapshotId;
use pintail_core::schema::{Column, DataType, Schema};
use pintail_core::source::Span;
use pintail_core::sql::postgres::{
    Bound, BoundText, PostgresColumn, STAGE_IN_POSTGRES, StagedValue, bind, duckdb_type,
};
use pintail_core::sql::stamp::StampEntry;
use pintail_core::sql::strategy::{GuardCounts, GuardRules, Projected, STAGE, guards, judge};
use pintail_core::sql::{Fragment, Ident, Relation, Statement};
use pintail_engine::fault::FaultPoint;
use sqlx::Row as _;
use sqlx::postgres::PgArguments;

use super::connection::Postgres;
use super::failure::{failure, position};
use super::home::Values;
use super::shape::{Incoming, describe};
use super::tests::{rows_as_json, run_in_postgres, sample_of};
use super::write::{Counts, Pending, check_stamps, finish, lock, refuse_foreign, target_of, write};
use crate::executors::duckdb::{ReadyTest, Shape, ShapeFacts, Surroundings, TestPlace, shape as lake_shape, tests_of};
use crate::executors::failure::Sample;
use crate::executors::outside::{Attempt, Ended, Staged};
use crate::executors::{Slot, StepFailure};

/// Runs the script in one transaction; nothing is kept from one try to the next.
pub fn try_native(
    attempt: &mut Attempt<'_>,
    _slot: &mut Slot,
    _staged: &mut Option<Staged>,
) -> Result<Ended, StepFailure> {
    let (database, ..) = target_of(attempt)?;
    let mut postgres = attempt.phase("connect", |attempt| Postgres::of_run(attempt.ctx, database))?;
    let _watch = attempt.ctx.cancel.watch_by(attempt.slot, postgres.interrupt());
    attempt.tests.clear();
    let ended = match attempt.strategy() {
        WriteStrategy::Manual => run_manual(attempt, &mut postgres),
        _ => run_managed(attempt, &mut postgres),
    };
    if ended.is_err() {
        postgres.roll_back();
    }
    attempt.sent.extend(postgres.take_sent());
    ended
}

/// Begins the transaction. Who reads the target has its lock from the start, so that what is read is what is replaced.
fn begin(attempt: &mut Attempt<'_>, postgres: &mut Postgres, locks: bool) -> Result<SnapshotId, StepFailure> {
    postgres.make_home()?;
    postgres.batch("begin the transaction", "BEGIN")?;
    if locks {
        lock(attempt, postgres)?;
    }
    let base = postgres.head()?;
    attempt.pins.insert(attempt.place.clone(), base);
    Ok(base)
}

fn run_managed(attempt: &mut Attempt<'_>, postgres: &mut Postgres) -> Result<Ended, StepFailure> {
    let base = begin(attempt, postgres, attempt.script.reads_target())?;
    let rows = attempt.phase("stage", |attempt| stage(attempt, postgres))?;
    attempt.reach(FaultPoint::Staged);
    attempt.go_on("stage the query")?;
    let columns = staged_columns(postgres)?;
    let shape = shape_of(attempt, &columns)?;
    for note in &shape.notes {
        if !attempt.notes.contains(note) {
            attempt.notes.push(note.clone());
        }
    }
    attempt.phase("guard", |attempt| guard(attempt, postgres, &shape))?;
    let incoming = incoming(&shape, &columns);
    let pending = Pending { base, incoming: &incoming, slice: shape.slice.as_ref(), rows };
    attempt.phase("commit", |attempt| {
        write(attempt, postgres, &pending, |attempt, postgres, relation, schema| {
            let tests = ready(attempt, relation, schema, &shape)?;
            run_in_postgres(attempt, postgres, tests)
        })
    })
}

/// Runs the setup and evaluates the query once into a temporary table of the transaction.
fn stage(attempt: &Attempt<'_>, postgres: &mut Postgres) -> Result<u64, StepFailure> {
    for span in attempt.script.setup_spans() {
        send(attempt, postgres, "run the setup", span, ("", ""))?;
    }
    let (before, after) = deduplicated(&attempt.script.strategy())?;
    let before = format!("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS\n{before}", Ident::new(STAGE_IN_POSTGRES));
    send(attempt, postgres, "stage the query", attempt.script.query_span(), (&before, &after))
}

/// Returns what stands around the query so that `order_by=` picks one of several rows with one key.
fn deduplicated(strategy: &WriteStrategy) -> Result<(String, String), StepFailure> {
    let WriteStrategy::Merge { key, order_by: Some(order_by) } = strategy else {
        return Ok((String::new(), "\n".to_owned()));
    };
    let order_by = Fragment::new(order_by).map_err(|error| {
        StepFailure::user(Code::ENGINE_ERROR, "stage the query", format!("`order_by={order_by}`: {error}"))
    })?;
    let key = key.iter().map(|column| Ident::new(column).to_string()).collect::<Vec<_>>().join(", ");
    let before = format!("SELECT DISTINCT ON ({key}) *\nFROM (\n");
    Ok((before, format!("\n) AS _pt_query\nORDER BY {key}, {order_by}")))
}

/// Sends a statement of the script with its values bound and something of ours around it.
fn send(
    attempt: &Attempt<'_>,
    postgres: &mut Postgres,
    purpose: &'static str,
    span: Span,
    (before, after): (&str, &str),
) -> Result<u64, StepFailure> {
    let text = &attempt.script.text;
    let partition = attempt.partition().map(pintail_core::partition::PartitionKey::as_str);
    let BoundText { text: rewritten, values } =
        bind(&text.blanked, span, &text.body.parameters, &text.body.placeholders, partition);
    let statement = Statement::new(purpose, format!("{before}{}{after}", rewritten.sql));
    postgres.try_run(&statement, bound(attempt, &values)).map_err(|error| {
        let place = position(&error, &statement.sql).map_or(span, |position| {
            let at = rewritten.original_offset_in(position, before.len()).clamp(span.start, span.end);
            Span::new(at, at)
        });
        failure(purpose, &error, &postgres.redactor).at(place)
    })
}

fn bound(attempt: &Attempt<'_>, values: &[Bound]) -> PgArguments {
    let window = attempt.job.step.window;
    values
        .iter()
        .fold(Values::default(), |all, value| match value {
            Bound::Partition => all.with(attempt.partition().map(ToString::to_string)),
            Bound::PartitionStart => all.with(window.map(|window| window.start)),
            Bound::PartitionEnd => all.with(window.map(|window| window.end)),
            Bound::FirstRun => {
                all.with(attempt.job.step.full_refresh || !attempt.ctx.memory_of(attempt.asset).has_version)
            }
            Bound::Variable(name) => all.with(attempt.ctx.vars.get(name).cloned()),
        })
        .done()
}

fn staged_columns(postgres: &mut Postgres) -> Result<Vec<PostgresColumn>, StepFailure> {
    let sql = "
        SELECT attname::text, format_type(atttypid, atttypmod)
        FROM pg_attribute
        WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
        ORDER BY attnum";
    let values = Values::default().with(format!("pg_temp.{STAGE_IN_POSTGRES}")).done();
    postgres.rows("describe the stage", sql, values, |row| {
        Ok(PostgresColumn { name: row.try_get(0)?, data_type: row.try_get(1)? })
    })
}

/// Returns slice, window and contract by the rules of lakes; a type that only Postgres knows counts as text there.
fn shape_of(attempt: &Attempt<'_>, columns: &[PostgresColumn]) -> Result<Shape, StepFailure> {
    let known = |column: &PostgresColumn| {
        let data_type = duckdb_type(&column.data_type);
        match DataType::of(&data_type) {
            DataType::Other(_) => "VARCHAR".to_owned(),
            _ => data_type,
        }
    };
    let column = |column: &PostgresColumn| Column { name: column.name.clone(), data_type: known(column) };
    let staged = Schema { columns: columns.iter().map(column).collect() };
    let (_, _, table) = target_of(attempt)?;
    lake_shape(&ShapeFacts {
        script: attempt.script,
        stage: &Relation::temp(STAGE),
        beside: Surroundings::default(),
        step: &attempt.job.step,
        staged: &staged,
        table: None,
        write: Relation::temp(table),
        strategy: &attempt.strategy(),
    })
}

fn incoming(shape: &Shape, staged: &[PostgresColumn]) -> Vec<Incoming> {
    let columns = shape.schema.columns.iter().zip(&shape.target.projection.0);
    columns
        .map(|(column, projected)| match projected {
            Projected::Text { value, .. } => Incoming {
                name: column.name.clone(),
                home: "text".to_owned(),
                value: StagedValue::Text(value.0.clone()),
            },
            Projected::Column(_) | Projected::Cast { .. } => {
                let staged = staged.iter().find(|staged| staged.name == column.name);
                let home = staged.map_or("text", |staged| staged.data_type.as_str());
                Incoming {
                    name: column.name.clone(),
                    home: home.to_owned(),
                    value: StagedValue::Column(column.name.clone()),
                }
            }
        })
        .collect()
}

fn guard(attempt: &Attempt<'_>, postgres: &mut Postgres, shape: &Shape) -> Result<(), StepFailure> {
    let declared = attempt.script.strategy();
    let key: &[String] = match &declared {
        WriteStrategy::Merge { key, .. } => key,
        _ => &[],
    };
    let rules = GuardRules { key, window: shape.window.as_ref(), refuses_empty: false };
    if key.is_empty() && rules.window.is_none() {
        return Ok(());
    }
    // The stage has the same name in both places.
    let queries = guards(&shape.target, &rules);
    let counts = postgres.rows("guard the stage", &queries.summary, PgArguments::default(), |row| {
        let count = |index: usize| row.try_get::<i64, _>(index).map(|count| u64::try_from(count).unwrap_or(0));
        Ok(GuardCounts {
            row_count: count(0)?,
            null_keys: count(1)?,
            duplicate_keys: count(2)?,
            duplicate_rows: count(3)?,
            outside_window: count(4)?,
            null_by: count(5)?,
        })
    })?;
    let counts = counts.first().copied().unwrap_or_default();
    let Some(broken) = judge(&counts, &rules).into_iter().next() else { return Ok(()) };
    let sample = match queries.samples.iter().find(|(kind, _)| *kind == broken.kind) {
        Some((_, sql)) => sample_of(&rows_as_json(postgres, "read a sample", sql, 20)?),
        None => Sample::default(),
    };
    Err(attempt.guarded(broken, sample))
}

fn ready(
    attempt: &Attempt<'_>,
    relation: &Relation,
    schema: &Schema,
    shape: &Shape,
) -> Result<Vec<ReadyTest>, StepFailure> {
    tests_of(&TestPlace {
        project: &attempt.ctx.project,
        script: attempt.script,
        asset: attempt.asset,
        strategy: &attempt.strategy(),
        table: relation,
        schema,
        slice: shape.slice.as_ref(),
        stage: None,
    })
}

/// Sends the script's own statements, one by one, then tests what they made.
fn run_manual(attempt: &mut Attempt<'_>, postgres: &mut Postgres) -> Result<Ended, StepFailure> {
    let base = begin(attempt, postgres, true)?;
    if let Some(ended) = check_stamps(attempt, postgres, base)? {
        postgres.roll_back();
        return Ok(ended);
    }
    attempt.reach(FaultPoint::Checked);
    let (_, schema_name, table_name) = target_of(attempt)?;
    let before = describe(postgres, schema_name, table_name)?;
    let last = postgres.last_stamp(&attempt.asset.to_string(), None)?;
    refuse_foreign(attempt, before.as_ref(), last.is_some())?;
    let mut counts = Counts::default();
    for (span, _) in &attempt.script.statements {
        attempt.go_on("run the script")?;
        let changed = send(attempt, postgres, "run the script's statement", *span, ("", ""))?;
        match first_word(&attempt.script.text.blanked[span.start..span.end]).as_str() {
            "INSERT" => counts.inserted += changed,
            "DELETE" => counts.deleted += changed,
            _ => {}
        }
    }
    attempt.reach(FaultPoint::Written);
    let Some(after) = describe(postgres, schema_name, table_name)? else {
        let message = format!("the script has ended without making {}", attempt.asset);
        return Err(StepFailure::user(Code::ENGINE_ERROR, "run the script", message)
            .with_help("let it make the table that `materialize manual` names"));
    };
    let column =
        |column: &PostgresColumn| Column { name: column.name.clone(), data_type: duckdb_type(&column.data_type) };
    let schema = Schema { columns: after.table.columns.iter().map(column).collect() };
    let tests = tests_of(&TestPlace {
        project: &attempt.ctx.project,
        script: attempt.script,
        asset: attempt.asset,
        strategy: &WriteStrategy::Manual,
        table: &after.relation,
        schema: &schema,
        slice: None,
        stage: None,
    })?;
    attempt.phase("test", |attempt| run_in_postgres(attempt, postgres, tests))?;
    let changes = before.as_ref().map(|before| &before.table) != Some(&after.table);
    let entry = StampEntry {
        schema_version: last.map_or(0, |last| last.schema_version) + u32::from(changes),
        deleted: counts.deleted,
        inserted: counts.inserted,
        ..attempt.entry()
    };
    finish(attempt, postgres, entry, Some(schema))
}

fn first_word(sql: &str) -> String {
    sql.split_whitespace().next().unwrap_or_default().to_ascii_uppercase()
}
