"""The frame around every page: title, menu, time range, zone, the id box, and errors as sentences.

Every page calls `frame` first, because a deep link on a cold server runs that page's file alone.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

import psycopg
import streamlit as st

from logstore.errors import InvalidCursor, LogstoreError
from logstore.records import TimeFilter
from logstore.workbench import cached, id_search, notebook_cells, texts, times, url
from logstore.workbench.navigation import PAGES, go_to_event
from logstore.workbench.times import Window
from logstore.workbench.view import UnreadableLink, View, grouped

log = logging.getLogger(__name__)

_SHARED = {"Events": ("tenant_ids", "topics"), "Attempts": ("tenant_ids", "topics"), "Destinations": ("tenant_ids",)}
_SHARED["Fields"] = ("topics",)


# Of our own, because an emoji is an empty box where no font has it, and a Material icon is asked of an outside host.
_MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="#2456c4"><rect y="1" width="16" height="4" rx="1.5"/>'
    '<rect y="6" width="11" height="4" rx="1.5"/><rect y="11" width="14" height="4" rx="1.5"/></svg>'
)

# Streamlit leaves a hand's breadth around a wide page; tables need it. Its rows of choices are lower than what stands
# beside them.
_STYLE = """<style>
[data-testid="stMainBlockContainer"] { padding: 4.2rem 2rem 3rem 2rem; }
[data-testid="stSidebarHeader"] { height: 2.2rem; margin: 0; }
[data-variant="segmented_control"] { min-height: 2.5rem; }
</style>"""


class Frame:
    """What a page gets from its frame: the view of its URL, the moment, and the zone."""

    def __init__(self, page: str, view: View) -> None:
        self.page = page
        self.view = view
        self.now = datetime.now(UTC)
        self.zone: tzinfo = times.zone_of(view.zone, st.context.timezone)

    @property
    def zone_name(self) -> str:
        return "UTC" if self.zone is UTC else str(self.zone)

    @property
    def window(self) -> Window:
        """Both ends of the range, for what is counted of it; an end that is open is closed by the log's own."""
        return times.window_of(self.view.asked(self.now).time, extent=cached.whole_extent(), now=self.now)

    def show(self, time: datetime | None) -> str:
        return "" if time is None else times.show(time, self.zone)


def frame(page: str, *, range_: bool = True) -> Frame:
    """Draw the frame and read the view; a link that cannot be read ends the page with a sentence and a way on."""
    st.set_page_config(page_title=f"{page} · logstore", page_icon=_MARK, layout="wide", initial_sidebar_state="auto")
    try:
        view = View.from_query(url.pairs())
        _check(page, view)
    except UnreadableLink as error:
        st.html(_STYLE)
        st.title(page, anchor=False)
        _sidebar(Frame(page, View()))
        st.warning(texts.markdown(error, 600), icon=":material/link_off:")
        st.button(f"Go on without “{error.name}”", on_click=url.drop, args=(error.name,), type="primary")
        st.stop()
    found = Frame(page, view)
    _arrive(page)
    st.html(_STYLE)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.title(page, anchor=False, width="content")
        if range_:
            _range(found)
    _sidebar(found)
    return found


def _check(page: str, view: View) -> None:
    """Refuse filters that the records of a page do not have."""
    if page != "Events":
        return
    for name, noun in (("status", "status"), ("destination_ids", "destination")):
        if getattr(view.selection, name):
            raise UnreadableLink(name, f"The link asks events for a {noun}, which only attempts have.")


def _arrive(page: str) -> None:
    """Whoever comes from another page sees what is newest now, and not what was when they left."""
    if st.session_state.get("arrived") != page:
        st.session_state["arrived"] = page
        unpin()


def unpin() -> None:
    """Let lists begin at what is newest now, and not at what was when they were read first."""
    for name in ("pin", "live since"):
        st.session_state.pop(name, None)


def _range(found: Frame) -> None:
    view = found.view
    with st.container(horizontal=True, width="content", gap="small", vertical_alignment="center"):
        st.segmented_control(
            "Time range",
            options=list(times.RANGES),
            format_func=times.RANGE_LABELS.__getitem__,
            key=url.bound("range", view.range),
            on_change=_range_chosen,
            label_visibility="collapsed",
        )
        label = "Exact times" if view.range else _absolute_label(found)
        with st.popover(label, icon=":material/date_range:", type="secondary" if view.range else "primary"):
            _absolute(found)


def _range_chosen() -> None:
    name = st.session_state["range"]
    # A second click on the chosen range gives None: it stays chosen, and the page is fresh.
    unpin()
    url.change(lambda view: view.over(name) if name else view)


