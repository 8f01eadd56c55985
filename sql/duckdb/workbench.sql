-- name: outcomes_of_events
-- The same as PostgreSQL's statement of this name, from one segment.
SELECT event_id, tenant_id, destination_id, bool_or(status = 'success')
FROM read_parquet(?) WHERE event_id IN (SELECT unnest(?))
GROUP BY event_id, tenant_id, destination_id
