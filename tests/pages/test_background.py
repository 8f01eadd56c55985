"""An answer beside the page: drawn at once when it is there, in its place when it comes, a sentence if it takes too long."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import deadline, segments
from logstore.workbench import background, cached
from tests.pages.conftest import said

ASKED: list[Callable[[], str]] = []  # what the page below computes


def _page() -> None:
    import streamlit as st

    from logstore.workbench import background
    from tests.pages.test_background import ASKED

    background.later(("asked",), ASKED[0], lambda answer: st.text(f"the answer is {answer}"), words="Counting…")


@pytest.fixture
def ask(workbench: Callable[[str], None], log: str) -> Callable[[Callable[[], str]], AppTest]:
    workbench(log)

    def run(compute: Callable[[], str]) -> AppTest:
        ASKED[:] = [compute]
        return AppTest.from_function(_page, default_timeout=20).run()

    return run


def test_an_answer_that_comes_soon_is_drawn_in_the_same_run_and_kept_for_all_sessions(
    ask: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    for _ in range(3):
        app = ask(lambda: asked.append(1) or f"{len(asked)}")
        assert "the answer is 1" in said(app)
    monkeypatch.setattr(background, "KEPT_SECONDS", -1.0)
    assert "the answer is 2" in said(ask(lambda: asked.append(1) or f"{len(asked)}"))


def test_the_page_does_not_wait_for_a_slow_answer(ask: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PATIENCE", 0.0)
    may, began = threading.Event(), threading.Event()

    def slow() -> str:
        began.set()
        may.wait(20)
        return "late"

    app = ask(slow)
    assert "Counting…" in said(app) and "late" not in said(app)
    may.set()
    assert began.wait(20)
    monkeypatch.setattr(background, "PATIENCE", 20.0)
    assert "the answer is late" in said(app.run())


def _two() -> None:
    import streamlit as st

    from logstore.errors import InvalidSelection
    from logstore.workbench import background, frame
    from tests.pages.test_background import ASKED

    with frame.sentences(), background.together():
        for number, compute in enumerate(ASKED):
            background.later((number,), compute, st.text, words="Counting…")
        st.text("the rows")
        if len(ASKED) == 1:
            raise InvalidSelection("the rows cannot be read")


def test_answers_that_are_asked_together_are_counted_side_by_side_and_stand_where_they_were_asked(
    workbench: Callable[[str], None], log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench(log)
    monkeypatch.setattr(background, "PATIENCE", 20.0)
    both = threading.Barrier(2)
    said_ = said(_app_of(lambda: f"first {both.wait(10) is not None}", lambda: f"second {both.wait(10) is not None}"))
    places = [said_.index(words) for words in ("first True", "second True", "the rows")]
    assert places == sorted(places)


def test_an_answer_stands_beside_the_sentence_of_what_could_not_be_drawn(
    workbench: Callable[[str], None], log: str
) -> None:
    workbench(log)
    shown = said(_app_of(lambda: "counted"))
    assert "counted" in shown and "The rows cannot be read" in shown


def _app_of(*computes: Callable[[], str]) -> AppTest:
    ASKED[:] = computes
    return AppTest.from_function(_two, default_timeout=30).run()


def _plain(app: AppTest) -> str:
    return said(app).replace("\\", "")


def _sleep() -> str:
    with cached.store().database.transaction() as connection, deadline.limited(connection):
        connection.execute("SELECT pg_sleep(20)")
    return "never"


def _count() -> str:
    cursor = segments.engine()
    with deadline.interrupted(cursor):
        cursor.execute("SELECT count(*) FROM range(100000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3")
    return "never"


@pytest.mark.parametrize("compute", [_sleep, _count], ids=["postgres", "duckdb"])
def test_what_takes_too_long_is_ended_and_says_what_to_do(
    ask: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch, compute: Callable[[], str]
) -> None:
    monkeypatch.setattr(background, "SECONDS", 0.5)
    assert "Too broad to answer within 0.5 s: narrow the time or choose a tenant." in _plain(ask(compute))


def test_an_error_is_one_sentence_and_is_not_kept(ask: Callable[..., AppTest]) -> None:
    def broken() -> str:
        raise logstore.errors.ArchiveError("the file is gone; run verify")

    assert "The file is gone; run verify." in _plain(ask(broken))
    assert "the answer is whole" in said(ask(lambda: "whole"))


def test_a_limit_leaves_the_connection_as_it_was(store: logstore.LogStore) -> None:
    with store.database.transaction() as connection:
        before = connection.execute("SHOW statement_timeout").fetchone()
        with deadline.within(60), deadline.limited(connection):
            assert connection.execute("SHOW statement_timeout").fetchone() != before
        assert connection.execute("SHOW statement_timeout").fetchone() == before
