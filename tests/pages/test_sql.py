"""SQL: named questions and statements of one's own over the archive."""

from __future__ import annotations

import csv
import io
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import analysis, archive
from logstore.analysis import Answer, views
from logstore.embedded import EmbeddedServer
from logstore.settings import ROOT
from logstore.workbench import cached
from logstore.workbench.sql import query_job, question_form, result_formats
from logstore.workbench.sql.query_job import Job, Request
from tests.conftest import new_database
from tests.pages.conftest import PAGES, param, rows, said
from tests.records_of import START, attempt, event

Point = Callable[[str], None]
COUNT = "SELECT status, count(*) AS attempts FROM attempts GROUP BY 1 ORDER BY 1"


@pytest.fixture(scope="module")
def archived(server: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A month of 40 events in the archive, one event more in the month after, which is hot."""
    home = tmp_path_factory.mktemp("sql")
    dsn = new_database(server)
    with logstore.open(dsn, role="operator", home=home) as store:
        times = [START + timedelta(minutes=n) for n in range(40)] + [START + timedelta(days=40)]
        store.insert_many(
            [event(f"e{n}", time=t, tenant_id="acme" if n % 2 else "bravo") for n, t in enumerate(times)],
            [
                attempt(f"a{n}", event_id=f"e{n}", time=t, event_time=t, status="success" if n % 4 else "failed")
                for n, t in enumerate(times)
            ],
        )
        for parent in ("events", "attempts"):
            archive.export(store, f"{parent}_2026_03")
            archive.flip(store, f"{parent}_2026_03")
    return dsn, home


@pytest.fixture
def show(workbench: Point, archived: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    dsn, home = archived
    monkeypatch.setenv("LOGSTORE_HOME", str(home))  # `workbench` has cleared the environment already
    workbench(dsn)
    return run


def run(**params: str) -> AppTest:
    """The page with a link's parameters, when its answer is there."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    app.switch_page(str(PAGES["SQL"]))
    for name, value in params.items():
        app.query_params[name.replace("__", ".")] = value
    return settle(app.run())


def settle(app: AppTest) -> AppTest:
    deadline = time.monotonic() + 30
    while any(button.label == "Cancel" for button in app.button):
        assert time.monotonic() < deadline, "the question takes too long"
        app.run()
    assert not app.exception
    return app


def submit(app: AppTest, label: str) -> AppTest:
    return settle(next(button for button in app.button if button.label == label).click().run())


def test_a_link_with_sql_shows_its_answer_with_rows_and_time(show: Any) -> None:
    app = show(sql=COUNT)
    assert rows(app) == [{"status": "failed", "attempts": 10}, {"status": "success", "attempts": 30}]
    assert "**2 rows** in 0." in said(app) and ", 40 rows read" in said(app)
    assert app.text_area[0].value == COUNT


def test_what_was_written_and_run_is_in_the_url(show: Any) -> None:
    app = show()
    app.text_area[0].set_value("SELECT 42 AS answer")
    submit(app, "Run")
    assert param(app, "sql") == ["SELECT 42 AS answer"]
    assert rows(app) == [{"answer": 42}]
    submit(app, "Explain")
    assert param(app, "explain") == ["1"]
    assert any("PROJECTION" in code.value or "DUMMY_SCAN" in code.value for code in app.code)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "DROP TABLE events",
        "SELEC 1",
        "",
    ],
)
def test_an_attack_or_a_mistake_is_one_sentence(show: Any, sql: str) -> None:
    app = show()
    app.text_area[0].set_value(sql)
    submit(app, "Run")
    (error,) = app.error
    assert "Traceback" not in error.value
    assert not app.dataframe


def test_a_long_answer_is_cut_and_says_so(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_job, "ROWS", 10)
    app = show(sql="SELECT id FROM attempts")
    assert len(rows(app)) == 10
    assert "there are more" in said(app)
    monkeypatch.setattr(query_job, "ROWS", 5)
    app = show(question="never_succeeded", run="1")
    assert len(rows(app)) == 5
    assert "there are more" in said(app)


