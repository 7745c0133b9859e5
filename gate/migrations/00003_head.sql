-- +goose Up

-- The newest head of the audit log, signed with the key of the log in the same
-- transaction as its last entry: the anchor beside the database follows.
CREATE TABLE head_signed (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    checkpoint BLOB NOT NULL
) STRICT;
