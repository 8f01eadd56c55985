-- What the pages ask besides lists: names for menus, the log's extent, and what became of the events on one page.
-- What depends on a selection is built where it is asked: logstore/workbench/counts/measures.py, and range_outcomes.py there.

-- name: tenants
SELECT tenant_id FROM tenants ORDER BY 1 LIMIT %(most)s

-- name: destinations
SELECT destination_id FROM destinations WHERE tenant_id = ANY(%(tenants)s) ORDER BY 1 LIMIT %(most)s

-- name: all_destinations
SELECT destination_id FROM destinations ORDER BY 1 LIMIT %(most)s

-- name: topics
SELECT name FROM topics ORDER BY 1 LIMIT %(most)s

-- name: tenants_of_destination
SELECT tenant_id FROM destinations WHERE destination_id = %(destination)s ORDER BY 1 LIMIT 50

-- name: tenant_exists
SELECT tenant_id FROM tenants WHERE tenant_id = %(tenant)s

-- name: extent_of_events
-- Over both tiers: what is archived counts by the catalog's times.
SELECT least(min(time), (SELECT min(min_time) FROM segments WHERE parent = 'events' AND state = 'sealed')),
       greatest(max(time), (SELECT max(max_time) FROM segments WHERE parent = 'events' AND state = 'sealed'))
FROM events

-- name: extent_of_attempts
SELECT least(min(time), (SELECT min(min_time) FROM segments WHERE parent = 'attempts' AND state = 'sealed')),
       greatest(max(time), (SELECT max(max_time) FROM segments WHERE parent = 'attempts' AND state = 'sealed'))
FROM attempts

-- name: outcomes_of_events
-- Per event of a page and destination that was tried: was it reached?
SELECT event_id, tenant_id, destination_id, bool_or(status = 'success')
FROM attempts WHERE event_id = ANY(%(events)s)
GROUP BY event_id, tenant_id, destination_id

-- name: last_attempts
-- Per destination and outcome: the two newest days that the roll-up has it on, and the newest attempt that PostgreSQL has of
-- those days inside the window.
WITH rolled AS (
    SELECT time, tenant_id, destination_id, status, records FROM attempts_by_destination
    UNION ALL
    SELECT time, tenant_id, destination_id, status, records FROM attempts_deltas WHERE daily
), known AS (
    SELECT time, tenant_id, destination_id, status FROM rolled
    WHERE time >= %(first)s AND time < %(upper)s
      AND (%(tenants)s::text[] IS NULL OR tenant_id = ANY(%(tenants)s::text[]))
      AND (%(destinations)s::text[] IS NULL OR destination_id = ANY(%(destinations)s::text[]))
    GROUP BY 1, 2, 3, 4 HAVING sum(records) > 0
), newest AS (
    SELECT tenant_id, destination_id, status, (array_agg(time ORDER BY time DESC))[1:2] AS days
    FROM known GROUP BY 1, 2, 3
)
SELECT n.tenant_id, n.destination_id, n.status, n.days, (
    SELECT max(found.time) FROM unnest(n.days) AS day(start) CROSS JOIN LATERAL (
        SELECT a.time FROM attempts a
        WHERE a.tenant_id = n.tenant_id AND a.destination_id = n.destination_id AND a.status = n.status
          AND a.time >= greatest(day.start, %(lower)s) AND a.time < least(day.start + interval '1 day', %(upper)s)
        ORDER BY a.time DESC LIMIT 1) AS found)
FROM newest n

-- name: tried_events
-- Per event of an interval and destination that was tried: was it reached? An attempt follows its event, so its own time
-- prunes months, and the event's makes it exact.
SELECT tenant_id, event_id, (extract(epoch FROM event_time) * 1000000)::bigint, destination_id, bool_or(status = 'success')
FROM attempts
WHERE time >= %(lower)s AND event_time >= %(lower)s AND event_time < %(upper)s
  AND (%(tenants)s::text[] IS NULL OR tenant_id = ANY(%(tenants)s::text[]))
GROUP BY 1, 2, 3, 4

-- name: failure_groups
-- Failed attempts of an interval by destination, code and what the answer says; where that stands is a guess, the first of
-- these wins, and logstore/workbench/deliveries.py reads on from there. A group comes whole, with how many failed in which
-- of the places of the trend: the limit cuts groups and never a part of one.
WITH said AS (
    SELECT a.time, a.tenant_id, a.destination_id, a.code,
           CASE WHEN jsonb_typeof(a.response_data->f.field) = 'string' THEN f.field END AS field,
           left(CASE WHEN f.field IS NOT NULL THEN a.response_data->>f.field
                     WHEN jsonb_typeof(a.response_data) <> 'object' THEN a.response_data #>> '{}' END, 1000) AS text
    FROM attempts a CROSS JOIN LATERAL (
        SELECT CASE WHEN a.response_data->>'error' <> '' THEN 'error' WHEN a.response_data->>'message' <> '' THEN 'message'
                    WHEN a.response_data->>'detail' <> '' THEN 'detail' WHEN a.response_data->>'body' <> '' THEN 'body'
               END AS field) f
    WHERE a.status = 'failed' AND a.time >= %(lower)s AND a.time < %(upper)s
), placed AS (
    SELECT floor(extract(epoch FROM time - %(origin)s) / %(width)s)::int AS place, tenant_id, destination_id, code, field, text,
           count(*) AS failed, min(time) AS first, max(time) AS last
    FROM said GROUP BY 1, 2, 3, 4, 5, 6
)
SELECT tenant_id, destination_id, code, field, text, min(first), max(last), array_agg(place), array_agg(failed)
FROM placed GROUP BY 1, 2, 3, 4, 5
ORDER BY sum(failed) DESC LIMIT %(most)s

-- name: open_letters
-- How many open dead letters there are of a reason, and the newest of them: what comes after it was not meant.
SELECT count(*), max(id) FROM dead_letters
WHERE state = 'open' AND reason = %(reason)s AND (%(load)s::bigint IS NULL OR load = %(load)s)

-- name: parts_of_index
-- The months of a table, oldest first, and whether each has its part of an index.
SELECT c.relname, EXISTS (SELECT FROM pg_inherits pi JOIN pg_index i ON i.indexrelid = pi.inhrelid
                          WHERE pi.inhparent = to_regclass(%(index)s) AND i.indrelid = c.oid AND i.indisvalid)
FROM pg_inherits p JOIN pg_class c ON c.oid = p.inhrelid
WHERE p.inhparent = to_regclass(%(parent)s) AND NOT p.inhdetachpending
ORDER BY c.relname
