-- name: survey
-- Every month on the map and what the archive has of it; one statement, however many months there are.
SELECT m.parent, m.month, m.state, m.changed, coalesce(s.segments, 0) AS segments, coalesce(s.rows, 0)::bigint AS rows,
       coalesce(s.bytes, 0)::bigint AS bytes, coalesce(s.quarantined, 0) AS quarantined
FROM months m
LEFT JOIN (
    SELECT parent, month, count(*) FILTER (WHERE state = 'sealed') AS segments,
           sum(rows) FILTER (WHERE state = 'sealed') AS rows, sum(bytes) FILTER (WHERE state = 'sealed') AS bytes,
           count(*) FILTER (WHERE state = 'quarantined') AS quarantined
    FROM segments GROUP BY parent, month
) s USING (parent, month)

-- name: policies
SELECT parent, tier, max_age, max_bytes, max_count, min_count FROM retention ORDER BY parent, tier

-- name: set_policy
INSERT INTO retention (parent, tier, max_age, max_bytes, max_count, min_count)
VALUES (%(parent)s, %(tier)s, %(max_age)s, %(max_bytes)s, %(max_count)s, %(min_count)s)
ON CONFLICT (parent, tier) DO UPDATE SET max_age = EXCLUDED.max_age, max_bytes = EXCLUDED.max_bytes,
    max_count = EXCLUDED.max_count, min_count = EXCLUDED.min_count

-- name: expired
-- Retired files whose grace is over at a given moment.
SELECT count(*), coalesce(sum(rows), 0)::bigint, coalesce(sum(bytes), 0)::bigint
FROM segments WHERE state = 'retired' AND changed < %(now)s - make_interval(secs => %(grace)s)

-- name: unfolded
-- About how many differences wait to be added to the roll-ups; exact only in whether there are any.
SELECT CASE WHEN EXISTS (SELECT FROM attempts_deltas) OR EXISTS (SELECT FROM events_deltas)
            THEN greatest(pg_stat_get_live_tuples('attempts_deltas'::regclass)
                          + pg_stat_get_live_tuples('events_deltas'::regclass), 1) ELSE 0 END,
       pg_total_relation_size('attempts_deltas') + pg_total_relation_size('events_deltas')

-- name: take_lock
SELECT pg_try_advisory_lock(hashtextextended('logstore maintenance', 0))

-- name: lock_holder
SELECT a.pid, a.application_name, a.backend_start
FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended('logstore maintenance', 0)

-- name: blockers
-- Who holds what a step is about to need: any lock on some tables, writers' locks on others, an old snapshot, or the
-- month's own advisory lock. Autovacuum is left out: it gives way by itself.
SELECT DISTINCT a.pid, a.application_name, a.state, a.xact_start, a.query_start, left(a.query, 200) AS query
FROM pg_stat_activity a LEFT JOIN pg_locks l ON l.pid = a.pid AND l.granted AND l.database = a.datid
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.backend_type = 'client backend'
  AND ((l.locktype = 'relation' AND l.relation = ANY(SELECT to_regclass(n) FROM unnest(%(any)s::text[]) n))
    OR (l.locktype = 'relation' AND l.mode NOT IN ('AccessShareLock', 'RowShareLock')
        AND l.relation = ANY(SELECT to_regclass(n) FROM unnest(%(writers)s::text[]) n))
    OR (l.locktype = 'advisory' AND l.objsubid = 1
        AND ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended(%(name)s, 0))
    OR (%(snapshots)s AND a.backend_xmin IS NOT NULL))
ORDER BY a.xact_start

-- name: record_run
INSERT INTO maintenance_runs
    (run, actor, plan_hash, step, steps, action, partition, sql, result, error, rows, bytes, milliseconds)
VALUES (%(run)s, %(actor)s, %(plan_hash)s, %(step)s, %(steps)s, %(action)s, %(partition)s, %(sql)s, %(result)s,
        %(error)s, %(rows)s, %(bytes)s, %(milliseconds)s)
RETURNING id, time

-- name: runs
-- The last word on each step, newest first. A step has two rows at most, so twice the limit is enough to look at.
SELECT * FROM (
    SELECT DISTINCT ON (run, step) run, actor, plan_hash, step, steps, action, partition, sql, result, error, rows,
           bytes, milliseconds, time, id
    FROM (
        SELECT * FROM maintenance_runs WHERE %(run)s::uuid IS NULL OR run = %(run)s::uuid
        ORDER BY id DESC LIMIT 2 * %(limit)s::bigint
    ) newest
    ORDER BY run, step, id DESC
) last ORDER BY id DESC LIMIT %(limit)s

-- name: ever_ended
SELECT EXISTS (SELECT FROM maintenance_runs WHERE result = 'done' AND step = steps)

-- name: open_letters
SELECT count(*), min(first_seen) FROM dead_letters WHERE state = 'open'
