-- name: list_loads
-- Whether a load lives says the lock that its driver holds; see live_lock. A key of 64 bits is shown as two of 32.
SELECT l.*,
       l.state = 'running' AND EXISTS (
           SELECT FROM pg_locks k, hashtextextended('load ' || l.id, 0) AS key
           WHERE k.locktype = 'advisory' AND k.granted AND k.objsubid = 1
             AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (k.classid::bigint << 32 | k.objid::bigint) = key) AS alive,
       coalesce(r.rows, 0) AS rows_running, coalesce(r.bytes, 0) AS bytes_running,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('path', f.path, 'format', f.format, 'size', f.size, 'sha256', f.sha256)
                                  ORDER BY f.file), '[]')
        FROM load_files f WHERE f.load = l.id) AS sources
FROM loads l
LEFT JOIN (SELECT load, sum(rows)::bigint AS rows, sum(bytes)::bigint AS bytes FROM load_progress GROUP BY load) r
    ON r.load = l.id
WHERE %(id)s::bigint IS NULL OR l.id = %(id)s
ORDER BY l.id DESC
LIMIT %(limit)s

-- name: known_files
-- Files that a finished load took, by content: the same file under another name is the same file.
SELECT DISTINCT ON (f.sha256) f.sha256, f.load
FROM load_files f JOIN loads l ON l.id = f.load
WHERE l.state = 'done' AND f.sha256 = ANY (%(sha256)s::text[])
ORDER BY f.sha256, f.load DESC

-- name: known_sizes
-- A file of another size than all that were loaded is a new one, and its checksum can wait.
SELECT DISTINCT f.size FROM load_files f JOIN loads l ON l.id = f.load
WHERE l.state = 'done' AND f.size = ANY (%(sizes)s::bigint[])

-- name: begin
INSERT INTO loads (forced, bytes) VALUES (%(forced)s, %(bytes)s) RETURNING id

-- name: add_files
INSERT INTO load_files (load, file, path, format, size, sha256)
SELECT %(load)s, * FROM unnest(%(file)s::integer[], %(path)s::text[], %(format)s::text[], %(size)s::bigint[],
                               %(sha256)s::text[])

-- name: note_checksums
UPDATE load_files f SET sha256 = given.sha256 FROM unnest(%(file)s::integer[], %(sha256)s::text[]) AS given (file, sha256)
WHERE f.load = %(load)s AND f.file = given.file

-- name: live_lock
-- Held by the driver's session as long as the load lives; whoever gets it knows that the driver is gone.
SELECT pg_try_advisory_lock(hashtextextended('load ' || %(load)s::bigint, 0))

-- name: live_unlock
SELECT pg_advisory_unlock(hashtextextended('load ' || %(load)s::bigint, 0))

-- name: running
SELECT id FROM loads WHERE state = 'running' ORDER BY id

-- name: progress
SELECT coalesce(sum(p.rows), 0)::bigint AS rows, coalesce(sum(p.bytes), 0)::bigint AS bytes
FROM load_progress p WHERE p.load = %(load)s

-- name: note_progress
UPDATE loads SET stage = %(stage)s, rows_read = %(rows)s, bytes_read = %(bytes)s, seconds = %(seconds)s::jsonb, changed = now()
WHERE id = %(load)s AND state = 'running'

-- name: fail
-- Only a running load can fail: a finished one stays finished, whatever the caller believes.
UPDATE loads SET state = %(state)s, error = %(error)s, changed = now(), finished = now(), inserted = 0, updated = 0,
                 skipped = 0, dead = 0
WHERE id = %(load)s AND state = 'running'

-- name: finish
UPDATE loads SET state = 'done', stage = 'done', rows_read = %(rows_read)s, bytes_read = bytes, inserted = %(inserted)s,
                 updated = %(updated)s, skipped = %(skipped)s, dead = %(dead)s, seconds = %(seconds)s::jsonb,
                 changed = now(), finished = now()
WHERE id = %(load)s AND state = 'running'

-- name: end_tasks
-- Tasks of a load that is over must not write any more. pg_terminate_backend only asks; dropping their tables waits for them.
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE application_name = %(application)s AND datname = current_database() AND pid <> pg_backend_pid()

-- name: staging_tables
-- Tables that tasks filled, and the roll-ups of such, of one load or of all.
SELECT c.relname AS name, m[1]::bigint AS load, m[2] AS parent, to_date(m[3], 'YYYY_MM') AS month, m[4] IS NOT NULL AS counts
FROM pg_class c, regexp_match(c.relname, '^load_(\d+)_(events|attempts)_(\d{4}_\d{2})(_counts)?$') AS m
WHERE c.relkind = 'r' AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
  AND m IS NOT NULL AND (%(load)s::bigint IS NULL OR m[1]::bigint = %(load)s)
ORDER BY parent DESC, month

-- name: clean
WITH splits AS (DELETE FROM load_splits WHERE load = %(load)s),
     progress AS (DELETE FROM load_progress WHERE load = %(load)s)
DELETE FROM load_letters WHERE load = %(load)s

-- name: orphans
-- Loads that are over and still have rows in staging.
SELECT load FROM load_splits UNION SELECT load FROM load_progress UNION SELECT load FROM load_letters

-- name: list_letters
SELECT * FROM dead_letters
WHERE (%(id)s::bigint IS NULL OR id = %(id)s) AND (%(load)s::bigint IS NULL OR load = %(load)s)
  AND (%(state)s::text IS NULL OR state = %(state)s) AND (%(reason)s::text IS NULL OR reason = %(reason)s)
  AND (%(before)s::bigint IS NULL OR id < %(before)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: count_letters
SELECT state, reason, count(*) AS letters FROM dead_letters
WHERE %(load)s::bigint IS NULL OR load = %(load)s
GROUP BY 1, 2 ORDER BY 1, 2

-- name: discard
UPDATE dead_letters SET state = 'discarded', last_seen = now() WHERE id = %(id)s AND state = 'open'

-- name: take_letter
-- In the transaction that writes the row: two people at once wait for each other, and the second finds nothing to take.
UPDATE dead_letters SET state = 'requeued', last_seen = now(), attempts = attempts + 1, corrected = %(corrected)s
WHERE id = %(id)s AND state = 'open'

-- name: refuse_again
UPDATE dead_letters SET last_seen = now(), attempts = attempts + 1, reason = %(reason)s, message = %(message)s
WHERE id = %(id)s AND state = 'open'
