-- name: listed
-- What readers may use, and what they must warn about.
SELECT segment_id, parent, month, base_offset, end_offset, rows, bytes, sha256, checksum, min_time, max_time, min_id,
       max_id, location, schema_version, replaces, state, note, created, verified
FROM segments WHERE state IN ('sealed', 'quarantined')
ORDER BY parent, month, base_offset

-- name: all
SELECT segment_id, parent, month, base_offset, end_offset, rows, bytes, sha256, checksum, min_time, max_time, min_id,
       max_id, location, schema_version, replaces, state, note, created, verified
FROM segments ORDER BY parent, month, base_offset, segment_id

-- name: of_month
SELECT segment_id, parent, month, base_offset, end_offset, rows, bytes, sha256, checksum, min_time, max_time, min_id,
       max_id, location, schema_version, replaces, state, note, created, verified
FROM segments WHERE parent = %(parent)s AND month = %(month)s AND state = ANY(%(states)s)
ORDER BY base_offset, segment_id

-- name: begin
INSERT INTO segments (segment_id, parent, month, base_offset, end_offset, rows, bytes, sha256, checksum, location,
                      schema_version, replaces, state, created)
VALUES (%(segment_id)s, %(parent)s, %(month)s, %(base_offset)s, %(base_offset)s, 0, 0, '', '', %(location)s,
        %(schema_version)s, %(replaces)s, 'writing', %(created)s)

-- name: record
INSERT INTO segments (segment_id, parent, month, base_offset, end_offset, rows, bytes, sha256, checksum, min_time,
                      max_time, min_id, max_id, location, schema_version, replaces, state, note, created, verified)
VALUES (%(segment_id)s, %(parent)s, %(month)s, %(base_offset)s, %(end_offset)s, %(rows)s, %(bytes)s, %(sha256)s,
        %(checksum)s, %(min_time)s, %(max_time)s, %(min_id)s, %(max_id)s, %(location)s, %(schema_version)s,
        %(replaces)s, %(state)s, %(note)s, coalesce(%(created)s, now()), %(verified)s)
ON CONFLICT (segment_id) DO UPDATE SET
    end_offset = EXCLUDED.end_offset, rows = EXCLUDED.rows, bytes = EXCLUDED.bytes, sha256 = EXCLUDED.sha256,
    checksum = EXCLUDED.checksum, min_time = EXCLUDED.min_time, max_time = EXCLUDED.max_time, min_id = EXCLUDED.min_id,
    max_id = EXCLUDED.max_id, state = EXCLUDED.state, note = EXCLUDED.note, verified = EXCLUDED.verified,
    changed = now()

-- name: set_state
-- Of what readers know only: what was retired since somebody looked stays retired.
UPDATE segments SET state = %(state)s, note = %(note)s, changed = now()
WHERE segment_id = ANY(%(ids)s) AND state IN ('sealed', 'quarantined')

-- name: set_verified
UPDATE segments SET verified = now() WHERE segment_id = %(id)s

-- name: forget
DELETE FROM segments WHERE segment_id = ANY(%(ids)s)

-- name: expired
-- Retired files outlive the pages that may still be reading them.
SELECT segment_id, location FROM segments
WHERE state = 'retired' AND changed < now() - make_interval(secs => %(grace)s)
