"""An id that somebody pasted: which page shows it?"""

from __future__ import annotations

from logstore.store import LogStore
from logstore.workbench import measures

Target = tuple[str, list[tuple[str, str]]]


def find(store: LogStore, asked: str) -> Target | None:
    """The page and the parameters that show this event, attempt, destination or tenant."""
    if "\x00" in asked:
        return None
    event = store.retrieve_event(asked)
    if event is not None:
        return "Event", [("id", event.id)]
    attempt = store.retrieve_attempt(asked)
    if attempt is not None:
        return "Event", [("id", attempt.event_id), ("tenant", attempt.tenant_id), ("open", attempt.id)]
    owners = measures.look_up(store, "tenants_of_destination", destination=asked)
    if owners:
        return "Destinations", [("tenant_ids", owners[0][0]), ("destination_ids", asked)]
    if measures.look_up(store, "tenant_exists", tenant=asked):
        return "Destinations", [("tenant_ids", asked)]
    # An event whose own row is missing may still live in its attempts.
    return None if not _attempts_of(store, asked) else ("Event", [("id", asked)])


def _attempts_of(store: LogStore, event_id: str) -> bool:
    from logstore.records import Selection

    return len(store.list_attempt(Selection(event_ids=(event_id,)), limit=1)) > 0
