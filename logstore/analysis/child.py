"""The sandbox's other process: one DuckDB that is locked before it sees the SQL, one statement, one answer.

It is run by its path and imports nothing of logstore, so it starts quickly and holds no secret. Standard input brings one
line, the task; standard output carries an empty line when the query starts, a line of JSON about the outcome, and the rows
as an Arrow stream. When standard input ends, the parent is gone, and so is the child.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import duckdb
    import pyarrow

# What a query may name besides its own WITH names. DuckDB's lock below refuses other files too; this list also keeps out
# what only reads state (settings show paths) or hides SQL in a string (`query`), and it gives the clearer message.
TABLES = {"events", "attempts"}
TABLE_FUNCTIONS = {"range", "generate_series", "unnest", "json_each", "json_tree", "repeat", "repeat_row"}
REFUSED_FUNCTIONS = {"current_setting", "getenv", "write_log", "json_serialize_plan", "nextval", "currval"}

_GAP = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_EXPLAIN = re.compile(rf"{_GAP}*EXPLAIN\b{_GAP}*(?P<analyze>ANALYZE\b)?", re.IGNORECASE | re.DOTALL)
_MESSAGE_MOST = 300


class Refused(Exception):
    """The statement is not one that may run here."""


def main() -> None:
    task = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    _limit(task)
    # pyarrow works without numpy here, and importing numpy would take longer than everything else together.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    import duckdb

    try:
        connection = _prepare(task)
        started = time.perf_counter()
        # Judging counts as running: a parser can be kept busy as well.
        _send(b"\n")
        timer = threading.Timer(task["seconds"], connection.interrupt)
        timer.daemon = True
        timer.start()
        table = _run(connection, judge(connection, task["sql"]), task["rows"] + 1)
        seconds = time.perf_counter() - started
        outcome = {"truncated": table.num_rows > task["rows"], "seconds": seconds, "read": rows_read(connection)}
        _reply(outcome, table.slice(0, task["rows"]))
    except Refused as error:
        _fail("refused", str(error))
    except duckdb.InterruptException:
        _fail("time", "")
    except (MemoryError, duckdb.OutOfMemoryException):
        _fail("memory", "")
    except RecursionError:
        _fail("refused", "the statement is nested too deeply")
    except Exception as error:  # whatever DuckDB says becomes one sentence in the parent
        _fail("error", _one_sentence(str(error), task["folder"]))


def _prepare(task: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    try:
        return lock(task)
    except Exception as error:
        said = _one_sentence(str(error), task["folder"])
        raise Refused(f"the archive cannot be read: {said}; run `python -m logstore verify`") from error


def lock(task: dict[str, Any]) -> duckdb.DuckDBPyConnection:
    """A DuckDB in memory that can read the listed files and nothing else, and whose settings cannot be changed."""
    import duckdb

    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": task["memory"],
            "temp_directory": "",
            "threads": str(task["threads"]),
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    count_rows(connection)
    connection.execute("SET python_enable_replacements = false")
    for parent, columns in task["columns"].items():
        files = task["files"][parent]
        if files:
            connection.read_parquet(files).create_view(parent)
        else:
            connection.execute(f"CREATE TABLE {parent} ({columns})")
    connection.execute("SET allowed_paths = ?", [[file for files in task["files"].values() for file in files]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def judge(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The text to run, or Refused. Only on a locked connection: DuckDB reads files while it parses IMPORT DATABASE."""
    kind = _only_statement(connection, sql)
    prefix = ""
    if kind == "EXPLAIN":
        # EXPLAIN ANALYZE runs what it explains, whatever that is; so look at that, and put the prefix back ourselves.
        match = _EXPLAIN.match(sql)
        if match is None:
            raise Refused("EXPLAIN is understood as `EXPLAIN SELECT …` or `EXPLAIN ANALYZE SELECT …`")
        prefix, sql = "EXPLAIN ANALYZE " if match["analyze"] else "EXPLAIN ", sql[match.end() :]
        kind = _only_statement(connection, sql)
    if kind != "SELECT":
        raise Refused(f"only SELECT and EXPLAIN may run here, not {kind.replace('_', ' ')}")
    found = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()
    tree = json.loads(found[0]) if found else {"error": True}
    if tree["error"]:  # a PRAGMA that DuckDB rewrites into a SELECT ends here
        raise Refused("only SELECT and EXPLAIN may run here")
    _check_names(connection, tree["statements"])
    return prefix + sql