def test_a_link_with_a_question_and_parameters_is_answered(show: Any) -> None:
    app = show(question="noisiest_tenants", run="1", p__limit="1")
    assert [(row["tenant_id"], row["attempts"]) for row in rows(app)] == [("acme", 40)]
    assert next(box.value for box in app.number_input if box.label == "Rows at most") == 1


def test_a_question_is_chosen_filled_in_and_run(show: Any) -> None:
    app = show()
    app.selectbox(key="question").select("failure_groups").run()
    assert param(app, "question") == ["failure_groups"]
    assert not app.dataframe, "nothing runs before it is told to"
    next(box for box in app.number_input if box.label == "Rows at most").set_value(7)
    submit(app, "Run")
    assert param(app, "p.limit") == ["7"]
    assert rows(app)[0]["failures"] == 10


def test_the_hot_months_can_be_read_too(show: Any) -> None:
    cold = rows(show(question="noisiest_tenants", run="1"))
    both = rows(show(question="noisiest_tenants", run="1", tiers="both"))
    assert sum(int(str(row["attempts"])) for row in both) == sum(int(str(row["attempts"])) for row in cold) + 1


def test_a_parameter_or_question_that_cannot_be_read_is_named(show: Any) -> None:
    assert "The link's limit cannot be read" in said(show(question="failure_groups", p__limit="many"))
    assert "does not exist" in said(show(question="no_such"))


def test_a_question_goes_on_in_the_editor(show: Any) -> None:
    app = show(question="failure_groups", p__tenant="o'neil")
    next(button for button in app.button if button.label.startswith("Go on")).click().run()
    assert "tenant_id = 'o''neil'" in app.text_area[0].value
    assert not param(app, "question")


def test_every_question_says_the_same_in_the_editor(show: Any) -> None:
    store = cached.store()
    with analysis.connect(store) as duck:
        for name, question in analysis.questions().items():
            given = (("since", "2026-03-01T00:00:00Z"), ("limit", "7"))
            known = {parameter.name for parameter in question.parameters}
            parameters = tuple(pair for pair in given if pair[0] in known)
            for values in ((), parameters):
                plain = duck.execute(question_form.as_sql(question, values)).fetchall()
                assert plain == analysis.ask(store, name, **dict(values)).rows, name


def test_a_chart_of_the_link_is_drawn(show: Any) -> None:
    app = show(sql=COUNT, chart="bar", x="status", y="attempts")
    assert [box.value for box in app.selectbox if box.label in ("Chart", "Across", "Upwards")] == [
        "bar",
        "status",
        "attempts",
    ]
    assert app.get("plotly_chart")


