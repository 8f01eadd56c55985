-- name: parse
-- Lines to typed columns. A row with ok = false is not wrong, only not certain: logstore.lines decides. Fields are taken out
-- as JSON, so that 5 and "5" stay apart.
-- DuckDB writes objects anew and would turn 1.10 into 1.1 and swallow a trailing comma, and it reads NaN and Infinity: lines
-- that may hold such are not ok. The patterns begin with a literal, which makes them ten times faster.
WITH parsed AS (
    SELECT number, position, line, doubtful, try(from_json(line, '{"id":"JSON","event_id":"JSON","tenant_id":"JSON",
        "destination_id":"JSON","topic":"JSON","status":"JSON","time":"JSON","attempt_number":"JSON","manual":"JSON",
        "code":"JSON","response_data":"JSON","event_time":"JSON","eligible_for_retry":"JSON","event_data":"JSON",
        "event_metadata":"JSON","data":"JSON","metadata":"JSON"}')) AS r
    FROM lines
), texts AS (
    SELECT number, position, line, doubtful, r, coalesce(r.event_data, r.data) AS data, text_of(data) AS data_text,
        coalesce(r.event_metadata, r.metadata, '{}') AS metadata, text_of(metadata) AS metadata_text,
        text_of(r.response_data) AS response_text
    FROM parsed
), typed AS (
    SELECT number, position, r,
        r.event_id IS NOT NULL AS attempt,
        moment(r.time) AS time,
        moment(r.event_time) AS event_time,
        payload(data, data_text) AS data,
        payload(metadata, metadata_text) AS metadata,
        payload(r.response_data, response_text) AS response_data,
        r.id IS NOT NULL AND NOT doubtful AND NOT contains(line, '\u0000')
            AND NOT regexp_matches(line, '\.([0-9]+0|[0-9]{8,})[,\}\]\s]')
            AND NOT odd(line) AS plain
    FROM texts
)
SELECT number, position, attempt,
    (plain AND short(r.id, 1200) AND short(r.tenant_id, 512) AND short(r.topic, 512)
        AND time BETWEEN $oldest AND $newest AND data IS NOT NULL AND metadata IS NOT NULL
        AND (r.eligible_for_retry IS NULL OR r.eligible_for_retry IN ('true', 'false'))
        AND CASE WHEN attempt
            THEN short(r.event_id, 1200) AND (r.destination_id = '""' OR short(r.destination_id, 512))
                AND r.status IN ('"success"', '"failed"') AND r.event_data IS NOT NULL
                AND event_time BETWEEN '0001-01-01 00:00:00+00'::TIMESTAMPTZ AND '9999-12-31 23:59:59.999999+00'::TIMESTAMPTZ
                AND regexp_full_match(r.attempt_number, '[0-9]{1,9}')
                AND (r.manual IS NULL OR r.manual IN ('true', 'false'))
                AND (r.code IS NULL OR r.code = '""' OR short(r.code, 512))
                AND (r.response_data IS NULL OR response_data IS NOT NULL)
                AND (r.metadata IS NULL OR r.event_metadata IS NOT NULL)
            ELSE (r.destination_id IS NULL OR r.destination_id = '""' OR short(r.destination_id, 512))
                AND coalesce(r.status, r.attempt_number, r.event_time, r.event_data, r.event_metadata) IS NULL
        END) IS TRUE AS ok,
    (year(time) * 12 + month(time) - 1)::INTEGER AS month,
    (r.id->>'$') AS id, (r.event_id->>'$') AS event_id, (r.tenant_id->>'$') AS tenant_id,
    coalesce((r.destination_id->>'$'), '') AS destination_id, (r.topic->>'$') AS topic, (r.status->>'$') AS status,
    time, try_cast(r.attempt_number::VARCHAR AS INTEGER) AS attempt_number, coalesce(r.manual = 'true', false) AS manual,
    (r.code->>'$') AS code, response_data, event_time, coalesce(r.eligible_for_retry = 'true', true) AS eligible_for_retry,
    data, metadata
FROM typed

-- name: macros
-- short: a JSON text that is not empty and fits even before it is unescaped. moment: RFC 3339 with an offset, or milliseconds.
-- payload: an object or list as it is, or the one inside a JSON text; NULL where Python has to look. odd: what DuckDB reads and
-- we do not, or only up to a size; a text inside the line is asked again, because escapes in the line may have hidden it.
CREATE MACRO odd(v) AS contains(v, 'NaN') OR contains(v, 'Infinity') OR regexp_matches(v, 'e[-+]?[0-9]+[,\}\]\s]')
    OR regexp_matches(v, 'E[-+]?[0-9]+[,\}\]\s]') OR regexp_matches(v, ',\s*[\}\]]');
CREATE MACRO text_of(v) AS CASE WHEN v LIKE '"%' THEN v->>'$' END;
CREATE MACRO short(v, most) AS starts_with(v, '"') AND strlen(v) BETWEEN 3 AND most + 2;
CREATE MACRO moment(v) AS CASE
    WHEN regexp_full_match(v, '"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"')
        THEN try_cast(trim(v, '"') AS TIMESTAMPTZ)
    WHEN regexp_full_match(v, '[0-9]{11,14}') THEN make_timestamptz(try_cast(v::VARCHAR AS BIGINT) * 1000)
END;
CREATE MACRO payload(v, held) AS CASE
    WHEN v LIKE '{%' OR v LIKE '[%' THEN v::VARCHAR
    WHEN held LIKE '{%' AND json_valid(held) AND NOT odd(held) THEN held
END

-- name: rows_to_lines
-- A row of Parquet as the line that would have meant the same; what follows is the same for all sources. Moments keep their
-- microseconds and say that they are UTC; a timestamp without a zone stays naive and so becomes a dead letter.
SELECT to_json(r)::VARCHAR AS line FROM (SELECT * FROM rows) AS r
