"""Records for tests: by hand with `event` and `attempt`, at random with the strategies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from logstore import Attempt, Event

START = datetime(2026, 3, 1, tzinfo=UTC)


def event(id: str = "evt_1", **fields: Any) -> Event:
    given: dict[str, Any] = {"tenant_id": "acme", "time": START, "topic": "order.created", "data": {"n": 1}}
    return Event(id=id, **{**given, **fields})


def attempt(id: str = "att_1", **fields: Any) -> Attempt:
    given: dict[str, Any] = {
        "event_id": "evt_1",
        "tenant_id": "acme",
        "destination_id": "des_1",
        "topic": "order.created",
        "status": "success",
        "time": START,
        "attempt_number": 1,
        "event_time": START,
        "event_data": {"n": 1},
    }
    return Attempt(id=id, **{**given, **fields})


# Ids that break naive code: the cursor's own separator, quotes, other scripts, every length up to 300 characters.
_text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12)
ids = st.one_of(
    st.sampled_from(["a", "b", "::", "a::b", "'", '"', "ü", "日本", "😀", "\\", "%s", "a" * 300, "é" * 300, "Z", "~"]),
    _text,
)

# Times that collide: equal, inside one millisecond, on the bounds of months, and a few far apart.
_moments = st.sampled_from(
    [
        START - timedelta(microseconds=1),
        START,
        START + timedelta(days=31),
        START + timedelta(days=30, hours=23, minutes=59),
    ]
)
times = st.builds(
    lambda base, micros, months: base + timedelta(microseconds=micros, days=30 * months),
    _moments,
    st.integers(0, 5) | st.integers(0, 2000),
    st.integers(0, 2),
)
tenants = st.sampled_from(["acme", "bravo"])
topics = st.sampled_from(["t1", "t2", "t3"])
destinations = st.sampled_from(["d1", "d2", "d3"])
statuses = st.sampled_from(["success", "failed"])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)

attempts = st.builds(
    attempt,
    id=ids,
    time=times,
    tenant_id=tenants,
    destination_id=destinations,
    topic=topics,
    status=statuses,
    event_id=st.sampled_from(["e1", "e2", "e3"]),
    code=st.none() | st.sampled_from(["200", "500"]),
    attempt_number=st.integers(1, 5),
)
events = st.builds(event, id=ids, time=times, tenant_id=tenants, topic=topics, data=json_values)


def unique(records: list[Any]) -> list[Any]:
    """Of records with the same time and id, the last; in the order of (time, id) as bytes."""
    kept = {(record.time, record.id): record for record in records}
    return [kept[key] for key in sorted(kept, key=lambda key: (key[0], key[1].encode()))]
