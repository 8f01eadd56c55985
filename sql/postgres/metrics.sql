-- The roll-ups of attempts; what they are stands in migrations/006_rollups.sql.

-- name: fold
-- One statement: whoever reads sees every difference once, either still apart or already added. Sorted, so that a fold and a
-- load that adds a month cannot wait for each other.
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
), daily AS (
    INSERT INTO attempts_daily AS there
        SELECT time, tenant_id, destination_id, topic, status, code,
               sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
        FROM gone WHERE daily GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6
        ON CONFLICT (time, tenant_id, destination_id, topic, status, code) DO UPDATE SET
            records = there.records + EXCLUDED.records, first_attempts = there.first_attempts + EXCLUDED.first_attempts,
            retries = there.retries + EXCLUDED.retries, manual_retries = there.manual_retries + EXCLUDED.manual_retries,
            numbers = there.numbers + EXCLUDED.numbers
)
SELECT count(*) FROM gone

-- name: add_rows
-- The differences of rows that no trigger saw, inside an interval.
INSERT INTO attempts_deltas
    SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, destination_id, topic, status, code,
           count(*), count(*) FILTER (WHERE attempt_number = 1 AND NOT manual),
           count(*) FILTER (WHERE attempt_number > 1), count(*) FILTER (WHERE manual), sum(attempt_number)
    FROM (SELECT *, date_bin('1 hour', time, '0001-01-01 00:00:00+00') AS hour,
                 date_bin('1 day', time, '0001-01-01 00:00:00+00') AS day
          FROM {table} WHERE time >= %(lower)s AND time < %(upper)s) AS w
    GROUP BY GROUPING SETS ((hour, tenant_id, status), (day, tenant_id, destination_id, topic, status, code))

-- name: add_deltas
INSERT INTO attempts_deltas
    SELECT * FROM unnest(%s::boolean[], %s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
                         %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bigint[])

-- name: has_gap
-- Months whose first day lies before the end and whose last lies not before the start.
SELECT EXISTS (SELECT FROM rollup_gaps WHERE month < %(end)s::timestamptz AT TIME ZONE 'UTC'
               AND month + interval '1 month' > %(start)s::timestamptz AT TIME ZONE 'UTC')

-- name: lock_writers
-- No attempt is written and no month moves until the transaction ends; everybody reads on.
LOCK TABLE attempts, months IN SHARE ROW EXCLUSIVE MODE

-- name: forget_hourly
DELETE FROM attempts_hourly WHERE time >= %(lower)s AND time < %(upper)s

-- name: forget_daily
DELETE FROM attempts_daily WHERE time >= %(lower)s AND time < %(upper)s

-- name: forget_deltas
DELETE FROM attempts_deltas WHERE time >= %(lower)s AND time < %(upper)s

-- name: forget_gap
DELETE FROM rollup_gaps WHERE month >= %(lower)s::timestamptz AT TIME ZONE 'UTC'
    AND month < %(upper)s::timestamptz AT TIME ZONE 'UTC'

-- name: note_gap
INSERT INTO rollup_gaps (month) VALUES (%(month)s) ON CONFLICT DO NOTHING
