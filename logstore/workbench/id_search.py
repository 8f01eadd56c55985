"""An id that somebody pasted: what is it?"""

from __future__ import annotations

from dataclasses import dataclass

from logstore.records import Selection
from logstore.store import LogStore
from logstore.workbench.counts import lookups


@dataclass(frozen=True, slots=True)
class EventTarget:
    """An event, and the attempt that was meant if it was one."""

    event_id: str
    tenant_id: str
    attempt_id: str | None = None


@dataclass(frozen=True, slots=True)
class DestinationTarget:
    """A tenant, one destination of it, or destinations of that id, whoever has them."""

    selection: Selection


def find(store: LogStore, asked: str) -> EventTarget | DestinationTarget | None:
    """The event, attempt, destination or tenant of this id."""
    if "\x00" in asked:
        return None
    event = store.retrieve_event(asked)
    if event is not None:
        return EventTarget(event.id, event.tenant_id)
    attempt = store.retrieve_attempt(asked)
    if attempt is not None:
        return EventTarget(attempt.event_id, attempt.tenant_id, attempt.id)
    # An event whose own row is missing may still live in its attempts.
    for attempt in store.list_attempt(Selection(event_ids=(asked,)), limit=1):
        return EventTarget(asked, attempt.tenant_id)
    owners = lookups.look_up(store, "tenants_of_destination", destination=asked)
    if owners:  # of several tenants the page asks which one is meant
        whose = (owners[0][0],) if len(owners) == 1 else ()
        return DestinationTarget(Selection(tenant_ids=whose, destination_ids=(asked,)))
    if lookups.look_up(store, "tenant_exists", tenant=asked):
        return DestinationTarget(Selection(tenant_ids=(asked,)))
    return None
