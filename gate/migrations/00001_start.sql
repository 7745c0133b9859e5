-- +goose Up

-- What the gate believes, one row.
CREATE TABLE belief (
    one               INTEGER PRIMARY KEY CHECK (one = 1),
    root              BLOB NOT NULL,
    root_version      INTEGER NOT NULL,
    revocations       BLOB,
    list_version      INTEGER NOT NULL DEFAULT 0, -- of the revocations
    floor             INTEGER NOT NULL -- seconds since 1970: it is certainly not earlier
) STRICT;

-- Every version of a trust document that was ever believed.
CREATE TABLE trust_document (
    kind     TEXT NOT NULL CHECK (kind IN ('root', 'revocations')),
    version  INTEGER NOT NULL,
    document BLOB NOT NULL,
    accepted INTEGER NOT NULL,
    PRIMARY KEY (kind, version)
) STRICT;

-- The place of each channel: the newest serial that was accepted.
CREATE TABLE channel (
    name     TEXT PRIMARY KEY,
    epoch    INTEGER NOT NULL,
    serial   INTEGER NOT NULL,
    manifest TEXT NOT NULL
) STRICT;

-- Every serial of a channel that was accepted, or is missing (manifest NULL).
CREATE TABLE serial (
    channel  TEXT NOT NULL,
    epoch    INTEGER NOT NULL,
    serial   INTEGER NOT NULL,
    manifest TEXT,
    previous TEXT NOT NULL DEFAULT '',    -- the manifest that it says it follows
    excused  INTEGER NOT NULL DEFAULT 0,  -- case by which people went on without a missing one
    PRIMARY KEY (channel, epoch, serial)
) STRICT;

CREATE TABLE cases (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    manifest        TEXT NOT NULL,
    state           TEXT NOT NULL,
    verdict         TEXT NOT NULL DEFAULT '',
    channel         TEXT NOT NULL,
    epoch           INTEGER NOT NULL,
    serial          INTEGER NOT NULL,
    size            INTEGER NOT NULL,
    artifacts       INTEGER NOT NULL,
    file            TEXT NOT NULL,
    submitter       TEXT NOT NULL,
    arrived         INTEGER NOT NULL,
    changed         INTEGER NOT NULL,
    problem         TEXT,                     -- JSON
    decision        TEXT,                     -- JSON of the policy's decision
    deny            INTEGER NOT NULL DEFAULT 0, -- findings of each level
    review_findings INTEGER NOT NULL DEFAULT 0,
    warn            INTEGER NOT NULL DEFAULT 0,
    inspection      TEXT,                     -- JSON, by digest of the file
    inspector       TEXT NOT NULL DEFAULT '', -- the program that looked
    review          TEXT,                     -- the canonical review document
    review_digest   TEXT NOT NULL DEFAULT '',
    needed          INTEGER NOT NULL DEFAULT 0,
    refusals        INTEGER NOT NULL DEFAULT 0  -- how often the same was refused again
) STRICT;

-- One live case a manifest. Refused ones are kept apart: a forgery of the head
-- must not stand in the way of the genuine one.
CREATE UNIQUE INDEX cases_live ON cases (manifest) WHERE state NOT IN ('not genuine');
CREATE INDEX cases_state ON cases (state);

-- The head of each case that was genuine, as it arrived.
CREATE TABLE head (
    case_id INTEGER NOT NULL REFERENCES cases (id),
    kind    TEXT NOT NULL CHECK (kind IN ('manifest', 'root', 'revocations', 'signature')),
    name    TEXT NOT NULL, -- version, or key of a signature
    bytes   BLOB NOT NULL,
    PRIMARY KEY (case_id, kind, name)
) STRICT;

-- Everybody who brought a part of a case in. They do not decide about it.
CREATE TABLE receiver (
    case_id INTEGER NOT NULL REFERENCES cases (id),
    person  TEXT NOT NULL,
    PRIMARY KEY (case_id, person)
) STRICT;

