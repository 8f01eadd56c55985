"""Records and filters for properties: hostile keys, numbers and texts, drawn so that filters often hit."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from logstore.filters.tree import quoted
from logstore.records import STATUSES, rfc3339

KEYS = (
    "a", "b", "*", "a.b", "0", "1", "-1", "we\"ird", "request-id", "in", "", "😀", "é", "$", "$.a", "/", "a/b", "~", "~1",
    "#", "[0]", "[*]", "'", "it''s", "back\\slash", "\\", "\\'", " ", "\n", "?", "%", "%(a)s", "%s", ":a", "{a}", ";--",
    "__[POSTCOMPILE_param_1]", "NULL", "true", "@", "..", "**", "\U0001f600.\U0001f600", "data", "ﬀ", "\x7f",
)  # fmt: skip

# JSON as it may be written into a file, numbers that Python would not write among them.
RAW_NUMBERS = (
    "0", "-0", "-0.0", "1", "1.0", "1.10", "-1.5", "7", "5", "100", "1e2", "1e5", "500", "1e-7", "0.1", "1e22",
    "1e400", "-1e400",
    "123456789012345", "1234567890123456", "123456789012345678", "999999999999999", "999999999999999.5",
    "999999999999999.99", "-999999999999999.99", "1000000000000000.0", "18446744073709551616", "0.30000000000000004",
    "0.1000000000000000055511151231257827021181583404541015625", "1e-98", "1e-100", "1e-400", "5e-324", "1e14", "1e15",
    "1" + "0" * 1200, "0." + "0" * 1200 + "1", "0.30000000000000000000000000000000000000001",
)  # fmt: skip
TEXTS = (
    "", "a", "ab", "A", "b", "é", "😀", "\uffff", "x%", "x_y", "%", "_", "\\", "'", '"', "it's", "a\nb", "1", "1\n",
    "1.10", "1.1", "7",
    "007", "1e5", "1E5", "1e+05", "1e400", " 1", "1 ", "+1", ".5", "5.", "0x10", "NaN", "Infinity", "-0", "-7.25e-2", "１",
    "1_0",
    "123456789012345", "1234567890123456", "0.30000000000000004", "0." + "1" * 30, "0." + "1" * 31, "1e99", "1e100",
    "true", "false", "null", "eu", "failed", "500", "0500", "{}", "[1]", "?", "%(x)s", ":x", "\x01", "'; drop table t; --",
    "x" * 1024, "x" * 1025, "é" * 600,
)  # fmt: skip

_TEXT = st.one_of(
    st.sampled_from(TEXTS), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)
)
_USUAL_KEY = st.sampled_from(("a", "*", "0"))  # few, so that filters meet what they ask for
_KEY = st.one_of(_USUAL_KEY, _USUAL_KEY, _USUAL_KEY, st.sampled_from(KEYS), _TEXT.filter(lambda text: len(text) < 50))
_NUMBER_TEXT = st.one_of(
    st.sampled_from(RAW_NUMBERS),
    st.integers(-(10**16), 10**16).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=2).map(str),
)
_ATOM = st.one_of(_NUMBER_TEXT, _TEXT.map(json.dumps), st.sampled_from(["null", "true", "false", "[]", "{}"]))


def _object(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.dictionaries(_KEY, values, max_size=5)
    return pairs.map(lambda pairs: "{" + ", ".join(f"{json.dumps(k)}: {v}" for k, v in pairs.items()) + "}")


def _array(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=3).map(lambda items: f"[{', '.join(items)}]")


_NESTED = st.one_of(_ATOM, _object(_ATOM), _array(st.one_of(_ATOM, _object(_ATOM))), _object(_object(_ATOM)))
DOCUMENTS = st.one_of(_object(_NESTED), _object(_NESTED), _object(_NESTED), _NESTED)

_TIMES = (
    datetime(2026, 8, 1, tzinfo=UTC),
    datetime(2026, 8, 1, 12, 0, 0, 123456, tzinfo=UTC),
    datetime(1600, 2, 29, 1, 2, 3, 4, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=UTC),
)
TIMES = st.sampled_from(_TIMES)


def rows(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """A row of the table with its JSON columns as text; id is left to the caller."""
    text, key = _TEXT, _TEXT.filter(bool)
    shared = {
        "tenant_id": key,
        "destination_id": text,
        "topic": key,
        "time": TIMES,
        "eligible_for_retry": st.booleans(),
    }
    if kind == "event":
        return st.fixed_dictionaries({**shared, "data": DOCUMENTS, "metadata": DOCUMENTS})
    return st.fixed_dictionaries(
        {
            **shared,
            "event_id": key,
            "status": st.sampled_from(STATUSES),
            "attempt_number": st.sampled_from([0, 1, 2, 7, 2**31 - 1]),
            "manual": st.booleans(),
            "code": st.one_of(st.none(), text),
            "response_data": st.one_of(st.none(), st.just("null"), DOCUMENTS),
            "event_time": TIMES,
            "event_data": DOCUMENTS,
            "event_metadata": DOCUMENTS,
        }
    )


# A document for every kind of thing that can stand under a key, or in place of an object.
DOCUMENTS_OF_ONE_KEY = [
    *(
        f'{{"k": {atom}}}'
        for atom in [*RAW_NUMBERS, *map(json.dumps, TEXTS), "null", "true", "false", "[]", "{}", '["a"]', "[1]"]
    ),
    *("{}", "null", "[]", '"k"', "1"),
]


def event_row(data: str) -> dict[str, Any]:
    """An event with this payload and nothing else worth asking for."""
    shared = {"tenant_id": "t", "destination_id": "", "topic": "x", "time": _TIMES[0], "eligible_for_retry": True}
    return {**shared, "data": data, "metadata": "{}"}


def documents_of_keys() -> list[str]:
    """For each key: it alone, it inside itself, an array under it; then documents without any."""
    found = []
    for key in map(json.dumps, KEYS):
        found += [f'{{{key}: "v"}}', f'{{{key}: {{{key}: "v"}}}}', f'{{{key}: ["v", "v"]}}']
    return [*found, '["v", "v"]', '[{"0": "v"}]', '"v"', "{}"]


def comparisons() -> list[str]:
    """Every comparison with every literal, to be written behind a field."""
    texts = [quoted(text) for text in TEXTS]
    return [
        *(f"{operator} {number}" for operator in ("=", "<", "<=", ">", ">=") for number in LITERAL_NUMBERS),
        *(f"{operator} {text}" for operator in ("=", "<", "contains", "startswith", "endswith") for text in texts),
        *(
            "= true",
            "= false",
            "exists",
            "in []",
            'in [1, "a", true]',
            "in [1, 100.0, 7]",
            f"in [{', '.join(texts[:40])}]",
        ),
    ]


def written_key(key: str) -> str:
    return "'" + json.dumps(key)[1:-1].replace("'", "\\'") + "'"


_PATHS = st.lists(_KEY, min_size=1, max_size=3).map(lambda keys: "".join("." + written_key(key) for key in keys))
LITERAL_NUMBERS = (
    "0", "-0", "1", "1.0", "1.1", "1.10", "-1.5", "5", "7", "007", "100", "1e2", "1e5", "500", "0.1", "1e-7", "1E15",
    "1e+22",
    "999999999999999", "1e-98", "1e-99", "0.30000000000000004", "-7.25E-2", "999999999999999.999", "1e99",
)  # fmt: skip
_LITERAL_NUMBERS = st.sampled_from(LITERAL_NUMBERS)
_LITERAL_TEXTS = _TEXT.filter(lambda text: len(text) < 300).map(quoted)
_BOOLEANS = st.sampled_from(["true", "false", "TRUE"])
_ORDERED = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_INSIDE = st.sampled_from(["contains", "startswith", "endswith", "CONTAINS"])
_EQUAL = st.sampled_from(["=", "!="])


def _time_text(time: datetime) -> st.SearchStrategy[str]:
    nudges = [timedelta(0)] if time.year in (1, 9999) else [timedelta(microseconds=n) for n in (-1, 0, 1)]
    return st.sampled_from([quoted(rfc3339(time + nudge)) for nudge in nudges])


def _leaves(fields: st.SearchStrategy[str], kinds: str) -> st.SearchStrategy[str]:
    times = TIMES.flatmap(_time_text)
    forms = {
        "text": [
            st.tuples(fields, _ORDERED, _LITERAL_TEXTS),
            st.tuples(fields, _INSIDE, _LITERAL_TEXTS),
        ],
        "number": [st.tuples(fields, _ORDERED, _LITERAL_NUMBERS)],
        "boolean": [st.tuples(fields, _EQUAL, _BOOLEANS)],
        "time": [st.tuples(fields, _ORDERED, times)],
    }
    values = {"text": _LITERAL_TEXTS, "number": _LITERAL_NUMBERS, "boolean": _BOOLEANS, "time": times}
    named = kinds.split()
    lists = st.lists(st.one_of([values[kind] for kind in named]), max_size=4).map(lambda v: f"[{', '.join(v)}]")
    member = st.tuples(fields, st.sampled_from(["in", "not in", "NOT  IN"]), lists)
    exists = st.tuples(fields, st.just("exists"))
    return st.one_of([*(form for kind in named for form in forms[kind]), member, exists]).map(" ".join)


def filters(kind: str) -> st.SearchStrategy[str]:
    """The text of a filter that parses."""
    attempt = kind == "attempt"
    roots = st.sampled_from(["data", "metadata", *(["response_data", "event_data"] if attempt else [])])
    paths = st.tuples(roots, _PATHS).map("".join)
    texts = ["id", "tenant_id", "destination_id", "topic", *(["event_id", "status", "code"] if attempt else [])]
    leaves = [
        _leaves(paths, "text number boolean"),
        _leaves(paths, "text number boolean"),
        _leaves(st.sampled_from(texts), "text number"),
        _leaves(st.sampled_from(["time", *(["event_time"] if attempt else [])]), "time"),
        _leaves(st.sampled_from(["eligible_for_retry", *(["manual"] if attempt else [])]), "boolean"),
        roots.map(lambda root: f"{root} exists"),
    ]
    if attempt:
        leaves.append(_leaves(st.just("attempt_number"), "number"))
    return st.recursive(
        st.one_of(leaves),
        lambda inner: st.one_of(
            inner.map(lambda text: f"not ({text})"),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: " and ".join(f"({part})" for part in parts)),
            st.lists(inner, min_size=2, max_size=3).map(" or ".join),
            st.lists(inner, min_size=2, max_size=3).map(" AND ".join),
        ),
        max_leaves=4,
    )
