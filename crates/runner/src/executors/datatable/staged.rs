//! A datatable written from a DuckDB SQL script: staged and guarded by the engine, carried over, then written.

use std::time::Instant;

use pintail_core::annotation::WriteStrategy;
use pintail_core::diagnostic::Code;
use pintail_core::schema::Schema;
use pintail_core::sql::postgres::{
    PostgresColumn, PostgresType, STAGE_IN_POSTGRES, StagedValue, Wire, create_stage, postgres_type,
};
use pintail_core::sql::strategy::{Projected, STAGE};
use pintail_core::sql::{Ident, Relation, Statement};
use pintail_engine::Session;

use super::connection::Postgres;
use super::encode;
use super::failure::failure;
use super::shape::Incoming;
use super::tests::run_in_postgres;
use super::write::{Pending, target_of, write};
use crate::executors::duckdb::{ReadyTest, Shape, ShapeFacts, Surroundings, TestPlace, shape as lake_shape, tests_of};
use crate::executors::outside::{Attempt, Ended, Staged, guard_stage, stage, test_new_rows};
use crate::executors::{Slot, StepFailure};

/// How many bytes are sent at once.
const CHUNK: usize = 1 << 20;

/// The temp table of values that had to be changed before they travel.
const EXPORTED: &str = "_pt_exported";

/// One column on its way: where it comes from in the engine, and its home.
struct Carried {
    name: String,
    expression: String,
    is_plain: bool,
    home: PostgresType,
}

/// Stages unless a stage may be written again, then writes it in one transaction.
pub fn try_staged(
    attempt: &mut Attempt<'_>,
    slot: &mut Slot,
    staged: &mut Option<Staged>,
) -> Result<Ended, StepFailure> {
    let (database, ..) = target_of(attempt)?;
    let mut postgres = attempt.phase("connect", |attempt| Postgres::of_run(attempt.ctx, database))?;
    let ended = stage_and_write(attempt, slot, staged, &mut postgres);
    if ended.is_err() {
        postgres.roll_back();
    }
    attempt.sent.extend(staged.iter().flat_map(|staged| staged.session.take_sent()));
    attempt.sent.extend(postgres.take_sent());
    ended
}

fn stage_and_write(
    attempt: &mut Attempt<'_>,
    slot: &mut Slot,
    staged: &mut Option<Staged>,
    postgres: &mut Postgres,
) -> Result<Ended, StepFailure> {
    postgres.make_home()?;
    let base = match staged.as_ref().and_then(|staged| staged.base) {
        Some(base) => base,
        None => postgres.head()?,
    };
    if staged.is_none() {
        // A script that reads its target reads it as it is now.
        attempt.pins.insert(attempt.place.clone(), base);
        *staged = Some(stage(attempt, slot, Some(base))?);
    }
    let staged = staged.as_mut().expect("it was staged just now");
    staged.base = Some(base);
    let watch = attempt.ctx.cancel.watch(attempt.slot, &staged.session);
    let shape = shape_of(attempt, &staged.schema)?;
    for note in &shape.notes {
        if !attempt.notes.contains(note) {
            attempt.notes.push(note.clone());
        }
    }
    let carried = carried(&shape)?;
    attempt.phase("guard", |attempt| guard_stage(attempt, staged, &shape))?;
    let later = attempt.phase("test", |attempt| test_stage(attempt, staged, &shape))?;
    drop(watch);
    // From here on an interrupt goes to Postgres: the engine has no way to be stopped while it hands rows over.
    let _watch = attempt.ctx.cancel.watch_by(attempt.slot, postgres.interrupt());
    attempt.phase("copy", |attempt| copy(attempt, postgres, &staged.session, &carried))?;
    let pending = Pending { base, incoming: &incoming(&carried), slice: shape.slice.as_ref(), rows: staged.rows };
    attempt.phase("commit", |attempt| {
        write(attempt, postgres, &pending, |attempt, postgres, _, _| run_in_postgres(attempt, postgres, later))
    })
}

/// Returns the slice, the window and the projection of the stage. Their rules are those of lakes; the table itself is
/// compared later, under its lock.
fn shape_of(attempt: &Attempt<'_>, staged: &Schema) -> Result<Shape, StepFailure> {
    let (_, _, table) = target_of(attempt)?;
    lake_shape(&ShapeFacts {
        script: attempt.script,
        stage: &Relation::temp(STAGE),
        beside: Surroundings::default(),
        step: &attempt.job.step,
        staged,
        table: None,
        write: Relation::temp(table),
        strategy: &attempt.strategy(),
    })
}

fn carried(shape: &Shape) -> Result<Vec<Carried>, StepFailure> {
    let mut refused = Vec::new();
    let mut carried = Vec::new();
    for (column, projected) in shape.schema.columns.iter().zip(&shape.target.projection.0) {
        let home = match postgres_type(&column.data_type) {
            Ok(home) => home,
            Err(help) => {
                refused.push(format!("`{}` is {}: {help}", column.name, column.data_type));
                continue;
            }
        };
        let value = match projected {
            Projected::Column(column) => column.to_string(),
            Projected::Cast { column, data_type } => format!("CAST({column} AS {data_type})"),
            Projected::Text { value, .. } => value.to_string(),
        };
        let value = if home.as_json { format!("to_json({value})") } else { value };
        let is_plain = matches!(projected, Projected::Column(_)) && !home.as_json && home.exported == column.data_type;
        let expression = if is_plain { value } else { format!("CAST({value} AS {})", home.exported) };
        carried.push(Carried { name: column.name.clone(), expression, is_plain, home });
    }
    if refused.is_empty() {
        return Ok(carried);
    }
    let message = format!("Postgres cannot hold {} of the columns:\n{}", refused.len(), refused.join("\n"));
    Err(StepFailure::user(Code::TYPE_NOT_STORABLE, "compare the columns", message))
}

