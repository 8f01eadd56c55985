-- The roll-ups; what they are stands in migrations/006_rollups.sql (attempts), 009_event_rollups.sql, 011_days.sql
-- and 012_hours.sql.

-- name: fold
-- One statement: whoever reads sees every difference once, either still apart or already added. Sorted, so that two folds
-- cannot wait for each other.
WITH gone AS (
    DELETE FROM attempts_deltas RETURNING *
), hourly AS (
    INSERT INTO attempts_hourly AS there
        SELECT time, tenant_id, status, sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
        FROM gone WHERE NOT daily GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (time, tenant_id, status) DO UPDATE SET
            records = there.records + EXCLUDED.records, first_attempts = there.first_attempts + EXCLUDED.first_attempts,
            retries = there.retries + EXCLUDED.retries, manual_retries = there.manual_retries + EXCLUDED.manual_retries,
            numbers = there.numbers + EXCLUDED.numbers
), by_hour AS (
    INSERT INTO attempts_by_hour AS there
        SELECT time, status, sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
        FROM gone WHERE NOT daily GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (time, status) DO UPDATE SET
            records = there.records + EXCLUDED.records, first_attempts = there.first_attempts + EXCLUDED.first_attempts,
            retries = there.retries + EXCLUDED.retries, manual_retries = there.manual_retries + EXCLUDED.manual_retries,
            numbers = there.numbers + EXCLUDED.numbers
), daily AS (
    INSERT INTO attempts_daily AS there
        SELECT time, tenant_id, destination_id, topic, status, code,
               sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
        FROM gone WHERE daily GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (time, tenant_id, destination_id, topic, status, code) DO UPDATE SET
            records = there.records + EXCLUDED.records, first_attempts = there.first_attempts + EXCLUDED.first_attempts,
            retries = there.retries + EXCLUDED.retries, manual_retries = there.manual_retries + EXCLUDED.manual_retries,
            numbers = there.numbers + EXCLUDED.numbers
), by_destination AS (
    INSERT INTO attempts_by_destination AS there
        SELECT time, tenant_id, destination_id, status, code,
               sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
        FROM gone WHERE daily GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
        ON CONFLICT (time, tenant_id, destination_id, status, code) DO UPDATE SET
            records = there.records + EXCLUDED.records, first_attempts = there.first_attempts + EXCLUDED.first_attempts,
            retries = there.retries + EXCLUDED.retries, manual_retries = there.manual_retries + EXCLUDED.manual_retries,
            numbers = there.numbers + EXCLUDED.numbers
), by_topic AS (
    INSERT INTO attempts_by_topic AS there
        SELECT time, topic, status, code, sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
        FROM gone WHERE daily GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
        ON CONFLICT (time, topic, status, code) DO UPDATE SET
            records = there.records + EXCLUDED.records, first_attempts = there.first_attempts + EXCLUDED.first_attempts,
            retries = there.retries + EXCLUDED.retries, manual_retries = there.manual_retries + EXCLUDED.manual_retries,
            numbers = there.numbers + EXCLUDED.numbers
), gone_events AS (
    DELETE FROM events_deltas RETURNING *
), hourly_events AS (
    INSERT INTO events_hourly AS there
        SELECT time, tenant_id, sum(records) FROM gone_events WHERE NOT daily GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (time, tenant_id) DO UPDATE SET records = there.records + EXCLUDED.records
), events_by_hour AS (
    INSERT INTO events_by_hour AS there
        SELECT time, sum(records) FROM gone_events WHERE NOT daily GROUP BY 1 ORDER BY 1
        ON CONFLICT (time) DO UPDATE SET records = there.records + EXCLUDED.records
), daily_events AS (
    INSERT INTO events_daily AS there
        SELECT time, tenant_id, topic, sum(records) FROM gone_events WHERE daily GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (time, tenant_id, topic) DO UPDATE SET records = there.records + EXCLUDED.records
), events_by_topic AS (
    INSERT INTO events_by_topic AS there
        SELECT time, topic, sum(records) FROM gone_events WHERE daily GROUP BY 1, 2 ORDER BY 1, 2
        ON CONFLICT (time, topic) DO UPDATE SET records = there.records + EXCLUDED.records
)
SELECT (SELECT count(*) FROM gone) + (SELECT count(*) FROM gone_events)

