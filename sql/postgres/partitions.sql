-- name: attached
-- Bounds come from the catalogue, never from names; the session's time zone is UTC, so they print as +00.
SELECT p.relname AS parent, c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds,
       i.inhdetachpending AS pending, greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0)::bigint AS rows,
       pg_total_relation_size(c.oid) AS bytes
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_class p ON p.oid = i.inhparent
WHERE p.oid IN (to_regclass('events'), to_regclass('attempts'))
ORDER BY 1, 2

-- name: attached_months
-- The same without sizes, which cost a stat call per file: what a writer needs to know.
SELECT p.relname AS parent, c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_class p ON p.oid = i.inhparent
WHERE p.oid = to_regclass(%(parent)s) AND NOT i.inhdetachpending

-- name: detached
-- Months that left the log and whose table still exists, for undo.
SELECT m.parent, m.month, m.state, c.relname AS name,
       greatest(c.reltuples, pg_stat_get_live_tuples(c.oid), 0)::bigint AS rows,
       pg_total_relation_size(c.oid) AS bytes
FROM months m
JOIN pg_class c ON c.oid = to_regclass(m.parent || '_' || to_char(m.month, 'YYYY_MM'))
WHERE NOT c.relispartition

-- name: map
SELECT parent, month, state, (SELECT value FROM map_epoch) AS epoch FROM months

-- name: epoch
SELECT value FROM map_epoch

-- name: lock_month
-- Released with the transaction, so a process that dies leaves no lock behind.
SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))

-- name: hold_month
-- The same for a session: a concurrent detach commits in between, and would let go of the other.
SELECT pg_advisory_lock(hashtextextended(%(name)s, 0))

-- name: month_state
SELECT state FROM months WHERE parent = %(parent)s AND month = %(month)s

-- name: note_month
INSERT INTO months (parent, month, state) VALUES (%(parent)s, %(month)s, %(state)s)
ON CONFLICT (parent, month) DO UPDATE SET state = EXCLUDED.state, changed = now()
WHERE months.state IS DISTINCT FROM EXCLUDED.state

-- name: stray
-- A table that has a month's name and is no month.
SELECT FROM pg_class WHERE oid = to_regclass(%(name)s) AND NOT relispartition
  AND NOT EXISTS (SELECT FROM months WHERE parent = %(parent)s AND month = %(month)s)

-- name: guard_exists
SELECT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = to_regclass(%(name)s) AND tgname = 'refuse_write')

-- name: attachment
SELECT i.inhdetachpending FROM pg_inherits i
WHERE i.inhparent = to_regclass(%(parent)s) AND i.inhrelid = to_regclass(%(name)s)

-- name: sealed_rows
SELECT coalesce(sum(rows), 0)::bigint FROM segments
WHERE parent = %(parent)s AND month = %(month)s AND state = 'sealed'

-- name: retire_segments
UPDATE segments SET state = 'retired', note = 'the month was reopened', changed = now()
WHERE parent = %(parent)s AND month = %(month)s AND state IN ('sealed', 'quarantined')
