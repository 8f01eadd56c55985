-- name: outcomes_of_events
-- The same as PostgreSQL's statement of this name, from one segment.
SELECT event_id, tenant_id, destination_id, bool_or(status = 'success')
FROM read_parquet(?) WHERE event_id IN (SELECT unnest(?))
GROUP BY event_id, tenant_id, destination_id

-- name: last_attempt
-- The newest attempt of a destination with one outcome in an interval of one segment.
SELECT epoch_us(max(time)) FROM read_parquet(?)
WHERE tenant_id = ? AND destination_id = ? AND status = ? AND time >= make_timestamptz(?) AND time < make_timestamptz(?)
  AND (len(?) = 0 OR topic IN (SELECT unnest(?)))

-- name: tried_events
-- The same as PostgreSQL's statement of this name, from one segment.
INSERT INTO tried
SELECT tenant_id, event_id, epoch_us(event_time), destination_id, bool_or(status = 'success')
FROM read_parquet(?)
WHERE event_time >= make_timestamptz(?) AND event_time < make_timestamptz(?)
GROUP BY ALL

-- name: fates
-- Events by what became of them: every destination that was tried was reached, or not, or none was tried.
WITH each_destination AS (
    SELECT tenant_id, event_id, event_time, destination_id, bool_or(reached) AS reached FROM tried GROUP BY ALL
), fates AS (
    SELECT tenant_id, event_id, event_time, bool_and(reached) AS everywhere FROM each_destination GROUP BY ALL
)
SELECT (p.time - ?) // ?, CASE WHEN f.event_id IS NULL THEN 1 WHEN f.everywhere THEN 2 ELSE 0 END, count(*)
FROM published p LEFT JOIN fates f ON f.tenant_id = p.tenant_id AND f.event_id = p.id AND f.event_time = p.time
GROUP BY ALL

-- name: failure_groups
-- The same as PostgreSQL's statement of this name, from one segment.
SELECT (epoch_us(time) - ?) // ?, tenant_id, destination_id, code,
       left(coalesce(nullif(response_data->>'$.error', ''), nullif(response_data->>'$.message', ''),
                     nullif(response_data->>'$.detail', ''), nullif(response_data->>'$.body', ''),
                     CASE WHEN json_type(response_data) <> 'OBJECT' THEN response_data->>'$' END), 1000),
       count(*), epoch_us(min(time)), epoch_us(max(time))
FROM read_parquet(?)
WHERE status = 'failed' AND time >= make_timestamptz(?) AND time < make_timestamptz(?)
GROUP BY ALL
ORDER BY 6 DESC LIMIT 5000
