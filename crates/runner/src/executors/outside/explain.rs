//! The statements of a step outside lakes, as far as they are known before its query has run.

use pintail_core::annotation::WriteStrategy;
use pintail_core::partition::PartitionKey;
use pintail_core::source::{Language, Span};
use pintail_core::sql::postgres::bind;
use pintail_core::sql::{Relation, Statement, strategy};

use crate::executors::duckdb::{ReadAs, deduplicate, rewrite};
use crate::executors::{StepFailure, StepJob};
use crate::project::CompiledScript;

/// Returns the statements that the step would send, in order.
pub fn explain(script: &CompiledScript, job: &StepJob) -> Result<Vec<Statement>, StepFailure> {
    let partition = job.step.partition.as_ref();
    let is_native = script.language() == Language::PostgresSql;
    let text = |span: Span| match is_native {
        true => {
            let body = &script.text.body;
            let key = partition.map(PartitionKey::as_str);
            bind(&script.text.blanked, span, &body.parameters, &body.placeholders, key).text.sql
        }
        false => rewrite(&script.text, span, &ReadAs::PINNED, partition).sql,
    };
    if script.strategy() == WriteStrategy::Manual {
        let own = script.statements.iter().map(|(span, _)| Statement::new("run the script's statement", text(*span)));
        return Ok(own.collect());
    }
    let mut statements: Vec<Statement> =
        script.setup_spans().map(|span| Statement::new("run the setup", text(span))).collect();
    let query = text(script.query_span());
    statements.push(match is_native {
        true => Statement::new("stage the query in Postgres", query),
        false => {
            strategy::stage(&Relation::temp(strategy::STAGE), &query, deduplicate(&script.strategy())?.as_ref())
                .statement
        }
    });
    statements.push(Statement::new(
        "write the stage",
        "-- depends on the columns that the query gives: `pintail show <run>` has the statements that were sent",
    ));
    Ok(statements)
}