-- name: differences_attempts
-- The differences of rows that no trigger saw, inside an interval, as attempts_deltas has them.
    SELECT grouping(hour) = 1 AS daily, coalesce(hour, day) AS time, tenant_id, destination_id, topic, status, code,
           count(*) AS records, count(*) FILTER (WHERE attempt_number = 1 AND NOT manual) AS first_attempts,
           count(*) FILTER (WHERE attempt_number > 1) AS retries, count(*) FILTER (WHERE manual) AS manual_retries,
           sum(attempt_number) AS numbers
    FROM (SELECT *, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                 date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day
          FROM {table} WHERE time >= %(lower)s AND time < %(upper)s) AS w
    GROUP BY GROUPING SETS ((hour, tenant_id, status), (day, tenant_id, destination_id, topic, status, code))

-- name: differences_events
    SELECT grouping(hour) = 1 AS daily, coalesce(hour, day) AS time, tenant_id, topic, count(*) AS records
    FROM (SELECT tenant_id, topic, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                 date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day
          FROM {table} WHERE time >= %(lower)s AND time < %(upper)s) AS w
    GROUP BY GROUPING SETS ((hour, tenant_id), (day, tenant_id, topic))

-- name: add_attempts_deltas
INSERT INTO attempts_deltas
    SELECT * FROM unnest(%s::boolean[], %s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                         %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])

-- name: add_events_deltas
INSERT INTO events_deltas SELECT * FROM unnest(%s::boolean[], %s::timestamptz[], %s::text[], %s::text[], %s::bigint[])

-- name: has_gap_attempts
-- Months whose first day lies before the end and whose last lies not before the start.
SELECT EXISTS (SELECT FROM rollup_gaps WHERE month < %(end)s::timestamptz AT TIME ZONE 'UTC'
               AND month + interval '1 month' > %(start)s::timestamptz AT TIME ZONE 'UTC')

-- name: has_gap_events
SELECT EXISTS (SELECT FROM event_rollup_gaps WHERE month < %(end)s::timestamptz AT TIME ZONE 'UTC'
               AND month + interval '1 month' > %(start)s::timestamptz AT TIME ZONE 'UTC')

-- name: lock_writers
-- No record is written, no month moves or is retired, and nobody folds until the transaction ends; everybody reads on.
-- Writers take these in this order as well.
LOCK TABLE events, attempts, months, segments, attempts_deltas, events_deltas IN SHARE ROW EXCLUSIVE MODE

-- name: forget_attempts
WITH hourly AS (DELETE FROM attempts_hourly WHERE time >= %(lower)s AND time < %(upper)s),
     by_hour AS (DELETE FROM attempts_by_hour WHERE time >= %(lower)s AND time < %(upper)s),
     daily AS (DELETE FROM attempts_daily WHERE time >= %(lower)s AND time < %(upper)s),
     by_destination AS (DELETE FROM attempts_by_destination WHERE time >= %(lower)s AND time < %(upper)s),
     by_topic AS (DELETE FROM attempts_by_topic WHERE time >= %(lower)s AND time < %(upper)s),
     deltas AS (DELETE FROM attempts_deltas WHERE time >= %(lower)s AND time < %(upper)s)
DELETE FROM rollup_gaps WHERE month >= %(lower)s::timestamptz AT TIME ZONE 'UTC'
    AND month < %(upper)s::timestamptz AT TIME ZONE 'UTC'

-- name: forget_events
WITH hourly AS (DELETE FROM events_hourly WHERE time >= %(lower)s AND time < %(upper)s),
     by_hour AS (DELETE FROM events_by_hour WHERE time >= %(lower)s AND time < %(upper)s),
     daily AS (DELETE FROM events_daily WHERE time >= %(lower)s AND time < %(upper)s),
     by_topic AS (DELETE FROM events_by_topic WHERE time >= %(lower)s AND time < %(upper)s),
     deltas AS (DELETE FROM events_deltas WHERE time >= %(lower)s AND time < %(upper)s)
DELETE FROM event_rollup_gaps WHERE month >= %(lower)s::timestamptz AT TIME ZONE 'UTC'
    AND month < %(upper)s::timestamptz AT TIME ZONE 'UTC'

-- name: note_gap_attempts
INSERT INTO rollup_gaps (month) VALUES (%(month)s) ON CONFLICT DO NOTHING

-- name: note_gap_events
INSERT INTO event_rollup_gaps (month) VALUES (%(month)s) ON CONFLICT DO NOTHING