CREATE TABLE decision (
    case_id INTEGER NOT NULL REFERENCES cases (id),
    person  TEXT NOT NULL,
    actor   TEXT NOT NULL,
    choice  TEXT NOT NULL CHECK (choice IN ('approve', 'reject')),
    reason  TEXT NOT NULL,
    review  TEXT NOT NULL, -- digest of the review document that it is bound to
    at      INTEGER NOT NULL,
    PRIMARY KEY (case_id, person, review)
) STRICT;

CREATE TABLE load (
    case_id     INTEGER NOT NULL REFERENCES cases (id),
    destination TEXT NOT NULL,
    artifact    INTEGER NOT NULL, -- its place in the manifest
    digest      TEXT NOT NULL,
    repository  TEXT NOT NULL,
    tag         TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('put', 'published', 'verified')),
    receipt     TEXT NOT NULL, -- JSON
    PRIMARY KEY (case_id, destination, artifact)
) STRICT;

-- What the gate published last under each name.
CREATE TABLE name (
    destination TEXT NOT NULL,
    repository  TEXT NOT NULL,
    tag         TEXT NOT NULL,
    kind        TEXT NOT NULL,
    digest      TEXT NOT NULL,
    media_type  TEXT NOT NULL,
    size        INTEGER NOT NULL,
    replaced    TEXT NOT NULL DEFAULT '', -- what this case found under the name
    case_id     INTEGER NOT NULL REFERENCES cases (id),
    since       INTEGER NOT NULL,
    PRIMARY KEY (destination, repository, tag)
) STRICT;

-- What the channel's last release brought, for the comparison with the next.
CREATE TABLE holding (
    channel TEXT NOT NULL,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    digest  TEXT NOT NULL,
    case_id INTEGER NOT NULL REFERENCES cases (id),
    PRIMARY KEY (channel, kind, name, version)
) STRICT;

-- What the depot shows: everything reachable from released artifacts, once
-- for each artifact that it is reachable from.
CREATE TABLE depot_blob (
    repository    TEXT NOT NULL,
    digest        TEXT NOT NULL,
    root          TEXT NOT NULL, -- of the artifact
    media_type    TEXT NOT NULL,
    size          INTEGER NOT NULL,
    manifest      INTEGER NOT NULL,
    subject       TEXT NOT NULL DEFAULT '',
    artifact_type TEXT NOT NULL DEFAULT '',
    annotations   TEXT NOT NULL DEFAULT '{}',
    case_id       INTEGER NOT NULL REFERENCES cases (id),
    PRIMARY KEY (repository, digest, root, case_id)
) STRICT;
CREATE INDEX depot_digest ON depot_blob (digest);
CREATE INDEX depot_subject ON depot_blob (repository, subject) WHERE subject <> '';

CREATE TABLE depot_file (
    digest TEXT NOT NULL, -- of the artifact's root
    path   TEXT NOT NULL,
    size   INTEGER NOT NULL,
    blob   TEXT NOT NULL,
    PRIMARY KEY (digest, path)
) STRICT;

CREATE TABLE account (
    name     TEXT PRIMARY KEY,
    roles    TEXT NOT NULL, -- joined by spaces
    password TEXT NOT NULL, -- argon2id, PHC string form
    created  INTEGER NOT NULL,
    changed  INTEGER NOT NULL
) STRICT;

CREATE TABLE session (
    token   TEXT PRIMARY KEY, -- digest of what the client holds
    account TEXT NOT NULL REFERENCES account (name),
    started INTEGER NOT NULL,
    used    INTEGER NOT NULL
) STRICT;

-- The audit log: leaves, and the hashes of the RFC 6962 tree over them.
CREATE TABLE leaf (
    n     INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL,
    at    INTEGER NOT NULL,
    case_id INTEGER
) STRICT;
CREATE INDEX leaf_case ON leaf (case_id) WHERE case_id IS NOT NULL;

CREATE TABLE leaf_hash (
    i    INTEGER PRIMARY KEY,
    hash BLOB NOT NULL
) STRICT;