def test_an_empty_archive_says_how_to_fill_it_and_questions_read_the_hot_months(
    workbench: Point, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGSTORE_HOME", str(tmp_path))
    with logstore.open(dsn, role="operator") as store:
        store.insert_many([event("e1")], [attempt("a1")])
    workbench(dsn)
    app = run(question="noisiest_tenants")
    assert "The archive is empty" in said(app)
    assert "python -m logstore export attempts_2026_03 --flip" in [code.value for code in app.code]
    assert rows(submit(app, "Run"))[0]["attempts"] == 1


# What the page is made of


class _Slow:
    """A sandbox that runs until it is cancelled."""

    def __call__(self, *_: object, cancel: threading.Event, **__: object) -> Answer:
        assert cancel.wait(20)
        raise logstore.SandboxError("the query was cancelled")


def test_a_query_that_runs_can_be_cancelled(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "sandbox", _Slow())
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    app.switch_page(str(PAGES["SQL"]))
    app.query_params["sql"] = "SELECT 1"
    app.run()
    assert "Running for" in said(app)
    next(button for button in app.button if button.label == "Cancel").click().run()
    assert "The query was cancelled." in settle(app).error[0].value


def test_a_question_that_runs_can_be_cancelled(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "-- title: T\nSELECT count(*) FROM range(1000000000) a, range(1000000000) b"
    question = analysis.Question(name="endless", title="T", parameters=(), sql=endless)
    monkeypatch.setattr(analysis, "questions", lambda: {"endless": question})
    job = Job(cached.store(), Request(question="endless"))
    assert not job.done.wait(0.5)
    job.cancel()
    assert job.done.wait(10)
    assert job.error == "the query was cancelled"


def test_a_question_that_takes_too_long_is_stopped(show: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"
    question = analysis.Question(name="endless", title="T", parameters=(), sql=endless)
    monkeypatch.setattr(analysis, "questions", lambda: {"endless": question})
    monkeypatch.setattr(query_job, "SECONDS", 0.3)
    job = Job(cached.store(), Request(question="endless"))
    assert job.done.wait(10)
    assert "stopped after 0.3 s" in str(job.error)


def _endless(store: object, connection: object, parent: str, cold: object, go_on: Callable[[], None]) -> None:
    """Hot months that never end."""
    while True:
        go_on()
        time.sleep(0.01)


@pytest.mark.usefixtures("show")
def test_a_question_can_be_cancelled_while_it_copies_the_hot_months(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_copy_hot", _endless)
    job = Job(cached.store(), Request(question="noisiest_tenants", tiers="both"))
    assert not job.done.wait(0.3)
    job.cancel()
    assert job.done.wait(10)
    assert job.error == "the query was cancelled"


@pytest.mark.usefixtures("show")
def test_the_limit_of_time_counts_the_copying_of_hot_months(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_copy_hot", _endless)
    monkeypatch.setattr(query_job, "SECONDS", 0.3)
    job = Job(cached.store(), Request(question="noisiest_tenants", tiers="both"))
    assert job.done.wait(10)
    assert "stopped after 0.3 s: the hot months are too large to be copied" in str(job.error)


@pytest.mark.usefixtures("show")
def test_a_question_in_the_servers_process_has_a_limit_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = analysis.Question(
        name="limit", title="T", parameters=(), sql="SELECT current_setting('memory_limit') AS bytes"
    )
    monkeypatch.setattr(analysis, "questions", lambda: {"limit": asked})
    job = Job(cached.store(), Request(question="limit", tiers="both"))
    assert job.done.wait(10) and job.answer is not None
    assert job.answer.rows == [("953.6 MiB",)]


def test_an_answer_says_how_many_rows_were_read_for_it(show: Any) -> None:
    assert ", 40 rows read" in said(show(question="noisiest_tenants", run="1"))
    assert ", 41 rows read" in said(show(question="noisiest_tenants", run="1", tiers="both"))
    assert ", no row had to be read" in said(show(sql="SELECT 42 AS answer"))
    assert ", 1 row read" in said(show(sql="SELECT topic FROM events WHERE id = 'e7'"))


def answer(**columns: list[Any]) -> Answer:
    return Answer(table=pa.table(columns), seconds=0.1)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", '=HYPERLINK("http://x")'])
def test_a_formula_in_the_csv_is_text(text: str) -> None:
    read = list(csv.reader(io.StringIO(result_formats.as_csv(answer(**{text: [text]})).decode(), newline="")))
    assert read == [[f"'{text}"], [f"'{text}"]]


def test_numbers_times_and_nested_values_are_written_plainly() -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    written = result_formats.as_csv(
        answer(n=[-1.5], big=[-(2**60)], t=[moment], none=[None], list=[["1", "=x"]])
    ).decode()
    assert written.splitlines()[1] == '-1.5,-1152921504606846976,2026-03-01T12:00:00Z,,"[""1"", ""=x""]"'


def test_the_same_heading_twice_is_kept_apart() -> None:
    assert result_formats.headings(["a", "a", "a (2)", "a"]) == ["a", "a (2)", "a (2) (2)", "a (3)"]


def test_a_column_of_codes_is_drawn_as_words_and_one_of_days_as_time() -> None:
    import pandas

    def axis(values: list[Any]) -> str:
        figure = result_formats.picture(pandas.DataFrame({"x": values, "y": [1, 2]}), x="x", y="y", line=True)
        return str(figure.layout.xaxis.type)

    assert axis(["404", "timeout"]) == "category"
    assert axis(["2026-03-01", "2026-03-02 10:00:00.000"]) == "date"
    assert axis([1.5, 2.0]) == "linear"
