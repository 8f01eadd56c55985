-- What delivery people ask. Each has a title for people and its parameters: name, kind, and a default where there is one.
-- `since` is inclusive, `until` exclusive. A parameter that is not given is NULL; DuckDB knows that when it plans, so its
-- condition, and the reading of its column, disappear.
-- A delivery is one event going to one destination. Days are UTC. make_date(…) of whole days since the year 1 stands for
-- `time::date`, and epoch_us for subtraction: DuckDB would ask its calendar for every row, which takes five times as long.
-- A division rounds towards zero, so what is divided must not be negative.

-- name: success_rate
-- title: How often does delivery succeed, by destination and day?
-- takes: since time, until time, tenant text, limit integer 1000
SELECT tenant_id, destination_id, make_date(((epoch_us(time) + 62135596800000000) // 86400000000)::int - 719162) AS day, count(*) AS attempts,
       count(*) FILTER (WHERE status = 'success') AS successes,
       count(*) FILTER (WHERE status = 'success')::double precision / count(*) AS success_rate
FROM attempts
WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
  AND ($tenant::text IS NULL OR tenant_id = $tenant)
GROUP BY 1, 2, 3
ORDER BY 3 DESC, 1, 2
LIMIT $limit

-- name: attempts_to_success
-- title: How many attempts did the deliveries need that succeeded?
-- takes: since time, until time, tenant text
-- Without what people sent again by hand: a delivery succeeds by itself at most once, so each counts once.
SELECT attempt_number AS attempts, count(*) AS deliveries,
       count(*)::double precision / sum(count(*)) OVER () AS share,
       sum(count(*)) OVER (ORDER BY attempt_number)::double precision / sum(count(*)) OVER () AS share_so_far
FROM attempts
WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
  AND ($tenant::text IS NULL OR tenant_id = $tenant)
  AND status = 'success' AND NOT manual
GROUP BY 1
ORDER BY 1

-- name: time_to_first_attempt
-- title: How many seconds pass from an event to its first attempt, by topic?
-- takes: since time, until time, tenant text, limit integer 100
-- By its number and not by its time, so that the first is the first also when the range cuts a delivery in two.
WITH waits AS (
    SELECT topic, epoch_us(time) - epoch_us(event_time) AS micros
    FROM attempts
    WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
      AND ($tenant::text IS NULL OR tenant_id = $tenant)
      AND attempt_number <= 1 AND NOT manual
), found AS (
    SELECT topic, count(*) AS deliveries, quantile_cont(micros, [0.50, 0.95, 0.99]) AS p
    FROM waits
    GROUP BY 1
)
SELECT topic, deliveries, p[1] / 1e6 AS p50, p[2] / 1e6 AS p95, p[3] / 1e6 AS p99
FROM found
ORDER BY p95 DESC, 1
LIMIT $limit

-- name: time_to_success
-- title: How many seconds pass from an event to its successful delivery, by topic?
-- takes: since time, until time, tenant text, limit integer 100
WITH waits AS (
    SELECT topic, epoch_us(time) - epoch_us(event_time) AS micros
    FROM attempts
    WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
      AND ($tenant::text IS NULL OR tenant_id = $tenant)
      AND status = 'success' AND NOT manual
), found AS (
    SELECT topic, count(*) AS deliveries, quantile_cont(micros, [0.50, 0.95, 0.99]) AS p
    FROM waits
    GROUP BY 1
)
SELECT topic, deliveries, p[1] / 1e6 AS p50, p[2] / 1e6 AS p95, p[3] / 1e6 AS p99
FROM found
ORDER BY p95 DESC, 1
LIMIT $limit

-- name: failure_groups
-- title: Which failures are there, by destination and code, and since when?
-- takes: since time, until time, tenant text, limit integer 100
SELECT tenant_id, destination_id, code, count(*) AS failures, min(time) AS first_seen, max(time) AS last_seen
FROM attempts
WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
  AND ($tenant::text IS NULL OR tenant_id = $tenant) AND status = 'failed'
GROUP BY 1, 2, 3
ORDER BY failures DESC, 1, 2, 3 NULLS LAST
LIMIT $limit

-- name: noisiest_tenants
-- title: Which tenants cause the most attempts?
-- takes: since time, until time, limit integer 20
SELECT tenant_id, count(*) AS attempts, count(*) FILTER (WHERE status = 'failed') AS failures,
       count(*) FILTER (WHERE attempt_number > 1) AS retries,
       count(*)::double precision / sum(count(*)) OVER () AS share
FROM attempts
WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
GROUP BY 1
ORDER BY attempts DESC, 1
LIMIT $limit

-- name: retry_storms
-- title: When was a destination retried unusually often, in windows of some minutes?
-- takes: since time, until time, tenant text, minutes integer 5, least integer 20, limit integer 100
-- Whole microseconds take half the time of seconds with a fraction. Windows are counted from 1970, to both sides.
WITH windows AS (
    SELECT tenant_id, destination_id, count(*) AS retries, count(*) FILTER (WHERE status = 'failed') AS failures,
           epoch_us(time) - (epoch_us(time) % width + width) % width AS micros
    FROM attempts, (SELECT $minutes::bigint * 60000000 AS width) AS asked
    WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
      AND ($tenant::text IS NULL OR tenant_id = $tenant) AND attempt_number > 1
    GROUP BY tenant_id, destination_id, micros
    HAVING count(*) >= $least
)
SELECT tenant_id, destination_id, make_timestamptz(micros) AS window_start, retries, failures
FROM windows
ORDER BY retries DESC, 3, 1, 2
LIMIT $limit

-- name: payload_size
-- title: How large are the payloads of events, in bytes, by topic?
-- takes: since time, until time, tenant text, limit integer 100
WITH sizes AS (
    SELECT topic, strlen(data) AS size
    FROM events
    WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
      AND ($tenant::text IS NULL OR tenant_id = $tenant)
), found AS (
    SELECT topic, count(*) AS events, sum(size)::bigint AS bytes, quantile_cont(size, [0.50, 0.95]) AS p,
           max(size) AS largest
    FROM sizes
    GROUP BY 1
)
SELECT topic, events, bytes, p[1] AS p50, p[2] AS p95, largest
FROM found
ORDER BY bytes DESC, 1
LIMIT $limit

-- name: never_attempted
-- title: How many events were never attempted, by tenant and topic, and since when?
-- takes: since time, until time, tenant text, limit integer 100
-- The range is of the events; an attempt at any time counts. The example is an id to look at.
SELECT e.tenant_id, e.topic, count(*) AS events, min(e.time) AS first_event, max(e.time) AS last_event, min(e.id) AS example
FROM events e
WHERE ($since::timestamptz IS NULL OR e.time >= $since) AND ($until::timestamptz IS NULL OR e.time < $until)
  AND ($tenant::text IS NULL OR e.tenant_id = $tenant)
  AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.event_id = e.id AND a.tenant_id = e.tenant_id)
GROUP BY 1, 2
ORDER BY events DESC, 1, 2
LIMIT $limit

-- name: never_succeeded
-- title: Which deliveries were eligible for retry but never succeeded?
-- takes: since time, until time, tenant text, limit integer 100
-- The range is of the failures; a success at any time counts.
SELECT a.tenant_id, a.event_id, a.destination_id, count(*) AS failures, min(a.time) AS first_failure,
       max(a.time) AS last_failure
FROM attempts a
WHERE ($since::timestamptz IS NULL OR a.time >= $since) AND ($until::timestamptz IS NULL OR a.time < $until)
  AND ($tenant::text IS NULL OR a.tenant_id = $tenant)
  AND a.status = 'failed' AND a.eligible_for_retry
  AND NOT EXISTS (SELECT 1 FROM attempts s WHERE s.status = 'success' AND s.event_id = a.event_id
                  AND s.destination_id = a.destination_id AND s.tenant_id = a.tenant_id)
GROUP BY 1, 2, 3
ORDER BY last_failure DESC, 1, 2, 3
LIMIT $limit

-- name: slowest_destinations
-- title: Which destinations take the longest from event to successful delivery, in seconds?
-- takes: since time, until time, tenant text, least integer 10, limit integer 20
-- Destinations with fewer than `least` successes are left out: their percentiles say nothing.
WITH waits AS (
    SELECT tenant_id, destination_id, epoch_us(time) - epoch_us(event_time) AS micros
    FROM attempts
    WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
      AND ($tenant::text IS NULL OR tenant_id = $tenant)
      AND status = 'success' AND NOT manual
), found AS (
    SELECT tenant_id, destination_id, count(*) AS successes, avg(micros) / 1e6 AS mean,
           quantile_cont(micros, [0.50, 0.95]) AS p
    FROM waits
    GROUP BY 1, 2
    HAVING count(*) >= $least
)
SELECT tenant_id, destination_id, successes, mean, p[1] / 1e6 AS p50, p[2] / 1e6 AS p95
FROM found
ORDER BY p95 DESC, 1, 2
LIMIT $limit

-- name: day_over_day
-- title: How do attempts and failures change from day to day?
-- takes: since time, until time, tenant text, limit integer 100
-- The change is relative to the last day before that has attempts.
WITH days AS (
    SELECT make_date(((epoch_us(time) + 62135596800000000) // 86400000000)::int - 719162) AS day, count(*) AS attempts,
           count(*) FILTER (WHERE status = 'failed') AS failures
    FROM attempts
    WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
      AND ($tenant::text IS NULL OR tenant_id = $tenant)
    GROUP BY 1
)
SELECT day, attempts, attempts - lag(attempts) OVER (ORDER BY day) AS attempts_change,
       attempts::double precision / lag(attempts) OVER (ORDER BY day) - 1 AS attempts_growth,
       failures, failures - lag(failures) OVER (ORDER BY day) AS failures_change
FROM days
ORDER BY day DESC
LIMIT $limit

-- name: failing_destinations
-- title: Which destinations fail right now, since when, and how often since their last success?
-- takes: since time, until time, tenant text, limit integer 100
WITH successes AS (
    SELECT tenant_id, destination_id, max(time) FILTER (WHERE status = 'success') AS last_success
    FROM attempts
    WHERE ($since::timestamptz IS NULL OR time >= $since) AND ($until::timestamptz IS NULL OR time < $until)
      AND ($tenant::text IS NULL OR tenant_id = $tenant)
    GROUP BY 1, 2
)
SELECT a.tenant_id, a.destination_id, s.last_success, min(a.time) AS failing_since, max(a.time) AS last_failure,
       count(*) AS failures
FROM attempts a
JOIN successes s ON s.tenant_id = a.tenant_id AND s.destination_id = a.destination_id
WHERE ($since::timestamptz IS NULL OR a.time >= $since) AND ($until::timestamptz IS NULL OR a.time < $until)
  AND ($tenant::text IS NULL OR a.tenant_id = $tenant) AND a.status = 'failed'
  AND (s.last_success IS NULL OR a.time > s.last_success)
GROUP BY 1, 2, 3
ORDER BY failures DESC, 1, 2
LIMIT $limit
