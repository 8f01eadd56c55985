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
