-- What leaves when, and what was done about it.

-- One row for each table and tier; a knob without a value is unlimited. A month leaves its tier, oldest first, while it is
-- over a knob: older (by its upper bound) than max_age, or the tier larger than max_bytes or longer than max_count. Equal
-- is kept, min_count months always stay.
CREATE TABLE retention (
    parent    text    NOT NULL CHECK (parent IN ('events', 'attempts')),
    tier      text    NOT NULL CHECK (tier IN ('hot', 'cold')),
    max_age   interval CHECK (max_age >= interval '0'),
    max_bytes bigint  CHECK (max_bytes >= 0),
    max_count integer CHECK (max_count >= 0),
    min_count integer NOT NULL DEFAULT 1 CHECK (min_count >= 0),
    PRIMARY KEY (parent, tier)
);
INSERT INTO retention (parent, tier, max_age, min_count)
VALUES ('events', 'hot', '60 days', 2), ('attempts', 'hot', '60 days', 2),
       ('events', 'cold', NULL, 1), ('attempts', 'cold', NULL, 1);

-- Two rows for each step, one when it starts and one when it ends: a step without an end was killed, or is at work.
CREATE TABLE maintenance_runs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run          uuid        NOT NULL,
    actor        text        NOT NULL,
    plan_hash    text        NOT NULL,
    step         integer     NOT NULL,  -- from 1
    steps        integer     NOT NULL,  -- of the whole plan
    action       text        NOT NULL,
    partition    text        NOT NULL,
    sql          text        NOT NULL,
    result       text        NOT NULL CHECK (result IN ('started', 'done', 'failed')),
    error        text,
    rows         bigint,
    bytes        bigint,
    milliseconds bigint,
    time         timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX idx_maintenance_runs_run ON maintenance_runs (run, step);

-- A log that can be rewritten proves nothing. The revoke holds ordinary owners, the trigger also superusers.
REVOKE UPDATE, DELETE, TRUNCATE ON maintenance_runs FROM PUBLIC, CURRENT_USER;
CREATE FUNCTION refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER refuse_rewriting BEFORE UPDATE OR DELETE OR TRUNCATE ON maintenance_runs
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_rewriting();
