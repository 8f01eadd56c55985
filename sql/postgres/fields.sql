-- name: note_fields
-- One upsert for a whole batch. Types keep the newest time at which each was seen; the sketch keeps the smallest hashes.
-- A topic that has all the fields it may have gets no new ones. In the order of the key, so that two batches cannot wait for
-- each other.
WITH given AS MATERIALIZED (
    SELECT topic, column_name, ARRAY(SELECT jsonb_array_elements_text(path::jsonb)) AS path, types::jsonb, rows, nulls,
           first_seen, last_seen, ARRAY(SELECT jsonb_array_elements(sketch::jsonb)::bigint) AS sketch, longest
    FROM unnest(%b::text[], %b::text[], %b::text[], %b::text[], %b::bigint[], %b::bigint[], %b::timestamptz[],
                %b::timestamptz[], %b::text[], %b::integer[])
        AS given (topic, column_name, path, types, rows, nulls, first_seen, last_seen, sketch, longest)
), ranked AS (
    SELECT given.*, there.topic IS NOT NULL AS known,
           row_number() OVER (PARTITION BY given.topic, there.topic IS NULL ORDER BY given.column_name, given.path) AS rank
    FROM given LEFT JOIN fields there USING (topic, column_name, path)
), counted AS (
    SELECT topic, count(*) AS paths FROM fields WHERE topic IN (SELECT topic FROM ranked WHERE NOT known) GROUP BY topic
)
INSERT INTO fields AS f (topic, column_name, path, types, rows, nulls, first_seen, last_seen, sketch, longest)
SELECT topic, column_name, path, types, rows, nulls, first_seen, last_seen, sketch, longest
FROM ranked LEFT JOIN counted USING (topic)
WHERE known OR rank + coalesce(paths, 0) <= %s
ORDER BY topic, column_name, path
ON CONFLICT (topic, column_name, path) DO UPDATE SET
    types = (SELECT jsonb_object_agg(key, value) FROM (
                 SELECT key, max(value) AS value
                 FROM (SELECT * FROM jsonb_each_text(f.types) UNION ALL SELECT * FROM jsonb_each_text(EXCLUDED.types)) AS both_seen
                 GROUP BY key) AS newest),
    rows = f.rows + EXCLUDED.rows,
    nulls = f.nulls + EXCLUDED.nulls,
    first_seen = least(f.first_seen, EXCLUDED.first_seen),
    last_seen = greatest(f.last_seen, EXCLUDED.last_seen),
    sketch = ARRAY(SELECT DISTINCT h FROM unnest(f.sketch || EXCLUDED.sketch) AS h ORDER BY h LIMIT 64),
    longest = greatest(f.longest, EXCLUDED.longest)

-- name: list_fields
SELECT f.topic, f.column_name AS column, f.path, f.types, f.rows, f.nulls, f.first_seen, f.last_seen, f.sketch, f.longest,
       coalesce(t.indexed_fields @> jsonb_build_array(jsonb_build_object('column', f.column_name, 'path', to_jsonb(f.path))),
                false) AS indexed,
       max(f.last_seen) OVER (PARTITION BY f.topic, f.column_name) AS topic_last_seen
FROM fields f LEFT JOIN topics t ON t.name = f.topic
WHERE %(topic)s::text IS NULL OR f.topic = %(topic)s
ORDER BY f.topic, f.column_name, f.path

-- name: list_topics
SELECT name, indexed_fields, config, created, updated FROM topics ORDER BY name

-- name: change_topic
UPDATE topics SET indexed_fields = %(indexed_fields)s, updated = now() WHERE name = %(name)s

-- name: note_change
INSERT INTO topic_changes (topic, actor, change) VALUES (%(topic)s, %(actor)s, %(change)s)

-- name: indexed_fields
SELECT name, indexed_fields FROM topics WHERE indexed_fields <> '[]'

-- name: leaves_without
-- The months whose part of an index is missing, oldest first, and the half-made parts that a killed run left.
SELECT c.relname AS leaf, (SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
                           WHERE i.indrelid = c.oid AND x.relname = c.relname || %(suffix)s AND NOT i.indisvalid) AS broken
FROM pg_inherits p JOIN pg_class c ON c.oid = p.inhrelid
WHERE p.inhparent = to_regclass(%(parent)s) AND NOT p.inhdetachpending
  AND NOT EXISTS (SELECT FROM pg_inherits pi JOIN pg_index i ON i.indexrelid = pi.inhrelid
                  WHERE pi.inhparent = to_regclass(%(index)s) AND i.indrelid = c.oid)
ORDER BY c.relname
