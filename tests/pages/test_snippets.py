"""Copies of a record that can be run as they stand, whatever the record holds."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from typing import Any

import pytest

from logstore import Event
from logstore.workbench import texts
from logstore.workbench.event import snippets

HOSTILE = 'it\'s $(touch /tmp/x) `id` "q" \\ \r\nX-Evil: 1 ü %41 !1'


def event(**more: Any) -> Event:
    given = {"id": "evt_1", "tenant_id": "t", "time": datetime(2026, 8, 1, tzinfo=UTC), "topic": "x", "data": {}}
    return Event(**{**given, **more})


def arguments(command: str) -> list[str]:
    """What a shell makes of a command, with a function in the place of curl."""
    script = f"curl() {{ printf '%s\\0' \"$@\"; }}\n{command}\n"
    done = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, check=True)
    assert not done.stderr
    return [part.decode() for part in done.stdout.split(b"\0")[:-1]]


@pytest.mark.parametrize("data", [{"a": HOSTILE, "ключ": [1, None, "\u2028"]}, "@/etc/passwd", [], None, -1])
def test_a_shell_gives_curl_exactly_the_payload_and_one_header_each(data: Any) -> None:
    given = arguments(snippets.as_curl(event(id=HOSTILE, topic="order.created", data=data), "https://x.test/?a=1&b='"))
    assert json.loads(given[given.index("--data-raw") + 1]) == data
    assert given[given.index("--url") + 1] == "https://x.test/?a=1&b='"
    headers = [given[i + 1] for i, word in enumerate(given) if word == "--header"]
    assert [header.split(":")[0] for header in headers] == ["Content-Type", "X-Event-Id", "X-Event-Topic"]
    assert all(header.isascii() and header.isprintable() for header in headers)
    assert "%0D%0AX-Evil" in headers[1] and "%2541" in headers[1]


def test_a_payload_too_large_for_a_command_line_is_read_from_a_file() -> None:
    given = arguments(snippets.as_curl(event(data={"a": "x" * 200_000}), "", "evt_1-payload.json"))
    assert given[-2:] == ["--data-binary", "@evt_1-payload.json"]
    assert snippets.EXAMPLE_URL in given


def test_the_python_copy_names_the_event_whatever_its_id() -> None:
    compile(snippets.as_python(event(id=HOSTILE)), "copy", "exec")
    assert texts.dump({"a": 1}) in snippets.as_json(event(data={"a": 1}), []).replace("\n  ", "\n")
