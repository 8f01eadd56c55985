-- Roll-ups of events, as 006 has them of attempts: by hour and tenant; by day, tenant and topic. A statement that writes
-- events appends what it changed, folding adds that up, and a reader takes both.

CREATE TABLE events_hourly (
    time      timestamptz      NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    records   bigint           NOT NULL,
    PRIMARY KEY (time, tenant_id)
);

CREATE TABLE events_daily (
    time      timestamptz      NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    topic     text COLLATE "C" NOT NULL,
    records   bigint           NOT NULL,
    PRIMARY KEY (time, tenant_id, topic)
);

-- Not folded yet. A row belongs to one of the two tables; an hourly row has no topic.
CREATE TABLE events_deltas (
    daily     boolean          NOT NULL,
    time      timestamptz      NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    topic     text COLLATE "C",
    records   bigint           NOT NULL
);

-- Months whose events came without their differences.
CREATE TABLE event_rollup_gaps (
    month date PRIMARY KEY
);

CREATE FUNCTION note_inserted_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events_deltas
        SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, topic, count(*)
        FROM (SELECT tenant_id, topic, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                     date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day FROM written) AS w
        GROUP BY GROUPING SETS ((hour, tenant_id), (day, tenant_id, topic));
    RETURN NULL;
END $$;

CREATE FUNCTION note_deleted_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events_deltas
        SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, topic, -count(*)
        FROM (SELECT tenant_id, topic, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                     date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day FROM gone) AS g
        GROUP BY GROUPING SETS ((hour, tenant_id), (day, tenant_id, topic));
    RETURN NULL;
END $$;

CREATE FUNCTION note_updated_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO events_deltas
        SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, topic, sum(sign)
        FROM (SELECT sign, tenant_id, topic, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                     date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day
              FROM (SELECT -1 AS sign, time, tenant_id, topic FROM gone
                    UNION ALL SELECT 1, time, tenant_id, topic FROM written) AS changed) AS c
        GROUP BY GROUPING SETS ((hour, tenant_id), (day, tenant_id, topic))
        HAVING sum(sign) <> 0;
    RETURN NULL;
END $$;

CREATE TRIGGER note_inserted AFTER INSERT ON events
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION note_inserted_events();
CREATE TRIGGER note_updated AFTER UPDATE ON events
    REFERENCING OLD TABLE AS gone NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION note_updated_events();
CREATE TRIGGER note_deleted AFTER DELETE ON events
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_events();

-- A month that appears on the map already archived was never written here.
CREATE FUNCTION note_event_rollup_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO event_rollup_gaps (month) VALUES (NEW.month) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_event_rollup_gap AFTER INSERT ON months
    FOR EACH ROW WHEN (NEW.parent = 'events' AND NEW.state IN ('cold', 'purged'))
    EXECUTE FUNCTION note_event_rollup_gap();

-- What a database holds already: rows that PostgreSQL still has are counted now, months that live in files alone are gaps
-- until somebody rebuilds.
INSERT INTO events_hourly
    SELECT date_bin('1 hour', time, '0001-01-01 00:00:00+00'), tenant_id, count(*) FROM events GROUP BY 1, 2;
INSERT INTO events_daily
    SELECT date_bin('1 day', time, '0001-01-01 00:00:00+00'), tenant_id, topic, count(*) FROM events GROUP BY 1, 2, 3;
INSERT INTO event_rollup_gaps (month)
    SELECT m.month FROM months m
    WHERE m.parent = 'events' AND m.state IN ('cold', 'purged') AND NOT EXISTS (
        SELECT FROM pg_inherits i
        WHERE i.inhrelid = to_regclass('events_' || to_char(m.month, 'YYYY_MM')) AND NOT i.inhdetachpending);
