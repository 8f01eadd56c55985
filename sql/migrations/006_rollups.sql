-- Roll-ups of attempts: by hour, tenant and status; by day, tenant, destination, topic, status and code. What is counted adds
-- up, so a change is a row of differences: every statement that writes attempts appends what it changed, in its own
-- transaction, and never waits for another writer. Folding moves the differences into the two tables; a reader adds what is
-- not folded yet, in one statement and so of one moment.

CREATE TABLE attempts_hourly (
    time           timestamptz      NOT NULL,
    tenant_id      text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    records        bigint           NOT NULL,
    first_attempts bigint           NOT NULL,
    retries        bigint           NOT NULL,
    manual_retries bigint           NOT NULL,
    numbers        numeric          NOT NULL,  -- sum of attempt_number
    PRIMARY KEY (time, tenant_id, status)
);

CREATE TABLE attempts_daily (
    time           timestamptz      NOT NULL,
    tenant_id      text COLLATE "C" NOT NULL,
    destination_id text COLLATE "C" NOT NULL,
    topic          text COLLATE "C" NOT NULL,
    status         text COLLATE "C" NOT NULL,
    code           text COLLATE "C",
    records        bigint           NOT NULL,
    first_attempts bigint           NOT NULL,
    retries        bigint           NOT NULL,
    manual_retries bigint           NOT NULL,
    numbers        numeric          NOT NULL,
    UNIQUE NULLS NOT DISTINCT (time, tenant_id, destination_id, topic, status, code)
);

-- Not folded yet. A row belongs to one of the two tables; what an hourly row does not tell apart is NULL.
CREATE TABLE attempts_deltas (
    daily          boolean          NOT NULL,
    time           timestamptz      NOT NULL,
    tenant_id      text COLLATE "C" NOT NULL,
    destination_id text COLLATE "C",
    topic          text COLLATE "C",
    status         text COLLATE "C" NOT NULL,
    code           text COLLATE "C",
    records        bigint           NOT NULL,
    first_attempts bigint           NOT NULL,
    retries        bigint           NOT NULL,
    manual_retries bigint           NOT NULL,
    numbers        numeric          NOT NULL
);

-- Months whose rows came without their differences, as when the catalog is rebuilt from files. A question that touches one is
-- answered from the records; logstore.metrics.rebuild fills it.
CREATE TABLE rollup_gaps (
    month date PRIMARY KEY
);

-- What rows add to (or, with -1, take from) both roll-ups. date_bin and not date_trunc: no session's zone is asked. It counts
-- from year 1, because before its origin date_bin of older versions is wrong.
CREATE FUNCTION note_inserted_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attempts_deltas
        SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, destination_id, topic, status, code,
               count(*), count(*) FILTER (WHERE attempt_number = 1 AND NOT manual),
               count(*) FILTER (WHERE attempt_number > 1), count(*) FILTER (WHERE manual), sum(attempt_number)
        FROM (SELECT *, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                     date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day FROM written) AS w
        GROUP BY GROUPING SETS ((hour, tenant_id, status), (day, tenant_id, destination_id, topic, status, code));
    RETURN NULL;
END $$;

CREATE FUNCTION note_deleted_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attempts_deltas
        SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, destination_id, topic, status, code,
               -count(*), -count(*) FILTER (WHERE attempt_number = 1 AND NOT manual),
               -count(*) FILTER (WHERE attempt_number > 1), -count(*) FILTER (WHERE manual), -sum(attempt_number)
        FROM (SELECT *, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                     date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day FROM gone) AS g
        GROUP BY GROUPING SETS ((hour, tenant_id, status), (day, tenant_id, destination_id, topic, status, code));
    RETURN NULL;
END $$;

-- Mostly a row goes from one status to another; what a statement leaves as it was adds up to nothing and is not written.
CREATE FUNCTION note_updated_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO attempts_deltas
        SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, destination_id, topic, status, code,
               sum(sign), coalesce(sum(sign) FILTER (WHERE attempt_number = 1 AND NOT manual), 0),
               coalesce(sum(sign) FILTER (WHERE attempt_number > 1), 0), coalesce(sum(sign) FILTER (WHERE manual), 0),
               sum(sign * attempt_number::bigint)
        FROM (SELECT *, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                     date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day
              FROM (SELECT -1 AS sign, time, tenant_id, destination_id, topic, status, code, attempt_number, manual
                    FROM gone
                    UNION ALL
                    SELECT 1, time, tenant_id, destination_id, topic, status, code, attempt_number, manual
                    FROM written) AS changed) AS c
        GROUP BY GROUPING SETS ((hour, tenant_id, status), (day, tenant_id, destination_id, topic, status, code))
        HAVING (sum(sign), coalesce(sum(sign) FILTER (WHERE attempt_number = 1 AND NOT manual), 0),
                coalesce(sum(sign) FILTER (WHERE attempt_number > 1), 0), coalesce(sum(sign) FILTER (WHERE manual), 0),
                sum(sign * attempt_number::bigint)) <> (0, 0, 0, 0, 0);
    RETURN NULL;
END $$;

CREATE TRIGGER note_inserted AFTER INSERT ON attempts
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION note_inserted_attempts();
CREATE TRIGGER note_updated AFTER UPDATE ON attempts
    REFERENCING OLD TABLE AS gone NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION note_updated_attempts();
CREATE TRIGGER note_deleted AFTER DELETE ON attempts
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_attempts();

-- A month that appears on the map already archived was never written here.
CREATE FUNCTION note_rollup_gap() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rollup_gaps (month) VALUES (NEW.month) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_rollup_gap AFTER INSERT ON months
    FOR EACH ROW WHEN (NEW.parent = 'attempts' AND NEW.state IN ('cold', 'purged')) EXECUTE FUNCTION note_rollup_gap();

-- What a database holds already: rows that PostgreSQL still has are counted now (the triggers above keep writers out until the
-- migration is done), months that live in files alone are gaps until somebody rebuilds.
INSERT INTO attempts_hourly
    SELECT date_bin('1 hour', time, '0001-01-01 00:00:00+00'), tenant_id, status,
           count(*), count(*) FILTER (WHERE attempt_number = 1 AND NOT manual),
           count(*) FILTER (WHERE attempt_number > 1), count(*) FILTER (WHERE manual), sum(attempt_number)
    FROM attempts GROUP BY 1, 2, 3;
INSERT INTO attempts_daily
    SELECT date_bin('1 day', time, '0001-01-01 00:00:00+00'), tenant_id, destination_id, topic, status, code,
           count(*), count(*) FILTER (WHERE attempt_number = 1 AND NOT manual),
           count(*) FILTER (WHERE attempt_number > 1), count(*) FILTER (WHERE manual), sum(attempt_number)
    FROM attempts GROUP BY 1, 2, 3, 4, 5, 6;
INSERT INTO rollup_gaps (month)
    SELECT m.month FROM months m
    WHERE m.parent = 'attempts' AND m.state IN ('cold', 'purged') AND NOT EXISTS (
        SELECT FROM pg_inherits i
        WHERE i.inhrelid = to_regclass('attempts_' || to_char(m.month, 'YYYY_MM')) AND NOT i.inhdetachpending);
