-- What was loaded from where, and the rows that could not be. The tables load_* are staging: empty when no load runs, except
-- load_files, by which a file that was loaded before is recognised.

CREATE TABLE loads (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state      text        NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'failed', 'cancelled')),
    stage      text        NOT NULL DEFAULT 'reading' CHECK (stage IN ('reading', 'indexing', 'merging', 'done')),
    forced     boolean     NOT NULL DEFAULT false,
    bytes      bigint      NOT NULL DEFAULT 0,      -- of all sources
    bytes_read bigint      NOT NULL DEFAULT 0,      -- while it runs: how far it is
    rows_read  bigint      NOT NULL DEFAULT 0,      -- inserted + updated + skipped + dead, once it is done
    inserted   bigint      NOT NULL DEFAULT 0,
    updated    bigint      NOT NULL DEFAULT 0,
    skipped    bigint      NOT NULL DEFAULT 0,      -- events that were there, and rows that the load holds twice
    dead       bigint      NOT NULL DEFAULT 0,
    seconds    jsonb       NOT NULL DEFAULT '{}',   -- by stage
    error      text,
    started    timestamptz NOT NULL DEFAULT now(),
    changed    timestamptz NOT NULL DEFAULT now(),
    finished   timestamptz
);

CREATE TABLE load_files (
    load   bigint  NOT NULL REFERENCES loads ON DELETE CASCADE,
    file   integer NOT NULL,                        -- in the order of paths
    path   text COLLATE "C" NOT NULL,
    format text    NOT NULL,
    size   bigint  NOT NULL,
    sha256 text    NOT NULL,
    PRIMARY KEY (load, file)
);
CREATE INDEX load_files_sha256 ON load_files (sha256);

-- One row per split that is staged, written in the transaction that staged its rows. The primary key is what makes a task
-- that runs twice add nothing: the second one conflicts here and rolls its rows back.
CREATE TABLE load_splits (
    load      bigint  NOT NULL REFERENCES loads ON DELETE CASCADE,
    split     integer NOT NULL,
    file      integer NOT NULL,
    bytes     bigint  NOT NULL,
    lines     bigint  NOT NULL,                     -- blank ones too: they give later splits their line numbers
    staged    bigint  NOT NULL,
    letters   bigint  NOT NULL,
    positions numeric NOT NULL,                     -- the sum over staged rows: a row twice or missing changes it
    PRIMARY KEY (load, split)
);

CREATE TABLE load_letters (
    load      bigint  NOT NULL REFERENCES loads ON DELETE CASCADE,
    split     integer NOT NULL,
    file      integer NOT NULL,
    position  bigint  NOT NULL,
    line      bigint,                               -- within the split
    raw       text    NOT NULL,
    truncated boolean NOT NULL,
    reason    text    NOT NULL,
    message   text    NOT NULL
);
CREATE INDEX load_letters_load ON load_letters (load);

CREATE TABLE load_progress (
    load  bigint  NOT NULL REFERENCES loads ON DELETE CASCADE,
    split integer NOT NULL,
    rows  bigint  NOT NULL,
    bytes bigint  NOT NULL,
    PRIMARY KEY (load, split)
);

-- open: waits for a person. requeued: its text, as it was or corrected, was loaded. resolved: a later load of the same file
-- took the row. discarded: a person said that it does not matter.
CREATE TABLE dead_letters (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    load       bigint      NOT NULL REFERENCES loads ON DELETE CASCADE,
    file       text COLLATE "C" NOT NULL,
    position   bigint      NOT NULL,                -- byte offset of the line (after unpacking), or row number in Parquet
    line       bigint,                              -- from 1, where it is known
    raw        text        NOT NULL,
    truncated  boolean     NOT NULL DEFAULT false,
    reason     text        NOT NULL,
    message    text        NOT NULL,
    state      text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'requeued', 'resolved', 'discarded')),
    attempts   integer     NOT NULL DEFAULT 1,
    first_seen timestamptz NOT NULL DEFAULT now(),
    last_seen  timestamptz NOT NULL DEFAULT now(),
    corrected  text                                 -- the text that was loaded instead, if another
);
CREATE UNIQUE INDEX dead_letters_place ON dead_letters (md5(file), position, md5(raw));
CREATE INDEX dead_letters_state ON dead_letters (state, id);
CREATE INDEX dead_letters_load ON dead_letters (load);
