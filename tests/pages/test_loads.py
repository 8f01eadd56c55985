"""Loads: what runs, what ran, bringing files in, and dead letters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import logstore
from logstore import LoadError, loads, validation
from logstore.pipeline import read
from logstore.settings import ROOT
from logstore.workbench.loads import dead_letter_batches, dead_letters, uploads
from logstore.workbench.processes import Children, children
from tests.pages.conftest import Show, click, param, rows, run, said
from tests.pipeline.files import event

Point = Callable[[str], None]
HOSTILE = "<script>alert(1)</script> =1+1 **bold** $x$"


@pytest.fixture
def log_with_letters(workbench: Point, dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[logstore.LogStore]:
    """A load that is done, one that failed, one that runs elsewhere, and four letters; the pages may write."""
    with logstore.open(dsn, role="operator") as store:
        with store.database.connection() as connection:
            connection.execute(
                "INSERT INTO loads (state, stage, rows_read, inserted, dead, bytes, bytes_read, seconds, error, finished)"
                " VALUES ('done', 'done', 1040, 1036, 4, 100, 100, '{\"reading\": 2.0}', NULL, now()),"
                "        ('failed', 'reading', 7, 0, 0, 100, 50, '{}', 'LoadError: the disk is full', now()),"
                "        ('running', 'reading', 400, 0, 0, 2000, 500, '{}', NULL, NULL)"
            )
            for position, (raw, reason) in enumerate(
                [(json.dumps(event(1)), "naive_time"), (HOSTILE, "malformed"), ("{", "malformed"), ("[", "malformed")]
            ):
                connection.execute(
                    "INSERT INTO dead_letters (load, file, position, line, raw, reason, message)"
                    " VALUES (1, '/data/orders.jsonl', %s, %s, %s, %s, 'is wrong')",
                    [position, position + 1, raw, reason],
                )
        workbench(dsn)
        monkeypatch.setenv("LOGSTORE_ROLE", "operator")
        yield store
    dead_letter_batches._batches().clear()


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run(timeout=60)


@pytest.mark.usefixtures("log_with_letters")
def test_loads_say_their_state_counts_rate_and_error() -> None:
    running, failed, done = rows(run("Loads"), 0)
    assert (running["state"], failed["state"], done["state"]) == ("◌ running", "✘ failed", "✔ done")
    assert (done["read"], done["inserted"], done["dead"], done["rate"]) == (1040, 1036, 4, "520")
    assert failed["error"] == "LoadError: the disk is full"
    assert failed["files"] == "", "it failed before it knew its files"


@pytest.mark.usefixtures("log_with_letters")
def test_what_runs_elsewhere_shows_its_progress_and_no_cancel() -> None:
    app = run("Loads")
    (bar,) = app.get("progress")
    assert bar.proto.value == 25
    assert "400 rows read · 500 bytes of 2.0 kB" in bar.proto.text
    assert "started elsewhere" in bar.proto.text
    assert not [button for button in app.button if button.label == "Cancel"]


@pytest.mark.usefixtures("log_with_letters")
def test_letters_are_counted_by_reason_and_narrowed_by_the_link() -> None:
    app = run("Loads")
    options = app.get("button_group")
    assert len(rows(app)) == 4
    assert any("not one JSON object (3)" in str(group.proto) for group in options)
    assert {row["why"] for row in rows(run("Loads", reason="naive_time"))} == {"a time has no zone"}
    assert "No dead letters match" in said(run("Loads", state="discarded"))


def test_letters_of_a_chosen_load_are_counted_by_themselves(log_with_letters: logstore.LogStore) -> None:
    with log_with_letters.database.connection() as connection:
        connection.execute("UPDATE dead_letters SET load = 2 WHERE id = 4")
    app = run("Loads", load="2")
    groups = [str(group.proto) for group in app.get("button_group")]
    assert len(rows(app)) == 1
    assert any("open (1)" in group for group in groups) and any("not one JSON object (1)" in group for group in groups)
    assert not any("a time has no zone" in group for group in groups), "a reason of another load"
    app = run("Loads", load="3")
    assert "No row of load 3 became a dead letter" in said(app)
    press(app, "Only load 3: show all loads")
    assert len(rows(app)) == 4


@pytest.mark.usefixtures("log_with_letters")
def test_the_load_of_a_letter_leads_to_that_load_and_its_letters() -> None:
    app = click(run("Loads", letter="2"), -1, "load")
    assert (param(app, "load"), param(app, "letter")) == (["1"], [])
    assert "Its files" in said(app)


@pytest.mark.usefixtures("log_with_letters")
def test_the_text_of_a_letter_is_shown_as_it_stands() -> None:
    app = run("Loads", letter="2")
    assert HOSTILE in [code.value for code in app.code]
    assert app.text_area[0].value == HOSTILE


def test_a_corrected_letter_is_loaded_and_a_second_time_is_refused(log_with_letters: logstore.LogStore) -> None:
    other = run("Loads", letter="2")
    app = run("Loads", letter="2")
    app.text_area[0].set_value(json.dumps(event(5))).run()
    press(app, "Load it corrected")
    assert "Dead letter 2 is loaded as an event." in said(app)
    assert not param(app, "letter")
    assert log_with_letters.retrieve_event(str(event(5)["id"])) is not None
    press(other, "Load it unchanged")
    assert "is requeued already; a letter is requeued once" in said(other)


def test_a_correction_that_is_still_wrong_is_refused_with_its_reason(log_with_letters: logstore.LogStore) -> None:
    app = run("Loads", letter="3")
    app.text_area[0].set_value("{}").run()
    press(app, "Load it corrected")
    assert "still refused" in said(app).replace("\\", "")
    assert loads.dead_letter(log_with_letters, 3).state == "open"


def test_a_letter_can_be_discarded(log_with_letters: logstore.LogStore) -> None:
    app = press(run("Loads", letter="4"), "Discard this letter")
    assert "Dead letter 4 is discarded." in said(app)
    assert loads.dead_letter(log_with_letters, 4).state == "discarded"


def settled(app: AppTest) -> AppTest:
    """The page, when the batch that it started has ended."""
    (batch,) = dead_letter_batches._batches()
    assert batch.ended.wait(60)
    return app.run(timeout=60)


def test_all_letters_of_a_reason_are_discarded_after_a_look_at_how_many(log_with_letters: logstore.LogStore) -> None:
    app = run("Loads", reason="malformed")
    assert "all 3 open letters of this reason" in said(app)
    settled(press(app, "Discard 3 letters"))
    assert "3 of 3 dead letters are discarded." in said(app)
    assert ("discarded", "malformed", 3) in loads.letter_counts(log_with_letters)
    assert loads.dead_letter(log_with_letters, 1).state == "open", "of another reason"
    press(app, "Close")
    assert "are discarded" not in said(app)


def test_all_letters_of_a_reason_are_loaded_and_those_that_are_still_wrong_stay_open(
    log_with_letters: logstore.LogStore,
) -> None:
    with log_with_letters.database.connection() as connection:
        connection.execute("UPDATE dead_letters SET raw = %s WHERE id = 2", [json.dumps(event(9))])
    app = settled(press(run("Loads", reason="malformed"), "Load 3 letters unchanged"))
    words = said(app).replace("\\", "")
    assert "1 of 3 dead letters are loaded, 2 refused and still open." in words and "is still refused" in words
    assert [loads.dead_letter(log_with_letters, number).state for number in (2, 3, 4)] == ["requeued", "open", "open"]
    assert log_with_letters.retrieve_event(str(event(9)["id"])) is not None


def test_a_letter_that_came_after_the_look_is_left_alone(log_with_letters: logstore.LogStore) -> None:
    app = run("Loads", reason="malformed")
    with log_with_letters.database.connection() as connection:
        connection.execute(
            "INSERT INTO dead_letters (load, file, position, raw, reason, message) VALUES (1, 'f', 9, '(', 'malformed', '')"
        )
    settled(press(app, "Discard 3 letters"))
    assert loads.dead_letter(log_with_letters, 5).state == "open"


def test_a_reader_may_not_act_on_all_letters(
    log_with_letters: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGSTORE_ROLE", "reader")
    app = run("Loads", reason="malformed")
    assert not [button for button in app.button if "letters" in button.label]


def test_older_loads_than_are_listed_are_spoken_of(log_with_letters: logstore.LogStore) -> None:
    assert "The newest 50 loads" not in said(run("Loads"))
    with log_with_letters.database.connection() as connection:
        connection.execute(
            "INSERT INTO loads (state, stage, bytes, seconds, finished)"
            " SELECT 'done', 'done', 0, '{}', now() FROM generate_series(1, 50)"
        )
    app = run("Loads")
    assert "The newest 50 loads; `python -m logstore loads --limit 1000` lists older ones" in said(app)
    assert len(rows(app, 0)) == 50


def test_a_reader_is_told_how_to_load_and_gets_no_buttons_that_write(
    log_with_letters: logstore.LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGSTORE_ROLE", "reader")
    app = run("Loads", letter="1")
    assert said(app).count("LOGSTORE_ROLE=operator") == 2
    assert not [button for button in app.button if "Load" in button.label or "Discard" in button.label]


def test_nothing_loaded_yet_says_how_to_begin(show: Show) -> None:
    app = show("Loads")
    assert "Nothing was loaded yet" in said(app)
    assert "python -m logstore demo" in [code.value for code in app.code]


@pytest.mark.usefixtures("log_with_letters")
def test_a_path_that_is_not_there_is_a_sentence() -> None:
    app = run("Loads")
    box = next(box for box in app.text_input if box.label.startswith("A file"))
    box.set_value("/no/such/folder").run()
    assert "There is no /no/such/folder on the server" in said(app).replace("\\", "")
    assert app.button(key="load path").disabled


@pytest.mark.usefixtures("log_with_letters")
def test_what_a_folder_holds_is_said_before_it_can_be_loaded(tmp_path: Path) -> None:
    for name in ("a.jsonl", "deep/B.JSONL.GZ", "notes.txt", ".hidden/c.jsonl", "_temporary/d.json", "_e.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 600)
    app = run("Loads")
    assert app.button(key="load path").disabled
    next(box for box in app.text_input if box.label.startswith("A file")).set_value(str(tmp_path)).run()
    assert "2 files, 1.2 kB" in said(app)
    assert not app.button(key="load path").disabled
    assert len(read.search(tmp_path, unreadable=read._raise)) == 2, "which is what a load takes"
    press(app, "Load it")
    (child,) = children().all("load")
    children().cancel(child.number)
    child.process.wait(60)
    children().forget(child.number)
    assert child.about == (str(tmp_path),)
    assert app.button(key="load path").disabled, "the box is empty for the next one"


def test_a_huge_folder_is_looked_at_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_bytes(b"x")
    monkeypatch.setattr(uploads, "_LOOKED_AT", 3)
    assert uploads.look(str(tmp_path)).words == "3 files, 3 bytes, and more: only 3 of its files were looked at"


@pytest.mark.usefixtures("log_with_letters")
def test_a_load_or_letter_that_does_not_exist_is_a_sentence() -> None:
    for name, value in (("load", "99"), ("letter", "99")):
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=20)
        app.switch_page("pages/6_Loads.py")
        app.query_params[name] = value
        app.run()
        assert not app.exception
        assert "There is no" in app.error[0].value
        assert "Dead letters" in [part.value for part in app.subheader] and app.get("button_group"), "the rest is there"


# What the page is made of


def test_the_page_knows_every_ending_and_every_reason_of_the_pipeline() -> None:
    assert set(uploads.SUFFIXES) == set(read.FORMATS)
    assert set(dead_letters.WORDS) == set(validation.REASONS)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("orders.jsonl", "orders-ca978112.jsonl"),
        ("orders.jsonl.gz", "orders-ca978112.jsonl.gz"),
        ("../../etc/passwd.json", "passwd-ca978112.json"),
        ("C:\\files\\ä <b>.PARQUET", "___b-ca978112.parquet"),
        ("-.gz", "upload-ca978112.gz"),
    ],
)
def test_an_upload_gets_a_safe_name_in_the_inbox(tmp_path: Path, name: str, kept: str) -> None:
    path = uploads.keep(tmp_path / "inbox", name, b"a")
    assert path.parent == tmp_path / "inbox"
    assert path.name.lstrip("_") == kept.lstrip("_")
    assert path.read_bytes() == b"a"
    assert uploads.keep(tmp_path / "inbox", name, b"a") == path


@pytest.mark.parametrize("name", ["", ".gz", "orders", "orders.csv", "orders.jsonl.exe"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LoadError, match="ends in none of"):
        uploads.keep(tmp_path, name, b"a")


def test_a_child_that_fails_tells_its_sentence_and_one_that_is_cancelled_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dsn: str
) -> None:
    monkeypatch.setenv("LOGSTORE_DSN", dsn)
    started = Children()
    wrong = started.load([str(tmp_path / "nothing.jsonl")])
    assert wrong.process.wait(60) == 2
    assert "there is no" in str(wrong.outcome()[1])
    stopped = started.load([str(tmp_path / "nothing.jsonl")])
    started.cancel(stopped.number)
    assert stopped.process.wait(60) != 0
    assert stopped.cancelled
    started.cancel(wrong.number)
    assert not wrong.cancelled, "one that has ended is not touched"
    started.forget(wrong.number)
    assert [child.number for child in started.all()] == [stopped.number]
    started.forget(stopped.number)
