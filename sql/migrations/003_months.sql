-- The map of months: which month of which table is in which state, and an epoch that every change of the map bumps.
-- Readers keep a copy of the map and compare the epoch after each page; one row, so that changes are serialised and an
-- epoch that was read always describes a map that was committed.

CREATE TABLE months (
    parent  text        NOT NULL CHECK (parent IN ('events', 'attempts')),
    month   date        NOT NULL CHECK (month = date_trunc('month', month)),
    state   text        NOT NULL CHECK (state IN ('open', 'closed', 'cold', 'purged')),
    changed timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (parent, month)
);

CREATE TABLE map_epoch (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    value  bigint  NOT NULL
);
INSERT INTO map_epoch (value) VALUES (1);

CREATE FUNCTION bump_map_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE map_epoch SET value = value + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER bump_map_epoch AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON months
    FOR EACH STATEMENT EXECUTE FUNCTION bump_map_epoch();

-- The leaf of a month that is not open carries this as a trigger. LS001 is our own code for "the month is not open".
CREATE FUNCTION refuse_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the month % is closed', TG_TABLE_NAME
        USING ERRCODE = 'LS001', HINT = 'reopen it with: python -m logstore restore ' || TG_TABLE_NAME;
END $$;
