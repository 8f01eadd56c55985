"""The view in the URL, ranges of time, and text made harmless."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore import Event, Selection, TimeFilter
from logstore.workbench import texts, times, url
from logstore.workbench.event import snippets
from logstore.workbench.view import UnreadableLink, View

NOW = datetime(2026, 8, 15, 12, 34, 56, 789, tzinfo=UTC)
texts_of_urls = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=30)


@given(
    tenants=st.lists(texts_of_urls, max_size=3, unique=True),
    range_=st.sampled_from([*times.RANGES, None]),
    zone=st.sampled_from(["utc", "browser"]),
    limit=st.integers(1, 1000),
    open_=st.none() | texts_of_urls,
)
def test_a_view_comes_back_from_its_url(
    tenants: list[str], range_: str | None, zone: str, limit: int, open_: str | None
) -> None:
    time = TimeFilter(gte=NOW) if range_ is None else TimeFilter()
    selection = Selection(tenant_ids=tuple(tenants), time=time)
    view = View(
        selection=selection,
        range=range_,
        zone=zone,
        limit=limit,
        open=open_,
        columns=("time", "id"),
        everything=zone == "utc",
    )
    assert View.from_query(view.to_query()) == view


def test_a_plain_url_is_the_usual_view_and_writes_nothing() -> None:
    assert View.from_query([]) == View()
    assert View().to_query() == []


def test_parameters_of_others_are_left_alone() -> None:
    assert View.from_query([("utm_source", "mail")]) == View()


def test_a_range_and_exact_times_exclude_each_other() -> None:
    with pytest.raises(UnreadableLink) as caught:
        View.from_query([("range", "7d"), ("time.gte", "2026-08-01T00:00:00Z")])
    assert caught.value.name == "range"


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "1500-01-01T00:00:00Z"])
def test_a_time_that_no_log_reaches_is_refused_by_name(time: str) -> None:
    for name in ("gte", "lte", "gt", "lt"):
        with pytest.raises(UnreadableLink) as caught:
            View.from_query([(f"time.{name}", time)])
        assert caught.value.name == f"time.{name}"


@pytest.mark.parametrize(("limit", "runs"), [(10, 0), (25, 1)])
def test_a_fragment_runs_the_whole_page_only_when_the_view_changes(
    monkeypatch: pytest.MonkeyPatch, limit: int, runs: int
) -> None:
    """A poll may call back for a table that is gone, with the URL of before: running the page would draw the old one."""
    called: list[str] = []
    parameters = SimpleNamespace(from_dict=lambda _: called.append("written"))
    monkeypatch.setattr(url, "pairs", lambda: [("limit", "10")])
    monkeypatch.setattr(url, "get_script_run_ctx", lambda: SimpleNamespace(fragment_ids_this_run=["polls"]))
    monkeypatch.setattr(url, "st", SimpleNamespace(query_params=parameters, rerun=lambda: called.append("run")))
    url.change(lambda view: view.but(limit=limit))
    assert called == ["written", "run"] * runs


def test_narrowing_keeps_the_place_and_another_range_does_not() -> None:
    view = View(next="token", open="row")
    assert view.select(tenant_ids=("acme",)).next == "token"
    assert view.over("1h").next is None


def test_two_places_in_one_list_are_refused() -> None:
    with pytest.raises(UnreadableLink) as caught:
        View.from_query([("next", "a"), ("prev", "b")])
    assert caught.value.name == "prev"


@pytest.mark.parametrize("limit", ["0010000", "1001", "٣", "-1", ""])
def test_a_limit_that_no_page_has_is_refused(limit: str) -> None:
    with pytest.raises(UnreadableLink) as caught:
        View.from_query([("limit", limit)])
    assert caught.value.name == "limit"


def test_what_was_said_of_a_range_or_a_list_is_dropped_with_it() -> None:
    view = View(everything=True).opened("row", "acme")
    assert view.over("1h") == View(range="1h")
    assert view.select(tenant_ids=("globex",)) == View(everything=True).select(tenant_ids=("globex",))


def test_a_relative_range_is_open_above_so_that_new_records_show() -> None:
    asked = View(range="1h").asked(NOW)
    assert asked.time == TimeFilter(gte=datetime(2026, 8, 15, 11, 34, 50, tzinfo=UTC))


@given(st.timedeltas(timedelta(microseconds=1), timedelta(days=4000)))
def test_a_histogram_has_at_most_120_bars_and_covers_the_window(span: timedelta) -> None:
    window = times.Window(NOW, NOW + span)
    width = times.bar_width(window.span)
    origin = times.bar_origin(window.lower, width, UTC)
    starts = times.bar_starts(origin, window.upper, width)
    assert len(starts) <= times.BARS_MOST + 2
    assert starts[0] <= window.lower
    assert starts[-1] + width >= window.upper


def test_bars_of_days_start_at_midnight_of_the_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    origin = times.bar_origin(NOW, timedelta(days=1), berlin)
    assert origin == datetime(2026, 8, 14, 22, tzinfo=UTC)


@pytest.mark.parametrize("hostile", ["<script>alert(1)</script>", "[x](javascript:1)", ":red[x]", "$x$", "`a`", "*b*"])
def test_markdown_marks_are_all_escaped(hostile: str) -> None:
    escaped = texts.markdown(hostile)
    assert escaped.replace("\\", "") == hostile.replace("\\", "")
    assert all(escaped[i - 1] == "\\" for i, c in enumerate(escaped) if c in "<>[]()$`*:")


def test_addresses_do_not_become_links() -> None:
    assert "://" not in texts.markdown("see http://203.0.113.1/x").replace("\\", "").replace("://\u200b", "")


def test_plotly_labels_hold_no_tags() -> None:
    assert texts.label("<b>bold</b>") == "&lt;b&gt;bold&lt;/b&gt;"


def test_a_small_payload_is_shown_whole_and_large_integers_keep_their_digits() -> None:
    shown, whole = texts.shown({"id": 12345678901234567890, "list": [1, 2.5, None, True]})
    assert whole
    assert shown == {"id": "12345678901234567890 (a number)", "list": [1, 2.5, None, True]}


@pytest.mark.parametrize(
    "huge",
    [
        {"text": "x" * 1_000_000},
        {f"key{i}": i for i in range(100_000)},
        [[i] * 20 for i in range(20_000)],
        {"k" * 500_000: {"v": "y" * 500_000}},
        [{"a": {"b": {"c": ["z" * 900] * 100}}} for _ in range(100)],
    ],
)
def test_a_huge_payload_is_shown_in_part(huge: object) -> None:
    shown, whole = texts.shown(huge)
    assert not whole
    assert len(json.dumps(shown)) < 4 * texts.SHOWN_MOST


def test_a_deep_payload_is_shown_as_deep_as_anybody_opens_it() -> None:
    deep: object = "bottom"
    for _ in range(900):
        deep = {"down": deep}
    shown, whole = texts.shown(deep)
    assert not whole
    assert len(texts.dump(shown)) < 20_000


def test_sql_copies_quote_whatever_an_id_holds() -> None:
    event = Event(id="it's\\ a\ntrap'; DROP TABLE events; --", tenant_id="t", time=NOW, topic="x", data={})
    assert "E'it\\'s\\\\ a\\U0000000Atrap\\'; DROP TABLE events; --'" in snippets.as_sql(event)
