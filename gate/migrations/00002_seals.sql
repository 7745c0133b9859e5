-- +goose Up

-- Which entry of the audit log was the last to say how rows stand that belong
-- together: "case 5", "account anna", "trust", "channel default", "names depot".
CREATE TABLE seal (
    subject TEXT PRIMARY KEY,
    leaf    INTEGER NOT NULL REFERENCES leaf (n)
) STRICT;
