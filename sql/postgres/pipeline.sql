-- name: alive
-- A task asks this before it makes a table, and keeps the answer true until it has: cleaning up waits for the row.
SELECT FROM loads WHERE id = %(load)s AND state = 'running' FOR SHARE

-- name: add_progress
INSERT INTO load_progress (load, split, rows, bytes) VALUES (%(load)s, %(split)s, %(rows)s, %(bytes)s)
ON CONFLICT (load, split) DO UPDATE SET rows = EXCLUDED.rows, bytes = EXCLUDED.bytes

-- name: add_split
-- The last statement of a task's transaction. Nothing is inserted when another run of the task was first, or the load is over.
INSERT INTO load_splits (load, split, file, bytes, lines, staged, letters, positions)
SELECT id, %(split)s, %(file)s, %(bytes)s, %(lines)s, %(staged)s, %(letters)s, %(positions)s
FROM loads WHERE id = %(load)s AND state = 'running' FOR KEY SHARE
ON CONFLICT (load, split) DO NOTHING

-- name: find_split
SELECT bytes, lines, staged, letters FROM load_splits WHERE load = %(load)s AND split = %(split)s

-- name: add_letters
INSERT INTO load_letters (load, split, file, position, line, raw, truncated, reason, message)
SELECT %(load)s, %(split)s, %(file)s, * FROM unnest(%(position)s::bigint[], %(line)s::bigint[], %(raw)s::text[],
    %(truncated)s::boolean[], %(reason)s::text[], %(message)s::text[])

-- name: counted
-- What the tasks counted, by file.
SELECT file, sum(staged)::bigint AS staged, sum(positions) AS positions, sum(letters)::bigint AS letters
FROM load_splits WHERE load = %(load)s GROUP BY file

-- name: staged_letters
SELECT file, count(*) AS letters FROM load_letters WHERE load = %(load)s GROUP BY file

-- name: index_definitions
-- What an index is without its name and table, and what PostgreSQL calls it after: its columns. Without the primary key.
SELECT (SELECT string_agg(a.attname, '_' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = i.indexrelid) AS columns,
       substring(pg_get_indexdef(i.indexrelid) FROM ' USING .*$') AS definition
FROM pg_index i WHERE i.indrelid = to_regclass(%(parent)s) AND i.indisvalid AND NOT i.indisprimary
ORDER BY i.indexrelid

-- name: names_to_shorten
-- Indexes and statistics that carry the staging table's name.
SELECT 'INDEX' AS kind, c.relname AS name FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(%(table)s)
UNION ALL
SELECT 'STATISTICS', stxname FROM pg_statistic_ext WHERE stxrelid = to_regclass(%(table)s)

-- name: move_letters
-- The same bad row met again is the same letter; one that a person discarded or requeued stays so.
INSERT INTO dead_letters (load, file, position, line, raw, truncated, reason, message)
SELECT DISTINCT ON (l.file, l.position, md5(l.raw)) l.load, f.path, l.position,
       l.line + (SELECT coalesce(sum(s.lines), 0) FROM load_splits s
                 WHERE s.load = l.load AND s.file = l.file AND s.split < l.split)::bigint,
       l.raw, l.truncated, l.reason, l.message
FROM load_letters l JOIN load_files f ON f.load = l.load AND f.file = l.file
WHERE l.load = %(load)s
ORDER BY l.file, l.position, md5(l.raw)
ON CONFLICT (md5(file), position, md5(raw)) DO UPDATE
SET load = EXCLUDED.load, line = EXCLUDED.line, reason = EXCLUDED.reason, message = EXCLUDED.message, last_seen = now(),
    attempts = dead_letters.attempts + 1

-- name: resolve_letters
-- Open letters of the very same files that this load did not meet again: their rows are loaded now.
UPDATE dead_letters d SET state = 'resolved', last_seen = now()
FROM load_files mine JOIN load_files theirs ON theirs.sha256 = mine.sha256 AND theirs.path = mine.path
WHERE mine.load = %(load)s AND d.load = theirs.load AND d.load <> mine.load AND d.file = mine.path AND d.state = 'open'
