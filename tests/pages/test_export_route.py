"""The route that streams a selection: what it gives, what it refuses, and what it does with errors and leavers."""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from logstore import export
from logstore.errors import ArchiveError
from logstore.records import Selection, TimeFilter
from logstore.workbench import export_route
from logstore.workbench.view import View

Get = Callable[[str], httpx.Response]


def in_a_loop(work: Coroutine[Any, Any, Any]) -> Any:
    """In a thread of its own, because Playwright, where it runs in this process, keeps a loop in this one."""
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(asyncio.run, work).result()


@pytest.fixture
def get(workbench: Callable[[str], None], log: str) -> Get:
    """Ask the route; an error that breaks the answer off is raised here."""
    workbench(log)
    transport = httpx.ASGITransport(Starlette(routes=[Route("/export", export_route.handle)]))

    async def ask(address: str) -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://workbench") as client:
            return await client.get(address)

    return lambda address: in_a_loop(ask(address))


def test_a_link_of_a_view_gives_all_its_records_and_a_name_that_says_so(get: Get) -> None:
    view = View(selection=Selection(status="failed", where='code = "503" and topic != "<\'&>"'), range="7d")
    address = re.search(r'href="([^"]+)"', export_route.links(view, "attempt"))
    assert address is not None
    answer = get("/" + address.group(1).replace("&amp;", "&").replace("&#x27;", "'"))
    assert answer.status_code == 200, answer.text
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert (len(found), {row["destination_id"] for row in found}) == (60, {"d-bad"})
    assert re.search(r'filename="some-failed-attempts_\d{4}-\d\d-\d\d_\d{4}-\d\d-\d\d.csv"', str(answer.headers))
    assert answer.headers["content-type"].startswith("text/csv")


def test_a_named_range_is_worked_out_when_the_link_is_followed() -> None:
    now = datetime(2026, 8, 1, 12, tzinfo=UTC)
    kind, name, selection = export_route.asked([("kind", "event"), ("format", "csv"), ("range", "1h")], now)
    assert (kind, name, selection.time) == ("event", "csv", TimeFilter(gte=now - timedelta(hours=1)))
    assert export_route.file_name("event", "csv", Selection(), now) == "events_until_2026-08-01.csv"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "one kind"),
        ("kind=event", "one format"),
        ("kind=order&format=csv", "unknown kind 'order'"),
        ("kind=event&format=exe", "unknown format 'exe'"),
        ("kind=event&format=csv&format=jsonl", "one format"),
        ("kind=event&format=csv&range=5y", "a range is one of"),
        ("kind=event&format=csv&range=7d&time.gte=2026-08-01T00:00:00Z", "without exact times"),
        ("kind=event&format=csv&time.gte=yesterday", "not a time"),
        ("kind=event&format=csv&status=failed", "no status"),
        ("kind=attempt&format=csv&where=code+%3D", "column 7"),
        ("kind=attempt&format=csv&limit=5", "unknown name 'limit'"),
        ("kind=attempt&format=csv&tenant_ids=%00", "NUL"),
    ],
)
def test_a_bad_parameter_is_a_sentence(get: Get, query: str, said: str) -> None:
    answer = get(f"/export?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert said.lower() in answer.text.lower() and answer.text.endswith(".\n")


def test_an_error_midway_breaks_the_answer_off(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(*_: Any) -> Iterator[bytes]:
        yield b"half"
        raise ArchiveError("a file is gone")

    monkeypatch.setattr(export, "export", half)
    with pytest.raises(ArchiveError, match="gone"):
        get("/export?kind=event&format=csv")


def test_who_leaves_ends_the_walk() -> None:
    ended = []

    def pieces() -> Iterator[bytes]:
        try:
            while True:
                yield b"more"
        finally:
            ended.append(True)

    async def leave() -> None:
        walk = pieces()
        stream = export_route._stream(next(walk), walk)
        assert [await anext(stream), await anext(stream)] == [b"more", b"more"]
        await stream.aclose()  # type: ignore[attr-defined]

    in_a_loop(leave())
    assert ended
