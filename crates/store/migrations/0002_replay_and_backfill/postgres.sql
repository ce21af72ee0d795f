-- What a replay runs: the text of every script that a run had, kept once for each content.
CREATE TABLE script_text (
    project TEXT NOT NULL,
    hash TEXT NOT NULL,
    path TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (project, hash)
);
