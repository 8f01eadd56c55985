-- name: outcomes_of_events
-- The same as PostgreSQL's statement of this name, from one segment. The times of the events leave out most row groups; a
-- second around them forgives whoever cut off their fractions.
SELECT event_id, tenant_id, destination_id, bool_or(status = 'success')
FROM read_parquet(?) WHERE event_id IN (SELECT unnest(?))
  AND event_time >= make_timestamptz(? - 1000000) AND event_time <= make_timestamptz(? + 1000000)
GROUP BY event_id, tenant_id, destination_id

-- name: last_attempts
-- The newest attempt of every destination with each outcome, in an interval of one segment.
SELECT tenant_id, destination_id, status, epoch_us(max(time)) FROM read_parquet(?)
WHERE time >= make_timestamptz(?) AND time < make_timestamptz(?)
  AND (len(?) = 0 OR tenant_id IN (SELECT unnest(?))) AND (len(?) = 0 OR destination_id IN (SELECT unnest(?)))
GROUP BY ALL

-- name: tried_events
-- The same as PostgreSQL's statement of this name, from one segment.
INSERT INTO tried
SELECT tenant_id, event_id, epoch_us(event_time), destination_id, bool_or(status = 'success')
FROM read_parquet(?)
WHERE event_time >= make_timestamptz(?) AND event_time < make_timestamptz(?)
GROUP BY ALL

-- name: outcomes_of_range
-- Events by what became of them: every destination that was tried was reached, or not, or none was tried.
WITH each_destination AS (
    SELECT tenant_id, event_id, event_time, destination_id, bool_or(reached) AS reached FROM tried GROUP BY ALL
), each_event AS (
    SELECT tenant_id, event_id, event_time, bool_and(reached) AS everywhere FROM each_destination GROUP BY ALL
)
SELECT (p.time - ?) // ?, CASE WHEN e.event_id IS NULL THEN 1 WHEN e.everywhere THEN 2 ELSE 0 END, count(*)
FROM published p LEFT JOIN each_event e ON e.tenant_id = p.tenant_id AND e.event_id = p.id AND e.event_time = p.time
GROUP BY ALL

-- name: failure_groups
-- The same as PostgreSQL's statement of this name, from one segment.
WITH named AS (
    SELECT time, tenant_id, destination_id, code, response_data,
           CASE WHEN response_data->>'$.error' <> '' THEN 'error' WHEN response_data->>'$.message' <> '' THEN 'message'
                WHEN response_data->>'$.detail' <> '' THEN 'detail' WHEN response_data->>'$.body' <> '' THEN 'body'
           END AS field
    FROM read_parquet(?)
    WHERE status = 'failed' AND time >= make_timestamptz(?) AND time < make_timestamptz(?)
), placed AS (
    SELECT (epoch_us(time) - ?) // ? AS place, tenant_id, destination_id, code,
           CASE WHEN json_type(response_data, '$.' || field) = 'VARCHAR' THEN field END AS field,
           left(CASE WHEN field IS NOT NULL THEN response_data->>('$.' || field)
                     WHEN json_type(response_data) <> 'OBJECT' THEN response_data->>'$' END, 1000) AS text,
           count(*) AS failed, epoch_us(min(time)) AS first, epoch_us(max(time)) AS last
    FROM named GROUP BY ALL
)
SELECT tenant_id, destination_id, code, field, text, min(first), max(last), list(place), list(failed)
FROM placed GROUP BY ALL
ORDER BY sum(failed) DESC LIMIT ?