def _absolute_label(found: Frame) -> str:
    time = found.view.selection.time
    lower, upper = time.gte or time.gt, time.lt or time.lte
    first = times.show_short(lower, found.zone) if lower else "the beginning"
    last = times.show_short(upper, found.zone) if upper else "now"
    return f"{first} – {last}".replace(":", "\\:")


def _absolute(found: Frame) -> None:
    time = found.view.asked(found.now).time
    lower = time.gte or time.gt or found.now - timedelta(days=7)
    upper = time.lt or time.lte or found.now
    st.caption(f"Times in {found.zone_name}; the end is not included.")
    step = timedelta(minutes=1)
    # A named range moves with the clock: its times in the keys would make new boxes, without what was typed into the old.
    of = f"{found.view.range or time} {found.zone}"
    with st.form("absolute", border=False):
        start = st.datetime_input("From", value=_wall(lower, found.zone), step=step, key=f"from {of}")
        end = st.datetime_input("To", value=_wall(upper, found.zone), step=step, key=f"to {of}")
        if st.form_submit_button("Show these times", type="primary"):
            if start is None or end is None or start >= end:
                st.warning("The beginning must come before the end.")
                return
            chosen = TimeFilter(gte=start.replace(tzinfo=found.zone), lt=end.replace(tzinfo=found.zone))
            url.write(found.view.over(None, chosen))
            st.rerun()


def _wall(time: datetime, zone: tzinfo) -> datetime:
    return time.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0)


def _sidebar(found: Frame) -> None:
    view = found.view
    with st.sidebar:
        st.markdown("### :primary[:material/stacks:] logstore")
        st.text_input(
            "Find an id",
            key="find",
            placeholder="event, attempt, destination…",
            icon=":material/search:",
            on_change=_find_asked,
            help="Finds any event or attempt, and any destination or tenant, by its whole id, whatever the time range.",
        )
        _find(found)
        for name, (path, icon) in PAGES.items():
            params = view.carried(*_SHARED.get(name, ()) if found.page in _SHARED else ())
            if name != "Event":
                st.page_link(path, label=name, icon=icon, query_params=grouped(params), width="stretch")
        st.segmented_control(
            "Time zone",
            options=["utc", "browser"],
            format_func=lambda name: "UTC" if name == "utc" else "Browser's",
            key=url.bound("zone", view.zone),
            on_change=_zone_chosen,
            help=f"The browser's zone is {st.context.timezone or 'unknown, so it counts as UTC'}.",
        )
        notebook_cells.offer(found.page, view)


def _zone_chosen() -> None:
    zone = st.session_state["zone"]
    url.change(lambda view: view.but(zone=zone) if zone else view)


def _find_asked() -> None:
    st.session_state["asked"] = st.session_state["find"].strip()
    st.session_state["find"] = ""


def _find(found: Frame) -> None:
    asked = st.session_state.pop("asked", "")
    if not asked:
        return
    with sentences():
        target = id_search.find(cached.store(), asked)
        if target is None:
            st.warning("Nothing in the log has this id; ids are matched whole:")
            st.code(asked[:200], language=None)
        elif isinstance(target, id_search.EventTarget):
            go_to_event(target.event_id, target.tenant_id, target.attempt_id)
        else:
            along = [*found.view.carried(), *target.selection.to_query()]
            st.switch_page(PAGES["Destinations"][0], query_params=grouped(along))


@contextlib.contextmanager
def sentences() -> Iterator[None]:
    """Errors inside become one sentence with a next step; never a trace."""
    try:
        yield
    except InvalidCursor as error:
        st.warning(
            texts.markdown(f"This link's place in the list cannot be read: {error}.", 600), icon=":material/link_off:"
        )
        st.button("Go to the newest page", on_click=url.change, args=(lambda view: view.at(),), type="primary")
    except LogstoreError as error:
        st.error(texts.markdown(_sentence(str(error)), 1000), icon=":material/warning:")
    except psycopg.errors.QueryCanceled:  # the server's own limit of time
        st.error("Too broad to answer in time: narrow the time or choose a tenant.", icon=":material/warning:")
    except psycopg.Error:
        log.exception("the database did not answer")
        st.error(
            "The database did not answer. Try again; if it stays so, run `python -m logstore doctor`.",
            icon=":material/warning:",
        )
    except Exception:
        log.exception("a page failed")
        st.error(
            "Something is wrong with this part of the page; the server's log says what. Try again.",
            icon=":material/warning:",
        )


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else text + "."
