"""A record to take along: as JSON, as a request for curl, as SQL, as Python."""

from __future__ import annotations

import shlex
from urllib.parse import quote

from logstore.records import Attempt, Event, rfc3339
from logstore.workbench import texts

EXAMPLE_URL = "https://example.com/webhook"
ARGUMENT_MOST = 100_000  # bytes; Linux takes arguments up to 128 KiB
_HEADER_SAFE = "".join(chr(code) for code in range(32, 127) if chr(code) != "%")


def as_json(event: Event, attempts: list[Attempt]) -> str:
    """The event and its attempts, without repeating the event in each."""
    inside = ("event_data", "event_metadata", "event_time", "eligible_for_retry", "tenant_id", "topic")
    tried = [{name: value for name, value in a.to_dict().items() if name not in inside} for a in attempts]
    return texts.dump({**event.to_dict(), "attempts": tried})


def as_curl(event: Event, address: str, file: str | None = None) -> str:
    """A request that delivers the event's payload again; a large one is read from a file beside."""
    headers = {"Content-Type": "application/json", "X-Event-Id": event.id, "X-Event-Topic": event.topic}
    words = ["curl --globoff --request POST --url " + shlex.quote(address or EXAMPLE_URL)]
    # A header holds printable ASCII only; the rest is spelled as in addresses, so that no id can begin another header.
    words += [f"--header {shlex.quote(f'{name}: {quote(text, safe=_HEADER_SAFE)}')}" for name, text in headers.items()]
    body = texts.dump(event.data, indent=None)
    words.append(f"--data-raw {shlex.quote(body)}" if file is None else f"--data-binary @{shlex.quote(file)}")
    return " \\\n  ".join(words)


def as_sql(event: Event) -> str:
    """Statements for psql that read the event and its attempts; the times let PostgreSQL skip the other months."""
    id_, tenant, time = _literal(event.id), _literal(event.tenant_id), _literal(rfc3339(event.time))
    return (
        f"SELECT * FROM events\nWHERE id = {id_} AND tenant_id = {tenant} AND time = {time};\n\n"
        "SELECT time, destination_id, attempt_number, status, code, response_data FROM attempts\n"
        f"WHERE event_id = {id_} AND tenant_id = {tenant} AND time >= {time}\nORDER BY time, id;"
    )


def as_python(event: Event) -> str:
    """The same with logstore, for a notebook."""
    return (
        "import logstore\nfrom logstore import Selection\n\n"
        "store = logstore.open()\n"
        f"event = store.retrieve_event({event.id!r}, tenant_id={event.tenant_id!r})\n"
        f"selection = Selection(tenant_ids=({event.tenant_id!r},), event_ids=({event.id!r},))\n"
        'attempts = store.list_attempt(selection, order="asc")\n'
        "attempts.to_pandas()"
    )


def _literal(text: str) -> str:
    """A text as an SQL literal; with a backslash or a control character in the form that spells them out."""
    if text.isprintable() and "\\" not in text:
        return "'" + text.replace("'", "''") + "'"
    spelled = "".join(_spelled(character) for character in text)
    return f"E'{spelled}'"


def _spelled(character: str) -> str:
    if character in ("'", "\\"):
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08X}"
