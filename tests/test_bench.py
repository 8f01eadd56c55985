"""The benchmark's own arithmetic: what is kept, what is broken, what two runs say; no test here depends on a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from bench import ad_hoc, history, report, sabotage
from bench.__main__ import CASES
from bench.measure import Comparison, Result, Taken, Timing, compare
from logstore import Attempt, LogStore, analysis, queries
from logstore.cursor import Position
from logstore.records import Selection
from tests.records_of import START, event
from tests.test_archive import make_cold


def result(ratio: float, *, promised: float = 1.5) -> Result:
    rival = Timing(minimum=1.0, median=1.0, spread=0.0)
    return Result(
        name="a page", product=rival.times(ratio), rivals={"bare <SQL>": rival}, promises={"bare <SQL>": promised}
    )


def test_ways_are_timed_by_turns_after_a_warm_up_and_their_minima_are_compared() -> None:
    order: list[str] = []
    taken = {"product": iter([9.0, 4.0, 2.0, 2.125]), "rival": iter([9.0, 4.25, 8.0, 4.0])}

    def way(name: str) -> Taken:
        order.append(name)
        return Taken(next(taken[name]))

    found = compare(
        Comparison(
            name="",
            product=lambda: way("product"),
            rivals={"rival": lambda: way("rival"), "limit": 4.25},
            promises={"rival": 0.5, "limit": 0.4},
            rounds=3,
        )
    )
    assert order == ["product", "rival"] * 4
    assert (found.product.minimum, found.product.median, found.product.spread) == (2.0, 2.125, 1.0)
    assert found.ratio("rival") == 0.5 and found.kept("rival")
    assert found.ratio("limit") == 0.5 and found.broken() == ["limit"]  # a limit is about the median


def test_a_minimum_that_nothing_came_near_is_timed_again_but_not_for_ever() -> None:
    def rounds(*product: float) -> int:
        taken, rival = iter([9.0, *product]), iter([9.0] * 9)
        compare(
            Comparison(
                name="",
                product=lambda: Taken(next(taken)),
                rivals={"rival": lambda: Taken(next(rival))},
                rounds=3,
            )
        )
        return len(product) - len(list(taken))

    assert rounds(5.0, 4.2, 4.0, 9.0) == 3
    assert rounds(5.0, 4.0, 6.0, 4.1, 9.0) == 4
    assert rounds(8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 9.0) == 6


def test_runs_are_kept_and_ratios_that_moved_by_more_than_30_percent_are_told(tmp_path: Path) -> None:
    for name, ratio in (("1", 1.0), ("2", 1.25), ("3", 1.7)):
        saved = history.save("small", {"paging": [result(ratio)]}, 1.0, tmp_path)
        saved.rename(tmp_path / f"{name}-small.json")
    first, second, third = history.runs("small", tmp_path)
    assert first["machine"]["cores"] >= 1 and first["seconds"] == 1.0
    assert not list(history.differences(history.ratios(first), history.ratios(second)))
    pair = history.last_two([first, second, third])
    assert pair is not None
    assert list(history.differences(*pair)) == [(("paging", "a page", "bare <SQL>"), 1.25, 1.7)]
    assert history.last_two([first]) is None


def test_the_report_marks_what_is_broken_and_escapes_names(tmp_path: Path) -> None:
    for ratio in (1.2, 1.7):
        saved = history.save("small", {"paging": [result(ratio)]}, 1.0, tmp_path)
        saved.rename(tmp_path / f"{ratio}-small.json")
    text = report.write(tmp_path).read_text()
    assert "<td class='n broken'>1.70 ×</td>" in text and "1.20 ×" not in text
    assert "<td>bare &lt;SQL&gt;</td>" in text


def test_postgres_is_asked_every_named_question_in_its_own_words(store: LogStore) -> None:
    """Its rows are as many as the archive's; the benchmark compares these two."""
    events = [event(f"e{n}", topic=f"t{n % 3}", time=START + timedelta(hours=n)) for n in range(40)]
    attempts = [
        Attempt.of(
            of, id=f"{of.id}-{number}", destination_id=f"d{n % 2}", time=of.time + timedelta(minutes=number),
            attempt_number=number, status="success" if n % 5 else "failed", code="200" if n % 5 else "503",
        )
        for n, of in enumerate(events[:30])
        for number in (1, 2)
    ]  # fmt: skip
    store.insert_many(events, attempts)
    for parent in ("events", "attempts"):
        make_cold(store, f"{parent}_2026_03", depth="cold")
    with psycopg.connect(store.database.conninfo, autocommit=True) as connection:
        for question in analysis.questions().values():
            ask, rival = ad_hoc._ways(store, connection, question)
            assert len(ask()) == len(rival()), question.name  # type: ignore[arg-type]


def test_a_sabotaged_cursor_is_another_statement_and_is_undone() -> None:
    assert {case for case, _ in sabotage.WAYS.values()} <= set(CASES)
    here = Position(datetime(2026, 8, 1, tzinfo=UTC), "att_1")
    asked = queries.question("attempt", Selection(), position=here, ascending=False, limit=11)
    right = asked.sql()[0]
    with sabotage.or_form_cursor():
        assert " OR " in asked.sql()[0]
    assert " OR " not in right and asked.sql()[0] == right
