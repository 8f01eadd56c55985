-- name: insert_events
-- Rows arrive sorted by (time, id), so that two batches that overlap lock in the same order. JSON travels as text: binary
-- arrays of jsonb would need a version byte per value.
INSERT INTO events (id, tenant_id, destination_id, time, topic, eligible_for_retry, data, metadata)
SELECT id, tenant_id, destination_id, time, topic, eligible_for_retry, data::jsonb, metadata::jsonb
FROM unnest(%b::text[], %b::text[], %b::text[], %b::timestamptz[], %b::text[], %b::boolean[], %b::text[], %b::text[])
    AS given (id, tenant_id, destination_id, time, topic, eligible_for_retry, data, metadata)
ON CONFLICT (time, id) DO NOTHING

-- name: insert_attempts
INSERT INTO attempts (id, event_id, tenant_id, destination_id, topic, status, time, attempt_number, manual, code,
                      response_data, event_time, eligible_for_retry, event_data, event_metadata)
SELECT id, event_id, tenant_id, destination_id, topic, status, time, attempt_number, manual, code,
       response_data::jsonb, event_time, eligible_for_retry, event_data::jsonb, event_metadata::jsonb
FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::timestamptz[], %b::integer[],
            %b::boolean[], %b::text[], %b::text[], %b::timestamptz[], %b::boolean[], %b::text[], %b::text[])
    AS given (id, event_id, tenant_id, destination_id, topic, status, time, attempt_number, manual, code,
              response_data, event_time, eligible_for_retry, event_data, event_metadata)
ON CONFLICT (time, id) DO NOTHING
RETURNING time, id

-- name: update_attempts
-- The attempts that were there already. Locked in the order of (time, id) before any is changed; a row that another
-- transaction has just inserted is committed by now, because the insert above waited for it.
WITH given AS (
    SELECT * FROM unnest(%b::timestamptz[], %b::text[], %b::text[], %b::text[], %b::text[])
        AS given (time, id, status, code, response_data)
), locked AS MATERIALIZED (
    SELECT a.time, a.id FROM attempts a JOIN given g ON a.time = g.time AND a.id = g.id
    ORDER BY a.time, a.id FOR UPDATE OF a
)
UPDATE attempts a
SET status = g.status, code = g.code, response_data = g.response_data::jsonb
FROM given g JOIN locked l ON l.time = g.time AND l.id = g.id
WHERE a.time = g.time AND a.id = g.id

-- name: note_tenants
INSERT INTO tenants (tenant_id) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING

-- name: note_topics
INSERT INTO topics (name) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING

-- name: note_destinations
INSERT INTO destinations (tenant_id, destination_id) SELECT * FROM unnest(%s::text[], %s::text[]) ON CONFLICT DO NOTHING

-- name: find_event
-- All of them, unordered: with ORDER BY and LIMIT the planner might walk time backwards instead of looking the id up.
SELECT id, tenant_id, destination_id, time, topic, eligible_for_retry, data, metadata FROM events WHERE id = %(id)s

-- name: find_attempt
SELECT id, event_id, tenant_id, destination_id, topic, status, time, attempt_number, manual, code, response_data,
       event_time, eligible_for_retry, event_data, event_metadata
FROM attempts WHERE id = %(id)s

-- name: count_tenants
SELECT count(*) FROM (SELECT FROM tenants LIMIT %(most)s) AS counted
