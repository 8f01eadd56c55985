-- The log: events once, attempts with the event embedded, both partitioned by their own time.
-- Every ordered text is COLLATE "C", so that PostgreSQL, DuckDB, Spark and Python agree on the order of ids.
-- There is no DEFAULT partition: it would forbid concurrent detach and refuse months whose rows it holds.

CREATE TABLE events (
    id                 text COLLATE "C" NOT NULL,
    tenant_id          text COLLATE "C" NOT NULL,
    destination_id     text COLLATE "C" NOT NULL,  -- publish input, not the matched destinations
    time               timestamptz      NOT NULL,
    topic              text COLLATE "C" NOT NULL,
    eligible_for_retry boolean          NOT NULL,
    data               jsonb            NOT NULL,
    metadata           jsonb            NOT NULL,
    PRIMARY KEY (time, id)
) PARTITION BY RANGE (time);

CREATE INDEX idx_events_tenant_time ON events (tenant_id, time DESC, id DESC);
CREATE INDEX idx_events_tenant_topic_time ON events (tenant_id, topic, time DESC, id DESC);
CREATE INDEX idx_events_id ON events (id);

CREATE TABLE attempts (
    id                 text COLLATE "C" NOT NULL,
    event_id           text COLLATE "C" NOT NULL,
    tenant_id          text COLLATE "C" NOT NULL,
    destination_id     text COLLATE "C" NOT NULL,
    topic              text COLLATE "C" NOT NULL,
    status             text COLLATE "C" NOT NULL,
    time               timestamptz      NOT NULL,
    attempt_number     integer          NOT NULL,
    manual             boolean          NOT NULL DEFAULT false,
    code               text COLLATE "C",
    response_data      jsonb,
    event_time         timestamptz      NOT NULL,
    eligible_for_retry boolean          NOT NULL,
    event_data         jsonb            NOT NULL,
    event_metadata     jsonb            NOT NULL,
    PRIMARY KEY (time, id)
) PARTITION BY RANGE (time);

CREATE INDEX idx_attempts_tenant_time ON attempts (tenant_id, time DESC, id DESC);
CREATE INDEX idx_attempts_tenant_dest_time ON attempts (tenant_id, destination_id, time DESC, id DESC);
CREATE INDEX idx_attempts_tenant_status_time ON attempts (tenant_id, status, time DESC, id DESC);
CREATE INDEX idx_attempts_tenant_topic_time ON attempts (tenant_id, topic, time DESC, id DESC);
CREATE INDEX idx_attempts_event_time ON attempts (event_id, time DESC, id DESC);
CREATE INDEX idx_attempts_id ON attempts (id);

-- A destination belongs to one tenant: without knowing that, the planner multiplies the two selectivities, expects one row,
-- and sorts whole months (measured: 7 149 against 659 buffers). LIKE … INCLUDING ALL copies these to every month.
CREATE STATISTICS events_tenant_topic (dependencies) ON tenant_id, topic FROM events;
CREATE STATISTICS attempts_tenant_destination (dependencies) ON tenant_id, destination_id FROM attempts;
CREATE STATISTICS attempts_tenant_topic (dependencies) ON tenant_id, topic FROM attempts;
CREATE STATISTICS attempts_tenant_status (dependencies) ON tenant_id, status FROM attempts;
