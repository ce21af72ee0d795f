-- The full schema as the migrations leave it; a test keeps the two equal. Read this file, not the migrations.

CREATE TABLE pintail_store (version BIGINT NOT NULL PRIMARY KEY);

CREATE TABLE run (
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'succeeded', 'failed', 'cancelled', 'crashed')),
    command TEXT NOT NULL,
    triggered_by TEXT NOT NULL,
    pins TEXT NOT NULL,
    owner TEXT NOT NULL,
    started BIGINT NOT NULL,
    finished BIGINT,
    error TEXT,
    PRIMARY KEY (project, id),
    CHECK ((status = 'running') = (finished IS NULL))
);

CREATE INDEX run_by_start ON run (project, started, id);

CREATE INDEX run_open ON run (project, started) WHERE status = 'running';

CREATE TABLE step (
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    run TEXT NOT NULL,
    position BIGINT NOT NULL,
    script TEXT NOT NULL,
    asset TEXT,
    partition TEXT,
    reason TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN (
        'planned', 'running', 'materialized', 'unchanged', 'up_to_date', 'failed', 'skipped', 'cancelled'
    )),
    rows BIGINT,
    snapshot BIGINT,
    timings TEXT NOT NULL,
    started BIGINT,
    finished BIGINT,
    error TEXT,
    PRIMARY KEY (project, id),
    UNIQUE (project, run, position),
    FOREIGN KEY (project, run) REFERENCES run (project, id),
    CHECK ((status IN ('planned', 'running')) = (finished IS NULL))
);

CREATE TABLE attempt (
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    step TEXT NOT NULL,
    number BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('running', 'committing', 'committed', 'failed', 'cancelled')),
    pins TEXT NOT NULL,
    started BIGINT NOT NULL,
    finished BIGINT,
    error_class TEXT,
    error TEXT,
    statements TEXT NOT NULL,
    PRIMARY KEY (project, id),
    UNIQUE (project, step, number),
    FOREIGN KEY (project, step) REFERENCES step (project, id),
    CHECK ((status IN ('running', 'committing')) = (finished IS NULL))
);

CREATE INDEX attempt_not_committed ON attempt (project, status) WHERE status <> 'committed';

-- Append-only, and no foreign key to run, step or attempt: a row that was rebuilt from a lake outlives a lost store.
CREATE TABLE materialization (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    asset TEXT NOT NULL,
    partition TEXT,
    window_start BIGINT,
    window_end BIGINT,
    run TEXT NOT NULL,
    step TEXT NOT NULL,
    attempt TEXT NOT NULL,
    script TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('materialized', 'unchanged', 'failed', 'rolled_back')),
    origin TEXT NOT NULL CHECK (origin IN ('recorded', 'rebuilt')),
    lake TEXT,
    snapshot BIGINT,
    table_id BIGINT,
    generation BIGINT NOT NULL,
    rows BIGINT,
    deleted BIGINT NOT NULL,
    inserted BIGINT NOT NULL,
    strategy TEXT NOT NULL,
    schema_version BIGINT NOT NULL,
    script_hash TEXT NOT NULL,
    inputs TEXT NOT NULL,
    files TEXT NOT NULL,
    started BIGINT NOT NULL,
    finished BIGINT NOT NULL,
    error TEXT,
    undone_at BIGINT,
    UNIQUE (project, attempt),
    CHECK ((window_start IS NULL) = (window_end IS NULL)),
    CHECK (status NOT IN ('materialized', 'unchanged') OR (lake IS NULL) = (snapshot IS NULL))
);

CREATE INDEX materialization_by_time ON materialization (project, asset, finished DESC);

CREATE INDEX materialization_good ON materialization (project, asset, partition, snapshot DESC, id DESC, status, undone_at)
WHERE status IN ('materialized', 'unchanged') AND undone_at IS NULL;

CREATE INDEX materialization_bad ON materialization (project, asset, partition, finished DESC, id DESC, status)
WHERE status IN ('failed', 'rolled_back');

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

