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

-- One row for each write transaction, by which a COMMIT whose answer was lost is settled. Only here: SQLite loses none.
CREATE TABLE write_proof (
    token TEXT NOT NULL PRIMARY KEY,
    at TIMESTAMPTZ NOT NULL DEFAULT now()
);
