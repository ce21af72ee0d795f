//! The statements that a step would send, in order, without running its query: what `plan --sql` shows.

use pintail_core::annotation::WriteStrategy;
use pintail_core::asset::Asset;
use pintail_core::diagnostic::Code;
use pintail_core::sql::strategy::stage;
use pintail_core::sql::{Relation, Statement};
use pintail_engine::lake;

use super::attempt::{stage_of, strategy_of};
use super::history;
use super::shape::{ShapeFacts, shape};
use super::staging::{deduplicate, mark_untyped, prepare_session};
use super::text::{ReadAs, own_relations, rewrite};
use crate::executors::{RunContext, Slot, StepFailure, StepJob};
use crate::project::CompiledScript;

/// Returns the statements that a step would send, in order, as far as they can be known without running the query.
pub fn explain(ctx: &RunContext, slot: &mut Slot, job: &StepJob) -> Result<Vec<Statement>, StepFailure> {
    let script = ctx.project.script(&job.step.name).ok_or_else(|| {
        StepFailure::user(Code::UNKNOWN_SCRIPT, "find the script", format!("there is no script `{}`", job.step.name))
    })?;
    if !matches!(job.step.asset, Some(Asset::Lake { .. })) {
        return crate::executors::outside::explain(script, job);
    }
    let mut statements: Vec<Statement> = script
        .setup_spans()
        .map(|span| {
            let text = rewrite(&script.text, span, &ReadAs::PINNED, job.step.partition.as_ref());
            Statement::new("run the setup", text.sql)
        })
        .collect();
    let strategy = script.strategy();
    if matches!(strategy, WriteStrategy::Manual) {
        statements.extend(script.text.body.statements.iter().map(|statement| {
            let text = rewrite(&script.text, statement.span, &ReadAs::PINNED, job.step.partition.as_ref());
            Statement::new("run the script's statement", text.sql)
        }));
        return Ok(statements);
    }
    let query = rewrite(&script.text, script.query_span(), &ReadAs::PINNED, job.step.partition.as_ref());
    let Some(Asset::Lake { lake, schema, table }) = &job.step.asset else { return Ok(statements) };
    let Some(location) = ctx.lakes.get(lake) else { return Ok(statements) };
    if matches!(strategy, WriteStrategy::View) {
        let alias = location.write_alias();
        let view = Relation::in_catalog(&alias, schema, table);
        let own = own_relations(lake, &alias);
        let query = rewrite(&script.text, script.query_span(), &ReadAs { special: &own }, None);
        statements.extend(pintail_core::sql::strategy::view(&view, &query.sql, &script.layout_words()));
        return Ok(statements);
    }
    statements.push(stage(&stage_of(job), &query.sql, deduplicate(&strategy)?.as_ref()).statement);
    let write = explain_write(ctx, slot, job, script, location, &query.sql);
    match write {
        Ok(write) => statements.extend(write),
        // Before the first run the inputs do not exist, so the columns of the write are not known.
        Err(failure) => statements.push(Statement::new(
            "write the stage",
            format!("-- known once the query can be bound: {}", failure.message.lines().next().unwrap_or_default()),
        )),
    }
    Ok(statements)
}

fn explain_write(
    ctx: &RunContext,
    slot: &mut Slot,
    job: &StepJob,
    script: &CompiledScript,
    location: &pintail_engine::LakeLocation,
    query: &str,
) -> Result<Vec<Statement>, StepFailure> {
    for name in script.lakes_needed(&ctx.project) {
        if let (Some(lake), Some(pin)) = (ctx.lakes.get(&name), job.pins.get(&name)) {
            slot.attach_pinned(lake, *pin)?;
        }
    }
    let session = slot.session()?;
    prepare_session(&session, ctx, job, script, job.pins.get(&location.name).copied())?;
    let mut schema = lake::schema_of(session.describe(query)?);
    mark_untyped(&session, query, &mut schema);
    let Some(Asset::Lake { schema: schema_name, table, .. }) = &job.step.asset else { return Ok(Vec::new()) };
    let facts = match job.pins.get(&location.name) {
        Some(pin) => {
            slot.attach_pinned(location, *pin)?;
            lake::table_facts(&session, &location.sql_name(), schema_name, table)?
        }
        None => None,
    };
    let strategy = strategy_of(script, &job.step);
    let read_from = facts.as_ref().map(|_| (&session, location.sql_name()));
    let asset = job.step.asset.as_ref().expect("the step writes a lake table");
    let beside =
        history::surroundings(ctx, asset, &strategy, read_from.as_ref().map(|(session, alias)| (*session, &**alias)))?;
    let shape = shape(&ShapeFacts {
        beside,
        script,
        step: &job.step,
        staged: &schema,
        stage: &stage_of(job),
        table: facts.as_ref(),
        write: Relation::in_catalog(&location.write_alias(), schema_name, table),
        strategy: &strategy,
    })?;
    Ok(shape.into_statements())
}
