"""Walking the pages of a list, either way, in either order, at any page size, gives exactly the list."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore import InvalidCursor, InvalidSelection, LogStore, Page, Selection, TimeFilter, Unimplemented
from logstore.cursor import Position, _to_base62, encode
from logstore.records import to_micros
from tests import records_of
from tests.records_of import START, attempt, event, unique

selections = st.builds(
    Selection,
    tenant_ids=st.sampled_from([(), ("acme",), ("acme", "bravo"), ("nobody",)]),
    topics=st.sampled_from([(), ("t1",), ("t1", "t2"), ("t1", "none")]),
    time=st.builds(
        TimeFilter,
        gte=st.none() | records_of.times,
        lt=st.none() | records_of.times,
        gt=st.none() | records_of.times,
        lte=st.none() | records_of.times,
    ),
)
attempt_selections = st.builds(
    lambda base, events, destinations, status: base.but(event_ids=events, destination_ids=destinations, status=status),
    selections,
    st.sampled_from([(), (), ("e1",), ("e1", "e2")]),
    st.sampled_from([(), ("d1",), ("d1", "d2")]),
    st.sampled_from([None, None, "failed"]),
)


def matches(selection: Selection, record: Any) -> bool:
    """What a selection means, in Python."""
    bounds = {">=": record.time.__ge__, "<=": record.time.__le__, ">": record.time.__gt__, "<": record.time.__lt__}
    return (
        (not selection.tenant_ids or record.tenant_id in selection.tenant_ids)
        and (not selection.topics or record.topic in selection.topics)
        and (not selection.event_ids or getattr(record, "event_id", record.id) in selection.event_ids)
        and (not selection.destination_ids or record.destination_id in selection.destination_ids)
        and (selection.status is None or record.status == selection.status)
        and all(bounds[operator](bound) for operator, bound in selection.time.bounds())
    )


def walk(ask: Callable[..., Page[Any]], selection: Selection, *, limit: int, order: str) -> tuple[list[Any], list[Any]]:
    """The records of all pages forward, and again backward from the end; the rules of cursors checked on the way."""
    page = ask(selection, limit=limit, order=order)
    assert page.prev is None
    forward = list(page)
    for _ in range(10_000):
        if page.next is None:
            break
        page = ask(selection, limit=limit, order=order, next=page.next)
        assert page.prev is not None
        assert page.data, "a next cursor was given although nothing follows"
        forward += page
    if page.prev is None:
        return forward, forward
    back = list(page)
    for _ in range(10_000):
        if page.prev is None:
            break
        page = ask(selection, limit=limit, order=order, prev=page.prev)
        assert page.next is not None
        back = [*page, *back]
    return forward, back


def check_walks(ask: Callable[..., Page[Any]], selection: Selection, expected: list[Any], sizes: set[int]) -> None:
    for order, listed in (("asc", expected), ("desc", expected[::-1])):
        for limit in sizes:
            forward, back = walk(ask, selection, limit=limit, order=order)
            assert forward == listed
            assert back == listed


def some_sizes(count: int) -> set[int]:
    return {1, 2, 3, max(1, count - 1), max(1, count), count + 1}


@settings(max_examples=40)
@given(st.data())
def test_every_walk_over_attempts_is_the_list(any_store_module: LogStore, data: st.DataObject) -> None:
    store = any_store_module
    records = unique(data.draw(st.lists(records_of.attempts, max_size=14)))
    with store.database.transaction() as connection:
        connection.execute("DELETE FROM attempts")
    store.insert_many(attempts=records)
    for selection in [Selection(), *data.draw(st.lists(attempt_selections, min_size=2, max_size=3))]:
        expected = [record for record in records if matches(selection, record)]
        check_walks(store.list_attempt, selection, expected, some_sizes(len(expected)))


@settings(max_examples=25)
@given(st.data())
def test_every_walk_over_events_is_the_list(any_store_module: LogStore, data: st.DataObject) -> None:
    store = any_store_module
    records = unique(data.draw(st.lists(records_of.events, max_size=14)))
    with store.database.transaction() as connection:
        connection.execute("DELETE FROM events")
    store.insert_many(records)
    for selection in [Selection(), *data.draw(st.lists(selections, min_size=2, max_size=3))]:
        expected = [record for record in records if matches(selection, record)]
        check_walks(store.list_event, selection, expected, some_sizes(len(expected)))


def test_ten_records_inside_one_millisecond_page_without_loss(store: LogStore) -> None:
    records = [attempt(f"a{i}", time=START + timedelta(microseconds=123_400 + i)) for i in range(10)]
    store.insert_many(attempts=records)
    check_walks(store.list_attempt, Selection(), records, set(range(1, 12)))


@settings(max_examples=20)
@given(before=st.lists(records_of.attempts, min_size=4, max_size=10), during=st.lists(records_of.attempts, max_size=10),
       limit=st.integers(1, 4), order=st.sampled_from(["asc", "desc"]))  # fmt: skip
def test_rows_inserted_during_a_walk_never_repeat_or_hide_an_old_one(
    any_store_module: LogStore, before: list[Any], during: list[Any], limit: int, order: str
) -> None:
    store = any_store_module
    with store.database.transaction() as connection:
        connection.execute("DELETE FROM attempts")
    store.insert_many(attempts=before)
    old = [(record.time, record.id) for record in unique(before)]
    arrivals = iter(during)
    page = store.list_attempt(limit=limit, order=order)
    seen = [(record.time, record.id) for record in page]
    for _ in range(100):
        store.insert_many(attempts=[record for record in [next(arrivals, None)] if record])
        if page.next is None:
            break
        page = store.list_attempt(limit=limit, order=order, next=page.next)
        seen += [(record.time, record.id) for record in page]
    assert len(seen) == len(set(seen)), "a record appeared twice"
    assert [key for key in seen if key in set(old)] == [k for k in (old if order == "asc" else old[::-1]) if k in seen]
    assert set(old) <= set(seen)


def test_a_page_past_the_end_is_empty_and_keeps_a_way_back(store: LogStore) -> None:
    records = [attempt(f"a{i}", time=START + timedelta(seconds=i)) for i in range(3)]
    store.insert_many(attempts=records)
    for order, listed in (("asc", records), ("desc", records[::-1])):
        last = encode("attempt", Position(listed[-1].time, listed[-1].id))
        beyond = store.list_attempt(order=order, next=last)
        assert (beyond.data, beyond.next) == ((), None)
        assert beyond.prev is not None
        assert list(store.list_attempt(order=order, prev=beyond.prev, limit=2)) == listed[-2:]
        first = encode("attempt", Position(listed[0].time, listed[0].id))
        before = store.list_attempt(order=order, prev=first)
        assert (before.data, before.prev) == ((), None)
        assert before.next is not None
        assert list(store.list_attempt(order=order, next=before.next, limit=2)) == listed[:2]


def test_an_empty_list_has_one_empty_page_without_neighbours(store: LogStore) -> None:
    page = store.list_event()
    assert (page.data, page.next, page.prev, page.older(), page.newer()) == ((), None, None, None, None)


def test_a_version_1_cursor_of_the_seed_is_read(store: LogStore) -> None:
    records = [event(f"e{i}", time=START + timedelta(seconds=i)) for i in range(5)]
    store.insert_many(records)
    old = _to_base62(f"evtv01:{to_micros(records[2].time) // 1000}::{records[2].id}".encode())
    assert [e.id for e in store.list_event(next=old)] == ["e1", "e0"]
    assert [e.id for e in store.list_event(prev=old)] == ["e4", "e3"]


def test_a_cursor_stays_usable_when_filters_or_order_change(store: LogStore) -> None:
    records = [attempt(f"a{i}", time=START + timedelta(seconds=i), topic=f"t{i % 2}") for i in range(8)]
    store.insert_many(attempts=records)
    token = store.list_attempt(limit=3).next
    assert [a.id for a in store.list_attempt(next=token)] == ["a4", "a3", "a2", "a1", "a0"]
    assert [a.id for a in store.list_attempt(Selection(topics=("t0",)), next=token)] == ["a4", "a2", "a0"]
    assert [a.id for a in store.list_attempt(next=token, order="asc")] == ["a6", "a7"]


def test_an_empty_id_jumps_to_the_start_of_a_microsecond(store: LogStore) -> None:
    records = [event(f"e{i}", time=START + timedelta(seconds=i)) for i in range(3)]
    store.insert_many(records)
    jump = encode("event", Position(records[1].time, ""))
    assert [e.id for e in store.list_event(next=jump)] == ["e0"]
    assert [e.id for e in store.list_event(next=jump, order="asc")] == ["e1", "e2"]


def test_older_and_newer_walk_in_either_order(store: LogStore) -> None:
    records = [event(f"e{i}", time=START + timedelta(seconds=i)) for i in range(4)]
    store.insert_many(records)
    newest = store.list_event(limit=2)
    older = newest.older()
    assert older is not None and [e.id for e in older] == ["e1", "e0"]
    assert older.older() is None
    back = older.newer()
    assert back is not None and back.data == newest.data
    oldest = store.list_event(limit=2, order="asc")
    newer = oldest.newer()
    assert newer is not None and [e.id for e in newer] == ["e2", "e3"]


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": 1001}, {"limit": True}, {"limit": "5"}, {"order": "up"},
                                       {"next": "a", "prev": "b"}])  # fmt: skip
def test_a_page_that_cannot_be_asked_for_is_refused(store: LogStore, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidSelection):
        store.list_attempt(**arguments)


def test_a_broken_cursor_never_shows_the_first_page(store: LogStore) -> None:
    store.insert_many([event()])
    with pytest.raises(InvalidCursor):
        store.list_event(next="broken")
    with pytest.raises(InvalidCursor, match="another list"):
        store.list_event(prev=encode("attempt", Position(START, "x")))


def test_events_say_which_operation_answers_what_they_do_not(store: LogStore) -> None:
    with pytest.raises(Unimplemented, match="list_attempt"):
        store.list_event(Selection(destination_ids=("d",)))
    with pytest.raises(InvalidSelection, match="list_attempt"):
        store.list_event(Selection(status="failed"))
