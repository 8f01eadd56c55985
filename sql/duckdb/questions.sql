-- What delivery people ask. Each has a title for people and its parameters: name, kind, and a default where there is one;
-- `since` is inclusive and defaults to the beginning, `until` is exclusive and defaults to the end.
-- A delivery is one event going to one destination. Days and hours are UTC. The benchmark runs the same text on PostgreSQL.

-- name: success_rate
-- title: How often does delivery succeed, by destination and day?
-- takes: since time, until time, tenant text, limit integer 1000
SELECT tenant_id, destination_id, time::date AS day, count(*) AS attempts,
       count(*) FILTER (WHERE status = 'success') AS successes,
       count(*) FILTER (WHERE status = 'success')::double precision / count(*) AS success_rate
FROM attempts
WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant)
GROUP BY 1, 2, 3
ORDER BY 3 DESC, 1, 2
LIMIT $limit

-- name: attempts_to_success
-- title: How many attempts does a delivery need until it succeeds?
-- takes: since time, until time, tenant text
-- An empty number stands for the deliveries that have not succeeded.
WITH deliveries AS (
    SELECT tenant_id, event_id, destination_id, min(attempt_number) FILTER (WHERE status = 'success') AS needed
    FROM attempts
    WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant)
    GROUP BY 1, 2, 3
)
SELECT needed AS attempts, count(*) AS deliveries, count(*)::double precision / sum(count(*)) OVER () AS share
FROM deliveries
GROUP BY 1
ORDER BY 1 NULLS LAST

-- name: time_to_first_attempt
-- title: How many seconds pass from an event to its first attempt, by topic?
-- takes: since time, until time, tenant text, limit integer 100
WITH deliveries AS (
    SELECT topic, tenant_id, event_id, destination_id, extract(epoch FROM min(time) - min(event_time)) AS seconds
    FROM attempts
    WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant)
    GROUP BY 1, 2, 3, 4
)
SELECT topic, count(*) AS deliveries,
       percentile_cont(0.50) WITHIN GROUP (ORDER BY seconds) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY seconds) AS p99
FROM deliveries
GROUP BY 1
ORDER BY p95 DESC, 1
LIMIT $limit

-- name: time_to_success
-- title: How many seconds pass from an event to its successful delivery, by topic?
-- takes: since time, until time, tenant text, limit integer 100
WITH deliveries AS (
    SELECT topic, tenant_id, event_id, destination_id, extract(epoch FROM min(time) - min(event_time)) AS seconds
    FROM attempts
    WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant) AND status = 'success'
    GROUP BY 1, 2, 3, 4
)
SELECT topic, count(*) AS deliveries,
       percentile_cont(0.50) WITHIN GROUP (ORDER BY seconds) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY seconds) AS p95,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY seconds) AS p99
FROM deliveries
GROUP BY 1
ORDER BY p95 DESC, 1
LIMIT $limit

-- name: failure_groups
-- title: Which failures are there, by destination and code, and since when?
-- takes: since time, until time, tenant text, limit integer 100
SELECT tenant_id, destination_id, code, count(*) AS failures, min(time) AS first_seen, max(time) AS last_seen
FROM attempts
WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant) AND status = 'failed'
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
WHERE time >= $since AND time < $until
GROUP BY 1
ORDER BY attempts DESC, 1
LIMIT $limit

-- name: retry_storms
-- title: When was a destination retried unusually often, in windows of some minutes?
-- takes: since time, until time, tenant text, minutes integer 5, least integer 20, limit integer 100
SELECT tenant_id, destination_id,
       to_timestamp(floor(extract(epoch FROM time) / ($minutes * 60)) * ($minutes * 60)) AS window_start,
       count(*) AS retries, count(DISTINCT event_id) AS events,
       count(*) FILTER (WHERE status = 'failed') AS failures
FROM attempts
WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant) AND attempt_number > 1
GROUP BY 1, 2, 3
HAVING count(*) >= $least
ORDER BY retries DESC, 3, 1, 2
LIMIT $limit

-- name: payload_size
-- title: How large are the payloads of events, in bytes, by topic?
-- takes: since time, until time, tenant text, limit integer 100
SELECT topic, count(*) AS events, sum(strlen(data))::bigint AS bytes,
       percentile_cont(0.50) WITHIN GROUP (ORDER BY strlen(data)) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY strlen(data)) AS p95,
       max(strlen(data)) AS largest
FROM events
WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant)
GROUP BY 1
ORDER BY bytes DESC, 1
LIMIT $limit

-- name: never_attempted
-- title: Which events were never attempted?
-- takes: since time, until time, tenant text, limit integer 100
-- The range is of the events; an attempt at any time counts.
SELECT e.time, e.id, e.tenant_id, e.topic
FROM events e
WHERE e.time >= $since AND e.time < $until AND ($tenant::text IS NULL OR e.tenant_id = $tenant)
  AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.event_id = e.id AND a.tenant_id = e.tenant_id)
ORDER BY e.time DESC, e.id DESC
LIMIT $limit

-- name: never_succeeded
-- title: Which deliveries were eligible for retry but never succeeded?
-- takes: since time, until time, tenant text, limit integer 100
SELECT tenant_id, event_id, destination_id, count(*) AS attempts, min(time) AS first_attempt, max(time) AS last_attempt
FROM attempts
WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant)
GROUP BY 1, 2, 3
HAVING count(*) FILTER (WHERE status = 'success') = 0 AND bool_and(eligible_for_retry)
ORDER BY last_attempt DESC, 1, 2, 3
LIMIT $limit

-- name: slowest_destinations
-- title: Which destinations take the longest from event to successful delivery?
-- takes: since time, until time, tenant text, least integer 10, limit integer 20
-- Destinations with fewer than `least` successes are left out: their percentiles say nothing.
SELECT tenant_id, destination_id, count(*) AS successes,
       avg(extract(epoch FROM time - event_time))::double precision AS mean,
       percentile_cont(0.50) WITHIN GROUP (ORDER BY extract(epoch FROM time - event_time)) AS p50,
       percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM time - event_time)) AS p95
FROM attempts
WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant) AND status = 'success'
GROUP BY 1, 2
HAVING count(*) >= $least
ORDER BY p95 DESC, 1, 2
LIMIT $limit

-- name: day_over_day
-- title: How do attempts and failures change from day to day?
-- takes: since time, until time, tenant text, limit integer 100
-- The change is relative to the last day before that has attempts.
WITH days AS (
    SELECT time::date AS day, count(*) AS attempts, count(*) FILTER (WHERE status = 'failed') AS failures
    FROM attempts
    WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant)
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
    WHERE time >= $since AND time < $until AND ($tenant::text IS NULL OR tenant_id = $tenant)
    GROUP BY 1, 2
)
SELECT a.tenant_id, a.destination_id, s.last_success, min(a.time) AS failing_since, max(a.time) AS last_failure,
       count(*) AS failures
FROM attempts a
JOIN successes s ON s.tenant_id = a.tenant_id AND s.destination_id = a.destination_id
WHERE a.time >= $since AND a.time < $until AND ($tenant::text IS NULL OR a.tenant_id = $tenant) AND a.status = 'failed'
  AND (s.last_success IS NULL OR a.time > s.last_success)
GROUP BY 1, 2, 3
ORDER BY failures DESC, 1, 2
LIMIT $limit