-- The newest failure of each slice, shown beside its current version.
CREATE VIEW latest_failure AS
SELECT
    ranked.project, ranked.asset, ranked.partition, made.id, made.window_start, made.window_end, made.run, made.step,
    made.attempt, made.script, made.status, made.origin, made.lake, made.snapshot, made.table_id, made.generation,
    made.rows, made.deleted, made.inserted, made.strategy, made.schema_version, made.script_hash, made.inputs,
    made.files, made.started, made.finished, made.error
FROM (
    SELECT project, asset, partition, id,
        row_number() OVER (PARTITION BY project, asset, partition ORDER BY finished DESC, id DESC) AS place
    FROM materialization
    WHERE status IN ('failed', 'rolled_back')
) AS ranked
JOIN materialization AS made ON made.id = ranked.id
WHERE ranked.place = 1;

CREATE TABLE asset_schema (
    project TEXT NOT NULL,
    asset TEXT NOT NULL,
    version BIGINT NOT NULL,
    lake TEXT,
    from_snapshot BIGINT,
    columns TEXT NOT NULL,
    PRIMARY KEY (project, asset, version)
);

CREATE TABLE test_result (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    step TEXT NOT NULL,
    attempt TEXT NOT NULL,
    name TEXT NOT NULL,
    severity TEXT NOT NULL CHECK (severity IN ('warn', 'error')),
    status TEXT NOT NULL CHECK (status IN ('passed', 'failed', 'warned', 'errored')),
    failures BIGINT,
    nulls_ignored BIGINT,
    sample_rows TEXT NOT NULL,
    sql TEXT NOT NULL,
    duration BIGINT NOT NULL,
    FOREIGN KEY (project, step) REFERENCES step (project, id),
    FOREIGN KEY (project, attempt) REFERENCES attempt (project, id)
);

CREATE INDEX test_result_by_step ON test_result (project, step, id);

CREATE INDEX test_result_by_attempt ON test_result (project, attempt);

CREATE TABLE log (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    run TEXT NOT NULL,
    step TEXT,
    attempt TEXT,
    at BIGINT NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('debug', 'info', 'warning', 'error')),
    text TEXT NOT NULL,
    FOREIGN KEY (project, run) REFERENCES run (project, id)
);

CREATE INDEX log_by_run ON log (project, run, id);

-- Keyed by attempt, not by materialization: what waits for delivery outlives a rebuild of the materializations.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    project TEXT NOT NULL,
    attempt TEXT NOT NULL,
    asset TEXT NOT NULL,
    partition TEXT,
    snapshot BIGINT,
    delivered BIGINT,
    UNIQUE (project, attempt)
);

CREATE INDEX outbox_waiting ON outbox (project, id) WHERE delivered IS NULL;

CREATE TABLE lake_cursor (
    project TEXT NOT NULL,
    lake TEXT NOT NULL,
    snapshot BIGINT NOT NULL,
    PRIMARY KEY (project, lake)
);

-- What a replay runs: the text of every script that a run had, kept once for each content.
CREATE TABLE script_text (
    project TEXT NOT NULL,
    hash TEXT NOT NULL,
    path TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (project, hash)
);

-- A durable backfill. Its partitions are ranges of the calendar; only those that have left the queue have rows of their own.
CREATE TABLE backfill (
    project TEXT NOT NULL,
    id BIGINT NOT NULL,
    script TEXT NOT NULL,
    asset TEXT,
    calendar TEXT NOT NULL,
    request TEXT NOT NULL,
    options TEXT NOT NULL,
    ranges TEXT NOT NULL,
    total BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
    owner TEXT NOT NULL,
    is_stopping BIGINT NOT NULL,
    created BIGINT NOT NULL,
    finished BIGINT,
    error TEXT,
    PRIMARY KEY (project, id),
    CHECK ((state = 'running') = (finished IS NULL))
);

CREATE TABLE backfill_partition (
    project TEXT NOT NULL,
    backfill BIGINT NOT NULL,
    partition TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
    run TEXT,
    since BIGINT NOT NULL,
    error TEXT,
    PRIMARY KEY (project, backfill, partition),
    FOREIGN KEY (project, backfill) REFERENCES backfill (project, id)
);

CREATE INDEX backfill_partition_by_state ON backfill_partition (project, backfill, state, partition);

CREATE INDEX materialization_by_run ON materialization (project, run);
