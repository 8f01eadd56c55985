-- The catalog of Parquet segments. Readers use the files that stand here as sealed, never a listing of the folder.

CREATE TABLE segments (
    segment_id     text COLLATE "C" PRIMARY KEY,
    parent         text        NOT NULL CHECK (parent IN ('events', 'attempts')),
    month          date        NOT NULL,
    base_offset    bigint      NOT NULL,  -- of the first row in its month, counted in the order of (time, id)
    end_offset     bigint      NOT NULL CHECK (end_offset >= base_offset),  -- one past the last row
    rows           bigint      NOT NULL,
    bytes          bigint      NOT NULL,
    sha256         text        NOT NULL,  -- of the file
    checksum       text        NOT NULL,  -- of the rows, see segments.py; sums up over segments
    min_time       timestamptz,
    max_time       timestamptz,
    min_id         text COLLATE "C",      -- of the first row in the order of (time, id)
    max_id         text COLLATE "C",      -- of the last
    location       text        NOT NULL,  -- below the archive's folder
    schema_version integer     NOT NULL,
    replaces       text[]      NOT NULL DEFAULT '{}',
    state          text        NOT NULL CHECK (state IN ('writing', 'sealed', 'quarantined', 'retired')),
    note           text,                  -- why it is quarantined or retired
    created        timestamptz NOT NULL DEFAULT now(),
    verified       timestamptz,
    changed        timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX idx_segments_month ON segments (parent, month, base_offset);

-- A reader's copy of the map holds the sealed segments too, so a change of theirs is a change of the map.
CREATE TRIGGER bump_map_epoch AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON segments
    FOR EACH STATEMENT EXECUTE FUNCTION bump_map_epoch();
