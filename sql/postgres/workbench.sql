-- What the pages ask besides lists: names for menus, the log's extent, and what became of the events on one page.
-- Whatever depends on a selection is built by logstore/workbench/measures.py.

-- name: tenants
SELECT tenant_id FROM tenants ORDER BY 1 LIMIT %(most)s

-- name: destinations
SELECT destination_id FROM destinations WHERE tenant_id = ANY(%(tenants)s) ORDER BY 1 LIMIT %(most)s

-- name: all_destinations
SELECT destination_id FROM destinations ORDER BY 1 LIMIT %(most)s

-- name: topics
SELECT name FROM topics ORDER BY 1 LIMIT %(most)s

-- name: tenants_of_destination
SELECT tenant_id FROM destinations WHERE destination_id = %(destination)s ORDER BY 1 LIMIT 2

-- name: tenant_exists
SELECT tenant_id FROM tenants WHERE tenant_id = %(tenant)s

-- name: extent_of_events
SELECT min(time), max(time) FROM events

-- name: extent_of_attempts
SELECT min(time), max(time) FROM attempts

-- name: outcomes_of_events
-- Per event of a page: destinations tried, destinations reached, attempts.
SELECT event_id, tenant_id, count(*), count(*) FILTER (WHERE reached), sum(tries)
FROM (
    SELECT event_id, tenant_id, destination_id, bool_or(status = 'success') AS reached, count(*) AS tries
    FROM attempts WHERE event_id = ANY(%(events)s)
    GROUP BY event_id, tenant_id, destination_id
) AS per_destination
GROUP BY event_id, tenant_id

-- name: last_success
-- Newest success of one destination, whenever it was.
SELECT time FROM attempts
WHERE tenant_id = %(tenant)s AND destination_id = %(destination)s AND status = 'success'
ORDER BY time DESC, id DESC LIMIT 1
