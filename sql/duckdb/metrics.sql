-- name: deltas_of_attempts
-- What the rows of one segment add to both roll-ups; buckets as microseconds since 1970. Counted from year 1, because `//`
-- divides towards zero. See migrations/006_rollups.sql.
SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, destination_id, topic, status, code,
       count(*), count(*) FILTER (WHERE attempt_number = 1 AND NOT manual),
       count(*) FILTER (WHERE attempt_number > 1), count(*) FILTER (WHERE manual), sum(attempt_number)
FROM (SELECT *, (epoch_us(time) + 62135596800000000) // 3600000000 * 3600000000 - 62135596800000000 AS hour,
             (epoch_us(time) + 62135596800000000) // 86400000000 * 86400000000 - 62135596800000000 AS day
      FROM read_parquet(?)) AS w
GROUP BY GROUPING SETS ((hour, tenant_id, status), (day, tenant_id, destination_id, topic, status, code))

-- name: deltas_of_events
-- See migrations/009_event_rollups.sql.
SELECT grouping(hour) = 1, coalesce(hour, day), tenant_id, topic, count(*)
FROM (SELECT *, (epoch_us(time) + 62135596800000000) // 3600000000 * 3600000000 - 62135596800000000 AS hour,
             (epoch_us(time) + 62135596800000000) // 86400000000 * 86400000000 - 62135596800000000 AS day
      FROM read_parquet(?)) AS w
GROUP BY GROUPING SETS ((hour, tenant_id), (day, tenant_id, topic))
