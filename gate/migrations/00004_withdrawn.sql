-- +goose Up

-- What a channel has withdrawn by its bundles: released or not, a digest that
-- the sender says must not be used any more.
CREATE TABLE withdrawn (
    channel     TEXT NOT NULL,
    digest      TEXT NOT NULL,
    reason      TEXT NOT NULL, -- untrusted text
    replacement TEXT NOT NULL DEFAULT '',
    case_id     INTEGER NOT NULL REFERENCES cases (id),
    since       INTEGER NOT NULL,
    PRIMARY KEY (channel, digest)
) STRICT;
