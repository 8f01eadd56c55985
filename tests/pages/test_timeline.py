"""The time axis of an event: every moment in its order, idle gaps compressed and named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from logstore import Attempt, Event
from logstore.workbench.deliveries import deliveries
from logstore.workbench.event.timeline import axis, timeline

START = datetime(2026, 8, 1, 12, tzinfo=UTC)


def after(*seconds: float) -> list[datetime]:
    return [START + timedelta(seconds=s) for s in seconds]


@given(st.lists(st.integers(-(10**6), 10**12), min_size=1, max_size=30))
def test_moments_keep_their_order_and_equal_ones_their_place(micros: list[int]) -> None:
    moments = [START + timedelta(microseconds=m) for m in micros]
    known = axis(moments)
    assert list(known.places) == sorted(set(moments))
    places = list(known.places.values())
    assert places == sorted(places) and len(set(places)) == len(places)
    assert known.starts()[0] == min(moments)


def test_a_wait_is_a_gap_and_days_do_not_push_seconds_together() -> None:
    known = axis(after(0, 0.3, 30, 172_800, 172_801))
    assert [gap.duration.total_seconds() for gap in known.gaps] == [29.7, 172_770]
    first, second = (known.places[moment] for moment in after(172_800, 172_801))
    assert (second - first) / known.length > 0.05, "an attempt a second later is seen beside the one before"
    assert known.starts() == after(0, 30, 172_800)


def test_the_picture_names_gaps_codes_and_times_and_runs_nothing_of_the_payload() -> None:
    event = Event(id="e", tenant_id="t", time=START, topic="x", data={})
    made = [(0.4, "failed", "503", False), (31, "failed", "<b>", False), (7231, "success", "200", True)]
    attempts = [
        Attempt.of(event, id=f"a{i}", destination_id="<script>", status=status, time=moment, code=code, manual=manual)
        for i, (seconds, status, code, manual) in enumerate(made)
        for moment in after(seconds)
    ]
    early = Attempt.of(event, id="early", destination_id="d2", status="success", time=after(-2)[0])
    figure = timeline(event, deliveries(event, [*attempts, early], now=START), zone=UTC)
    assert [note.text for note in figure.layout.annotations] == ["31 s<br>idle", "2 h<br>idle"]
    ticks = [text.split("<br>")[0] for text in figure.layout.xaxis.ticktext]
    assert ticks == ["event", "−2 s", "+31 s", "+2 h"]
    drawn = figure.to_json()
    assert "<script>" not in drawn and "\\u003cscript" not in drawn and "&lt;b&gt;" in drawn
    assert "circle-open" in drawn, "by hand is a ring"


def test_hundreds_of_attempts_are_drawn_without_words_on_every_gap() -> None:
    event = Event(id="e", tenant_id="t", time=START, topic="x", data={})
    many = [
        Attempt.of(event, id=f"a{n}", destination_id="d", status="failed", time=START + timedelta(minutes=n))
        for n in range(500)
    ]
    figure = timeline(event, deliveries(event, many, now=START), zone=UTC)
    assert len(figure.layout.annotations) == 0
    assert len(figure.layout.xaxis.ticktext) == 2


def test_destinations_whose_names_begin_alike_have_a_line_each() -> None:
    event = Event(id="e", tenant_id="t", time=START, topic="x", data={})
    names = [f"{'d' * 60}-{number}" for number in range(3)]
    attempts = [
        Attempt.of(event, id=name, destination_id=name, status="failed", time=START + timedelta(seconds=1))
        for name in names
    ]
    figure = timeline(event, deliveries(event, attempts, now=START), zone=UTC)
    marks = figure.data[-1]
    assert list(marks.y) == [2, 1, 0], "the first is on top"
    assert list(figure.layout.yaxis.tickvals) == [2, 1, 0]
    assert len(set(figure.layout.yaxis.ticktext)) == 1 and len(figure.layout.yaxis.ticktext) == 3
