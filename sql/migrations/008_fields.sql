-- The fields that occur in the payloads of a topic, as far as writers have looked, and every change to a topic.

CREATE TABLE fields (
    topic       text COLLATE "C" NOT NULL,
    column_name text             NOT NULL CHECK (column_name IN ('data', 'metadata', 'response_data')),
    path        text[]           NOT NULL,
    types       jsonb            NOT NULL,  -- JSON type -> when it was last seen
    rows        bigint           NOT NULL,  -- looked at with this field, null or not
    nulls       bigint           NOT NULL,
    first_seen  timestamptz      NOT NULL,  -- times of records, not of writing
    last_seen   timestamptz      NOT NULL,
    sketch      bigint[]         NOT NULL,  -- the smallest hashes of values; see fields.py
    longest     integer          NOT NULL,  -- bytes
    PRIMARY KEY (topic, column_name, path)
);

CREATE TABLE topic_changes (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic  text        NOT NULL,
    actor  text        NOT NULL,
    change jsonb       NOT NULL,
    at     timestamptz NOT NULL DEFAULT now()
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON topic_changes
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