fn incoming(carried: &[Carried]) -> Vec<Incoming> {
    let incoming = |column: &Carried| Incoming {
        name: column.name.clone(),
        home: column.home.text.clone(),
        value: StagedValue::Column(column.name.clone()),
    };
    carried.iter().map(incoming).collect()
}

/// Runs the tests when the engine can decide them, and returns those that it cannot.
///
/// It decides all of them when a whole table is replaced, since the projected stage is the new table; else the new state
/// is only in Postgres.
fn test_stage(attempt: &mut Attempt<'_>, staged: &Staged, shape: &Shape) -> Result<Vec<ReadyTest>, StepFailure> {
    attempt.tests.clear();
    let strategy = attempt.strategy();
    if matches!(strategy, WriteStrategy::Replace) && shape.slice.is_none() {
        return test_new_rows(attempt, &staged.session, shape).map(|()| Vec::new());
    }
    let (_, schema, table) = target_of(attempt)?;
    tests_of(&TestPlace {
        project: &attempt.ctx.project,
        script: attempt.script,
        asset: attempt.asset,
        strategy: &strategy,
        table: &Relation { catalog: None, schema: Some(Ident::new(schema)), table: Ident::new(table) },
        schema: &shape.schema,
        slice: shape.slice.as_ref(),
        stage: None,
    })
}

/// Begins the transaction and carries the rows into its stage.
fn copy(
    attempt: &Attempt<'_>,
    postgres: &mut Postgres,
    session: &Session,
    carried: &[Carried],
) -> Result<(), StepFailure> {
    let columns: Vec<PostgresColumn> = carried
        .iter()
        .map(|column| PostgresColumn { name: column.name.clone(), data_type: column.home.text.clone() })
        .collect();
    postgres.batch("begin the transaction", "BEGIN")?;
    postgres.run(&create_stage(&columns))?;
    let source = export(session, carried)?;
    let wires: Vec<Wire> = carried.iter().map(|column| column.home.wire.clone()).collect();
    let sql = format!("COPY {} FROM STDIN (FORMAT binary)", Ident::new(STAGE_IN_POSTGRES));
    let started = Instant::now();
    let (runtime, redactor) = (postgres.runtime.clone(), postgres.redactor.clone());
    let failed = |error: sqlx::Error| failure("carry the rows over", &error, &redactor);
    let mut stream = runtime.block_on(postgres.connection.copy_in_raw(&sql)).map_err(failed)?;
    let mut buffer: Vec<u8> = Vec::with_capacity(CHUNK * 2);
    buffer.extend(encode::HEADER);
    let handed_over = session.stream("hand the rows over", &source, |batch| {
        attempt.go_on("carry the rows over")?;
        encode::rows(&batch, &wires, &mut buffer)
            .map_err(|why| StepFailure::user(Code::LOSSY_CAST, "carry the rows over", why))?;
        if CHUNK <= buffer.len() {
            runtime.block_on(stream.send(buffer.as_slice())).map_err(failed)?;
            buffer.clear();
        }
        Ok(())
    })?;
    if let Err(stopped) = handed_over {
        // The connection goes with the attempt, so what the server makes of the abort is nothing to us.
        let _ = runtime.block_on(stream.abort("the step stopped"));
        return Err(stopped);
    }
    buffer.extend(encode::TRAILER);
    runtime.block_on(stream.send(buffer.as_slice())).map_err(failed)?;
    runtime.block_on(stream.finish()).map_err(failed)?;
    postgres.keep("carry the rows over", &sql, started.elapsed());
    Ok(())
}

/// Returns the query of plain columns that is handed over; what must be changed first is changed into a temp table, since
/// a stream cannot fail.
fn export(session: &Session, carried: &[Carried]) -> Result<String, StepFailure> {
    let names = carried.iter().map(|column| Ident::new(&column.name).to_string()).collect::<Vec<_>>().join(", ");
    if carried.iter().all(|column| column.is_plain) {
        return Ok(format!("SELECT {names} FROM {}", Relation::temp(STAGE)));
    }
    let expressions: Vec<String> =
        carried.iter().map(|column| format!("  {} AS {}", column.expression, Ident::new(&column.name))).collect();
    let exported = Relation::temp(EXPORTED);
    let sql = format!(
        "CREATE OR REPLACE TEMP TABLE {exported} AS\nSELECT\n{}\nFROM {}",
        expressions.join(",\n"),
        Relation::temp(STAGE)
    );
    session.run(&Statement::new("bring the values into the types of Postgres", sql))?;
    Ok(format!("SELECT {names} FROM {exported}"))
}
