-- name: rows_to_lines
-- A row of Parquet as the line that would have meant the same; what follows is the same for all sources. Moments keep their
-- microseconds and say that they are UTC; a timestamp without a zone stays naive and so becomes a dead letter.
SELECT to_json(row)::VARCHAR AS line FROM rows
