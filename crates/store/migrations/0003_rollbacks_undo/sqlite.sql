-- A rollback of a whole partitioned table takes away what its slices had become since, and retention takes old slices away:
-- `undone_at` is the snapshot of either. A later rollback to a version before that one brings them back.
ALTER TABLE materialization ADD COLUMN undone_at BIGINT;

DROP INDEX materialization_good;

CREATE INDEX materialization_good ON materialization (project, asset, partition, snapshot DESC, id DESC, status, undone_at)
WHERE status IN ('materialized', 'unchanged') AND undone_at IS NULL;

DROP VIEW current_slice;

-- The current version of each slice: a failed attempt has no place here, so it never downgrades one.
-- Project, asset and partition come from the ranking, so that a filter on them reaches its index.
CREATE VIEW current_slice AS
SELECT
    ranked.project, ranked.asset, ranked.partition, made.id, made.window_start, made.window_end, made.run, made.step,
    made.attempt, made.script, made.status, made.origin, made.lake, made.snapshot, made.table_id, made.generation,
    made.rows, made.deleted, made.inserted, made.strategy, made.schema_version, made.script_hash, made.inputs,
    made.files, made.started, made.finished, made.error
FROM (
    SELECT project, asset, partition, id,
        row_number() OVER (PARTITION BY project, asset, partition ORDER BY snapshot DESC, id DESC) AS place
    FROM materialization
    WHERE status IN ('materialized', 'unchanged') AND undone_at IS NULL
) AS ranked
JOIN materialization AS made ON made.id = ranked.id
WHERE ranked.place = 1;
