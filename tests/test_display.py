"""What a notebook shows: every object has a table, and nothing that a log holds becomes markup."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from logstore import Attempt, Explanation, InsertReport, Metrics, Page, display
from logstore.analysis import Answer
from logstore.loads import DeadLetter, Load
from logstore.maintenance import Entry, Finding, Health, Plan, Run, Step
from logstore.pipeline import Report
from tests.records_of import attempt, event

NOW = datetime(2026, 3, 1, 12, 30, 0, 5, tzinfo=UTC)
HOSTILE = "</td><script>alert(1)</script><img src=x onerror=alert(2)>&\"'"
STEP = Step(action="close", table="events", partition=HOSTILE, sql=HOSTILE, lock=HOSTILE, reason=HOSTILE)


def filled(kind: type[Any], **known: Any) -> Any:
    """An object whose texts are hostile, whatever else it holds."""
    plain = {"int": 1, "int | None": 1, "float": 0.5, "bool": False, "datetime": NOW, "datetime | None": NOW}
    values = {field.name: plain.get(str(field.type), HOSTILE) for field in fields(kind)}
    return kind(**{**values, **known})


def load() -> Load:
    return filled(Load, seconds={HOSTILE: 1.5}, sources=[{"path": HOSTILE}])  # type: ignore[no-any-return]


def objects() -> dict[str, Any]:
    plan = Plan.of((STEP,), now=NOW, catalogue=[])
    record = event(topic=HOSTILE, data={HOSTILE: HOSTILE}, metadata=[HOSTILE])
    tried = attempt(destination_id=HOSTILE, code=HOSTILE, response_data=HOSTILE)
    metrics = {"columns": (HOSTILE,), "rows": ((HOSTILE,),), "dimensions": (), "measures": (), "tiers": ()}
    return {
        "Event": record,
        "Attempt": tried,
        "Page": Page(data=(tried,), tiers=("hot",), warnings=(HOSTILE,), kind=Attempt, next="x"),
        "Explanation": filled(Explanation),
        "InsertReport": filled(InsertReport),
        "Metrics": filled(Metrics, **metrics, warnings=(HOSTILE,)),
        "Answer": Answer(table=pa.table({HOSTILE: [HOSTILE]}), seconds=0.1, warnings=(HOSTILE,), title=HOSTILE),
        "Load": load(),
        "DeadLetter": filled(DeadLetter),
        "Report": Report(load=load(), known={HOSTILE: 1}),
        "Plan": plan,
        "Run": Run(actor=HOSTILE, plan=plan, entries=[filled(Entry)]),
        "Health": Health(now=NOW, findings=(Finding(check="x", level="warn", what=HOSTILE, advice=HOSTILE),)),
    }


@pytest.mark.parametrize("name", objects())
def test_an_object_is_shown_as_a_table_and_hostile_text_as_text(name: str) -> None:
    shown = objects()[name]._repr_html_()
    assert "<table" in shown and "mathjax_ignore" in shown
    assert "<script" not in shown and "<img" not in shown and "</td><script" not in shown
    assert name == "InsertReport" or "&lt;script&gt;" in shown


def test_a_long_text_and_a_long_table_are_cut_and_say_so() -> None:
    shown = display.table(("n",), [("y" * 300,)] * 250)
    assert shown.count("<tr>") == display.ROWS_MOST + 1 and "50 more are there" in shown
    assert "y" * 200 + "…" in shown and "y" * 201 not in shown


def test_a_page_says_which_ways_lead_on() -> None:
    assert "1 event, newest first; older() has more" in Page(data=(event(),), next="x")._repr_html_()
    assert "1 event, oldest first; older() has more" in Page(data=(event(),), prev="x", order="asc")._repr_html_()
    assert "0 attempts, newest first; newer() has more" in Page(data=(), kind=Attempt, prev="x")._repr_html_()


def test_numbers_times_and_nothing_are_written_for_people() -> None:
    shown = display.fields({"n": 1, "f": 0.5, "t": NOW, "none": None, "yes": True}, caption="a & b")
    assert ">1</td>" in shown and ">0.5</td>" in shown and "2026-03-01T12:30:00.000005Z" in shown
    assert ">0.093288<" in display.fields({"rate": 0.09328797592568364})
    assert ">None<" not in shown and "true" in shown and "a &amp; b</caption>" in shown
