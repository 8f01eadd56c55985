"""The filter language of `Selection.where`: one text, one tree, the same answer in every engine.

    status = "failed" and not (data.amount < 100 or metadata.region in ["eu", "us"])

    grammar.lark   how a filter is written
    parse.py       text -> tree, with literals.py for its words and mistakes.py for its errors
    tree.py        the tree; str() writes it back
    python.py      what it means: the reference
    postgres.py    tree -> SQLAlchemy condition
    duckdb.py      tree -> SQL and parameters
    (Spark's emitter is logstore.pipeline.filters.to_spark: only the pipeline knows Spark.)

A comparison with a missing field, JSON null or NULL is false and its negation true. A text in quotes matches JSON
strings; a number matches JSON numbers below 10^15 and text that looks like a number (tree.NUMBER); true and false
match JSON booleans. Order is that of numbers or, for text, of its UTF-8 bytes. A path leads through object keys only.
"""

from logstore.filters.duckdb import to_duckdb
from logstore.filters.parse import parse
from logstore.filters.postgres import to_postgres
from logstore.filters.python import matches
from logstore.filters.tree import And, Compare, Field, Filter, Or, Value

__all__ = ["And", "Compare", "Field", "Filter", "Or", "Value", "matches", "parse", "to_duckdb", "to_postgres"]
