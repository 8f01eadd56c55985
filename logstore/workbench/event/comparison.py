"""Compare: two attempts of an event, or what it carried with what another event carried."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pandas
import streamlit as st

from logstore.records import Attempt, Event, Selection, TimeFilter
from logstore.workbench import cached, texts, times, url
from logstore.workbench.event.difference import Difference, difference, laid_out, said, unified
from logstore.workbench.frame import Frame
from logstore.workbench.record_table import STATUS

_KINDS = {"attempts": "Two attempts", "event": "The payload of another event"}
_ATTEMPT = ("destination_id", "status", "code", "manual", "eligible_for_retry", "response_data", "event_data")
_EVENT = ("tenant_id", "topic", "destination_id", "eligible_for_retry", "data", "metadata")
_BODIES_MOST = 4


def comparison(frame: Frame, event: Event, attempts: Sequence[Attempt]) -> None:
    """The choice of what to compare, and the difference; nothing is read before it is asked for."""
    st.subheader("Compare", anchor=False)
    kinds = [kind for kind in _KINDS if kind != "attempts" or len(attempts) > 1]
    asked = url.one("compare")
    chosen = asked if asked in kinds else None
    st.segmented_control(
        "Compare",
        kinds,
        key=url.bound("compare", chosen),
        format_func=_KINDS.__getitem__,
        on_change=lambda: url.put(compare=st.session_state["compare"]),
        label_visibility="collapsed",
    )
    if chosen == "attempts":
        _attempts(frame, attempts)
    elif chosen == "event":
        _events(frame, event)


def _attempts(frame: Frame, attempts: Sequence[Attempt]) -> None:
    by_id = {attempt.id: attempt for attempt in attempts}
    before, after = pair(attempts, url.one("from"), url.one("to"), frame.view.open)
    with st.container(horizontal=True, gap="small"):
        for name, heading, attempt in (("from", "Before", before), ("to", "After", after)):
            st.selectbox(
                heading,
                list(by_id),
                key=url.bound(f"compare {name}", attempt.id),
                format_func=lambda id_: _named(frame, by_id[id_]),
                on_change=_chosen,
                args=(name,),
            )
    if before is after:
        st.info("This is one attempt; choose another one to compare it with.", icon=":material/compare_arrows:")
        return
    gap = f"{times.span(after.time - before.time)} {'later' if after.time >= before.time else 'earlier'}"
    st.caption(f"The second attempt came {gap}. Its id, its number and its time are left out.")
    _shown(_of_attempt(before), _of_attempt(after), ("before", "after"))


def pair(attempts: Sequence[Attempt], before: str | None, after: str | None, opened: str | None) -> tuple[Any, Any]:
    """The two attempts of the URL; else the open or last one, and the one before it at the same destination."""
    by_id = {attempt.id: attempt for attempt in attempts}
    second = by_id.get(after or opened or "") or attempts[-1]
    earlier = list(attempts[: list(attempts).index(second)]) or list(attempts)
    same = [attempt for attempt in earlier if attempt.destination_id == second.destination_id and attempt is not second]
    first = by_id.get(before or "") or (same or earlier)[-1]
    return first, second


def _chosen(name: str) -> None:
    url.put_all({name: st.session_state[f"compare {name}"]})


def _named(frame: Frame, attempt: Attempt) -> str:
    outcome = STATUS[attempt.status].split()[0]
    by = " by hand" if attempt.manual else ""
    what = f"{outcome} {attempt.attempt_number}{by} · {attempt.code or 'no code'} · {attempt.destination_id[:60]}"
    return f"{what} · {frame.show(attempt.time)}"


def _of_attempt(attempt: Attempt) -> dict[str, Any]:
    found = {name: getattr(attempt, name) for name in _ATTEMPT} | {"event_metadata": attempt.event_metadata}
    response = found["response_data"]
    if isinstance(response, dict):
        found["response_data"] = {name: _opened(value) for name, value in response.items()}
    return found


def _opened(value: Any) -> Any:
    """The JSON that a body holds as text: what differs inside it has a path too."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


def _events(frame: Frame, event: Event) -> None:
    asked = url.one("with")
    before = previous(event) if asked is None else cached.store().retrieve_event(asked)
    st.text_input(
        "The other event's id",
        key=url.bound("compare with", asked or (before.id if before else "")),
        on_change=lambda: url.put_all({"with": st.session_state["compare with"].strip() or None}),
        help="Empty: the event before this one, of the same tenant and topic.",
        width=460,
    )
    if before is None:
        missing = "No event has this id." if asked else "This is the first event of its tenant and topic."
        st.info(f"{missing} Paste the whole id of another event.", icon=":material/search:")
        return
    if (before.id, before.time) == (event.id, event.time):
        st.info("This is the event of this page; paste the id of another one.", icon=":material/compare_arrows:")
        return
    which = "The event before this one, of the same tenant and topic:" if asked is None else "The other event:"
    st.caption(f"{which} {frame.show(before.time)} {frame.zone_name}. “After” is the event of this page.")
    old, new = ({name: getattr(one, name) for name in _EVENT} for one in (before, event))
    _shown(old, new, (before.id, event.id))


def previous(event: Event) -> Event | None:
    """The newest event of the same tenant and topic that is older."""
    selection = Selection(tenant_ids=(event.tenant_id,), topics=(event.topic,), time=TimeFilter(lt=event.time))
    return next(iter(cached.store().list_event(selection, limit=1)), None)


def _shown(before: Any, after: Any, names: tuple[str, str]) -> None:
    found = difference(before, after)
    if not found.changes:
        st.success("Nothing else differs.", icon=":material/check_circle:")
        return
    st.dataframe(
        table(found),
        hide_index=True,
        height="content" if len(found.changes) <= 12 else 460,
        column_config={
            "path": st.column_config.TextColumn("path", width=190),
            "before": st.column_config.TextColumn("before", width=190),
            "after": st.column_config.TextColumn("after", width=190),
        },
    )
    if not found.whole:
        st.caption(f"These are the first {len(found.changes)} differences; there may be more.")
    bodies = [(change.path, change.texts) for change in found.changes if change.texts]
    for path, both in bodies[:_BODIES_MOST]:
        st.caption(f"{texts.markdown(path)}, line by line")
        old, new = (laid_out(text) for text in both)
        st.code(unified(old, new, names), language="diff", wrap_lines=True)
    with st.expander("All of it, line by line"):
        st.code(unified(texts.dump(before), texts.dump(after), names), language="diff", wrap_lines=True)


def table(found: Difference) -> pandas.DataFrame:
    """The changes as people read them."""
    rows = [(change.path, said(change.before), said(change.after)) for change in found.changes]
    return pandas.DataFrame(rows, columns=["path", "before", "after"])
