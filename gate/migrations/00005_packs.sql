-- +goose Up

-- Where a file of a tree lies: in a pack from a byte on, or ('') in the blob of
-- its own digest.
ALTER TABLE depot_file ADD COLUMN pack TEXT NOT NULL DEFAULT '';
ALTER TABLE depot_file ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
