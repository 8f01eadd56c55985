"""The SQL for PostgreSQL: served by an index on the field, and made of values only where they are bound."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import asyncpg

from logstore.filters import parse, to_duckdb, to_postgres
from tests.filters.engines import TABLES

EVENTS = TABLES["event"]


def plan(connection: Connection, filter: str) -> str:
    """The generic plan of the filter's statement, when scanning the table is not an option."""
    query = select(EVENTS.c.id).where(to_postgres(parse(filter, "event"), EVENTS))
    # This dialect writes $1, as PREPARE wants it; a prepared statement is planned without its values.
    compiled = query.compile(dialect=asyncpg.dialect(), compile_kwargs={"render_postcompile": True})
    nothing = ", ".join(["NULL"] * len(compiled.params))
    cursor: Any = connection.connection.cursor()
    cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan")
    cursor.execute(f"PREPARE by_filter AS {compiled}")
    cursor.execute(f"EXPLAIN EXECUTE by_filter ({nothing})")
    lines = [line for (line,) in cursor.fetchall()]
    cursor.execute("DEALLOCATE by_filter")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("expression", "filter"),
    [
        ("(data->>'k')", 'data.k = "v"'),
        ("(data->>'k')", 'data.k in ["v", "w"]'),
        ("(data->'a'->>'k')", 'data.a.k = "v"'),
        ("(data->>'it''s %\\')", "data.'it\\'s %\\\\' = \"v\""),
    ],
)
def test_an_index_on_the_field_serves_it(filter_connection: Connection, expression: str, filter: str) -> None:
    with filter_connection.begin_nested() as savepoint:
        index = f"CREATE INDEX by_field ON event_rows ({expression}) WHERE octet_length{expression} <= 1024"
        filter_connection.exec_driver_sql(index.replace("%", "%%"))
        assert "by_field" in plan(filter_connection, filter)
        assert "by_field" not in plan(filter_connection, f"not ({filter})")
        savepoint.rollback()


@pytest.mark.parametrize("given", ['topic < "a"', 'data.k >= "a"'])
def test_order_of_text_is_that_of_its_bytes_in_any_database(given: str) -> None:
    assert 'COLLATE "C"' in str(to_postgres(parse(given, "event"), EVENTS))


def test_text_too_long_for_the_index_does_not_ask_for_it() -> None:
    query = str(to_postgres(parse(f'data.k = "{"é" * 600}"', "event"), EVENTS).compile(dialect=postgresql.dialect()))
    assert "octet_length" not in query


@pytest.mark.parametrize("value", ["zebra", "'; drop table events; --", "100%", "\\"])
def test_no_value_is_part_of_the_sql(value: str) -> None:
    written = '"' + value.replace("\\", "\\\\") + '"'
    given = f"data.k = {written} or topic contains {written} or data.k in [{written}, 12345] or data.k < 12345"
    tree = parse(given, "event")
    compiled = to_postgres(tree, EVENTS).compile(
        dialect=postgresql.dialect(), compile_kwargs={"render_postcompile": True}
    )
    emitted = to_duckdb(tree)
    for sql in (str(compiled), emitted.text):
        assert value not in sql.replace("%(", "")
        assert "12345" not in sql
    assert value in emitted.params
    assert emitted.text.count("?") == len(emitted.params)


def test_a_key_is_quoted_where_it_must_be_a_constant(filter_connection: Connection) -> None:
    hostile = "data.'\\'); drop table event_rows; --' = \"x\" or data.'%(param_1)s' = \"x\" or data.'\\\\\\'' exists"
    query = select(EVENTS.c.id).where(to_postgres(parse(hostile, "event"), EVENTS))
    filter_connection.execute(query).all()
    filter_connection.execute(query).all()


def test_duckdb_paths_are_parameters() -> None:
    emitted = to_duckdb(parse("data.'a/b'.'~'.'\"' exists", "event"))
    assert emitted == ("json_type(\"data\", ?) <> 'NULL'", ['/a~1b/~0/"'])
