//! What must hold of the tables that the configured consumers write.

use pintail_core::id::LakeName;
use pintail_core::sql::{Literal, Relation};
use pintail_engine::lake::OWN_SCHEMA;
use pintail_runner::Pintail;
use pintail_runner::pintail::{Check, Question};
use pintail_streams::audit::{Invariant, Summary, invariants};
use pintail_streams::consumer::Spec;
use pintail_streams::dead_letter;
use pintail_streams::decoder::Target;
use pintail_streams::rollup::shard_table;
use pintail_telemetry::subject::subject_bucket_sql;

use crate::commands::consume::opening::{Opening, openings};
use crate::failure::Failure;

/// The schema of decoders' tables.
const SCHEMA: &str = "main";

/// Returns the configured consumers, a shard of each, ready to be asked what they write.
pub fn consumers(pintail: &Pintail) -> Result<Vec<Opening>, Failure> {
    let mut openings = openings(pintail, &[])?;
    openings.dedup_by(|other, one| other.spec.name == one.spec.name);
    Ok(openings)
}

/// Returns what must be 0 in the lake `lake`, which is attached as `alias`.
pub fn questions(consumers: &[Opening], lake: &LakeName, alias: &str) -> Vec<Question> {
    consumers
        .iter()
        .filter(|consumer| consumer.config.lake == *lake)
        .flat_map(|consumer| {
            let targets = consumer.decoder.targets();
            let about_targets: Vec<_> = targets.iter().flat_map(|target| about(consumer, target, alias)).collect();
            about_targets.into_iter().chain(letters(consumer, alias))
        })
        .collect()
}

fn about(consumer: &Opening, target: &Target, alias: &str) -> Vec<Question> {
    let relation = |table: &str| Relation::in_catalog(alias, SCHEMA, table).to_string();
    let base = relation(&target.table);
    let source = &consumer.spec.source;
    let source_relation = Relation::in_catalog(alias, &source.schema, &source.table).to_string();
    let summaries = summaries(&consumer.config.specs(), target, &base, &relation);
    let mut tables = vec![(SCHEMA.to_owned(), target.table.clone()), (source.schema.clone(), source.table.clone())];
    tables.extend(target.rollup.iter().map(|rollup| (SCHEMA.to_owned(), rollup.table().to_owned())));
    invariants(&*consumer.decoder, target, &base, Some(&source_relation), &summaries)
        .into_iter()
        .chain(buckets(target, &base))
        .map(|invariant| Question {
            check: Check::Decoded,
            place: invariant.table,
            counted: invariant.broken,
            query: invariant.query,
            tables: tables.clone(),
        })
        .collect()
}

/// A letter names its event, which is in the source as long as the letter can be tried again.
fn letters(consumer: &Opening, alias: &str) -> Option<Question> {
    let reads = consumer.decoder.reads();
    if ["id", "source", "subject", "type", "time"].iter().any(|column| !reads.iter().any(|read| read == column)) {
        return None;
    }
    let source = &consumer.spec.source;
    let query = format!(
        "SELECT count(*)
         FROM {letters} AS _pt_letter
         WHERE (origin = {origin} OR starts_with(origin, {shard})) AND event_id IS NOT NULL AND replayed_at IS NULL
           AND NOT EXISTS (
             SELECT 1
             FROM {source} AS _pt_source
             WHERE _pt_source.id = _pt_letter.event_id
               AND _pt_source.source IS NOT DISTINCT FROM _pt_letter.event_source
               AND _pt_source.subject IS NOT DISTINCT FROM _pt_letter.subject
               AND (_pt_letter.event_type IS NULL OR _pt_source.type = _pt_letter.event_type)
               AND (_pt_letter.event_time IS NULL OR _pt_source.time = _pt_letter.event_time))",
        letters = dead_letter::relation(alias),
        origin = Literal::new(format!("consumer {}", consumer.spec.name)),
        shard = Literal::new(format!("consumer {}.", consumer.spec.name)),
        source = Relation::in_catalog(alias, &source.schema, &source.table),
    );
    Some(Question {
        check: Check::Letters,
        place: format!("consumer {}", consumer.spec.name),
        counted: "dead letters whose event is not in the source: it has gone from there, and cannot be decoded again"
            .to_owned(),
        query,
        tables: vec![
            (OWN_SCHEMA.to_owned(), dead_letter::TABLE.to_owned()),
            (source.schema.clone(), source.table.clone()),
        ],
    })
}

/// Queries name buckets to read fewer files, and would miss rows of another one.
fn buckets(target: &Target, base: &str) -> Option<Invariant> {
    let has = |name: &str| target.columns.iter().any(|column| column.name == name);
    let query = format!(
        "SELECT coalesce(sum(_pt_count), 0)::BIGINT
         FROM (SELECT subject, subject_bucket, count(*) AS _pt_count FROM {base} GROUP BY ALL)
         WHERE subject_bucket IS DISTINCT FROM {}",
        subject_bucket_sql("subject")
    );
    let broken =
        "rows of another bucket than their subject's, which queries that name it do not find: somebody else has written them".to_owned();
    (has("subject") && has("subject_bucket")).then(|| Invariant { table: target.table.clone(), broken, query })
}

fn summaries(specs: &[Spec], target: &Target, base: &str, relation: &dyn Fn(&str) -> String) -> Vec<Summary> {
    let Some(rollup) = &target.rollup else { return Vec::new() };
    let whole = Summary { table: rollup.table().to_owned(), rollup: relation(rollup.table()), base: base.to_owned() };
    let of_shard = |spec: &Spec| {
        let shard = spec.shard.as_ref()?;
        let table = shard_table(rollup.table(), shard.index);
        let base = format!("(SELECT * FROM {base} WHERE {})", shard.condition());
        Some(Summary { rollup: relation(&table), table, base })
    };
    std::iter::once(whole).chain(specs.iter().filter_map(of_shard)).collect()
}