def _only_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    found = connection.extract_statements(sql)
    if not found:
        raise Refused("there is no statement")
    if len(found) > 1:
        pivot = "; a PIVOT must name its values: ON topic IN ('a', 'b')" if "pivot" in sql.lower() else ""
        raise Refused(f"one statement at a time; this text holds several{pivot}")
    return str(found[0].type.name)


def _check_names(connection: duckdb.DuckDBPyConnection, tree: Any) -> None:
    """Refuse tables and functions that are not part of the archive."""
    tables, functions, table_functions, own = set(), set(), set(), set()
    for node in _nodes(tree):
        if node.get("type") == "BASE_TABLE":
            schema = node["catalog_name"] or (node["schema_name"] if node["schema_name"].lower() != "main" else "")
            tables.add(f"{schema}.{node['table_name']}" if schema else node["table_name"])
        elif node.get("type") == "TABLE_FUNCTION":
            table_functions.add(node["function"].get("function_name", "a table function").lower())
        elif node.get("class") == "FUNCTION":
            functions.add(node["function_name"].lower())
        own |= {entry["key"].lower() for entry in node.get("cte_map", {}).get("map", ())}
    # A WITH name could lend its name to a system view elsewhere in the statement, so it may not be one.
    system = {
        row[0].lower() for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE internal").fetchall()
    }
    usable = TABLES | {name for name in own - system if re.fullmatch(r"\w+", name)}
    for name in sorted(tables):
        if name.lower() not in usable:
            raise Refused(f"the table {name!r} is not part of the archive; there are events and attempts")
    for name in sorted(table_functions - TABLE_FUNCTIONS) + sorted(functions & REFUSED_FUNCTIONS):
        raise Refused(f"the function {name} may not be used here")


def _nodes(tree: Any) -> list[dict[str, Any]]:
    """Every object of the syntax tree; a stack, because statements may be deeper than Python recurses."""
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            found.append(node)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return found


def _run(connection: duckdb.DuckDBPyConnection, sql: str, most: int) -> pyarrow.Table:
    """Up to that many rows; the rest is never computed where DuckDB can stream."""
    import pyarrow

    reader = connection.execute(sql).to_arrow_reader(min(most, 100_000))
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if rows >= most:
            break
    return pyarrow.Table.from_batches(batches, schema=reader.schema)


def count_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB count the rows that it reads; `rows_read` tells after each query."""
    connection.execute("SET enable_profiling = 'no_output'")


def rows_read(connection: duckdb.DuckDBPyConnection) -> int | None:
    """The rows that the last query read from its tables, of what their filters let through; None: DuckDB cannot tell."""
    try:
        plan = json.loads(connection.get_profiling_information())
    except Exception:  # a query that was ended early has none
        return None
    return sum(int(node["operator_cardinality"]) for node in _nodes(plan) if node.get("operator_type") == "TABLE_SCAN")


def _limit(task: dict[str, Any]) -> None:
    """What the kernel enforces whatever DuckDB does: memory, CPU time, no file written, no core dumped."""
    resource.setrlimit(resource.RLIMIT_AS, (task["address_space"],) * 2)
    seconds = int(task["seconds"] * task["threads"]) + 10
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who then ends us


def _leave_with_parent() -> NoReturn:
    sys.stdin.buffer.read()
    os._exit(1)


def _one_sentence(message: str, folder: str) -> str:
    """DuckDB's message without the excerpt of the query, its line breaks, and where the archive lies."""
    text = " ".join(message.split("LINE 1:")[0].split()).replace(f"{folder}/", "")
    return text if len(text) <= _MESSAGE_MOST else text[:_MESSAGE_MOST] + "…"


def _fail(reason: str, message: str) -> None:
    _send(b"\n" + json.dumps({"reason": reason, "message": message}).encode() + b"\n")


def _reply(outcome: dict[str, Any], table: pyarrow.Table) -> None:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    _send(json.dumps(outcome).encode() + b"\n")
    _send(sink.getvalue())


def _send(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # DuckDB's threads need no farewell
