"""Server time of every page for each thing people do on it, on a small and a ten times larger log, beside an empty page.

A page waits here until all its counts are there, however long it would leave them to the background: what is promised
is the answer. Streamlit runs in this process, without a browser. Before each opening every kept answer is forgotten, so
that nothing is told that was counted before; the store stays open.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest.mock import patch

import streamlit as st
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.testing.v1 import AppTest

from bench import data
from bench.measure import Comparison, Result, Taken, compare
from logstore import LogStore, archive, demo, partitions
from logstore.settings import ROOT
from logstore.tables import PARENTS
from logstore.workbench import background, cached
from logstore.workbench.navigation import PAGES

EVENTS = {"small": (20_000, 100_000), "full": (100_000, 1_000_000)}
DAYS = 90
_LIMIT, _NOTHING = "300 ms", "a page that does nothing"
_EVENTS_SQL = """
INSERT INTO events
SELECT 'evt_' || n, 'tenant_' || floor(25 * (u.x * u.x)), '', %(end)s - %(span)s * (n / (%(rows)s + 1.0)),
    'topic_' || floor(20 * ((hashtext('t' || n) & 65535) / 65536.0) ^ 2), n %% 7 > 0,
    jsonb_build_object('order', n, 'amount', n %% 1000, 'customer', 'cus_' || n %% 400, 'note', repeat(md5(n::text), 8)),
    '{"region": "eu"}'
FROM generate_series(1, %(rows)s) n, LATERAL (SELECT (hashtext('u' || n) & 65535) / 65536.0 AS x) u"""
# One event in a hundred is never attempted; one delivery in ten fails at first, and one in forty to the end.
_ATTEMPTS_SQL = """
INSERT INTO attempts
SELECT 'att_' || o.n || '_' || k, e.id, e.tenant_id, replace(e.tenant_id, 'tenant', 'des') || '_' || o.n %% 3, e.topic,
    CASE WHEN k < tries OR o.n %% 40 = 0 THEN 'failed' ELSE 'success' END,
    e.time + make_interval(secs => (hashtext(e.id) & 65535) / 20000.0 + 40 * (k - 1)), k, false,
    CASE WHEN k < tries OR o.n %% 40 = 0 THEN (ARRAY['500', '503', '429', 'timeout'])[1 + o.n %% 4] ELSE '200' END,
    '{"body": "ok"}', e.time, e.eligible_for_retry, e.data, e.metadata
FROM events e, LATERAL (SELECT (e.data->>'order')::int AS n) o,
    LATERAL (SELECT CASE WHEN o.n %% 100 = 7 THEN 0 WHEN o.n %% 10 = 0 THEN 3 ELSE 1 END AS tries) t,
    LATERAL generate_series(1, tries) k
WHERE e.id LIKE 'evt_%%' AND e.time < %(end)s"""


@dataclass(frozen=True, kw_only=True)
class _Interaction:
    """Something that people do on a page: how it is opened, and what they do then (nothing: the opening counts)."""

    name: str
    page: str
    params: Mapping[str, str] = field(default_factory=dict)
    act: Callable[[AppTest], object] | None = None


def _interactions() -> Iterator[_Interaction]:
    for page in PAGES:
        yield _Interaction(name=f"{page}: open", page=page, params={"id": "evt_200"} if page == "Event" else {})
    for page, range_ in itertools.product(("Overview", "Events", "Attempts", "Destinations"), ("24h", "90d")):
        act = partial(_choose_range, range_)
        yield _Interaction(name=f"{page}: {range_}", page=page, act=act)
    for page in ("Events", "Attempts"):
        yield _Interaction(name=f"{page}: older", page=page, act=lambda app: app.button(key="turn Older").click())
        yield _Interaction(
            name=f"{page}: one tenant",
            page=page,
            act=lambda app: app.multiselect(key="tenant_ids").set_value(["tenant_1"]),
        )
    tenant = {"tenant_ids": "tenant_1"}
    yield _Interaction(name="Destinations: one tenant", page="Destinations", params=tenant)
    one = tenant | {"destination_ids": "des_1_0"}
    yield _Interaction(name="Destinations: one destination", page="Destinations", params=one)


def _choose_range(name: str, app: AppTest) -> object:
    return app.segmented_control(key="range").set_value(name)


def run(size: str) -> Iterator[Result]:
    few, many = EVENTS[size]
    small, large = _log(few), _log(many)
    same = f"the same of {few:,} events"
    with _in_process():
        for interaction in _interactions():
            yield compare(
                Comparison(
                    name=f"{interaction.name}, {many:,} events",
                    product=partial(_interact, large, interaction),
                    rivals={same: partial(_interact, small, interaction), _NOTHING: _nothing, _LIMIT: 0.3},
                    promises={same: 1.5, _LIMIT: 1.0},
                    rounds=4,
                )
            )


@contextlib.contextmanager
def _in_process() -> Iterator[None]:
    """Streamlit as a server would run it, and no settings but ours."""
    logging.disable(logging.WARNING)  # it says for every call that no server runs
    # A server looks through all installed packages for components once, when it starts; AppTest does so for each session.
    found_once = patch.object(BidiComponentManager, "discover_and_register_components")
    with patch.dict(os.environ), patch.object(background, "PATIENCE", 60.0), found_once:
        for name in [name for name in os.environ if name.startswith("LOGSTORE_")]:
            del os.environ[name]
        try:
            yield
        finally:
            cached.forget()
            background.forget()
            logging.disable(logging.NOTSET)


def _interact(store: LogStore, interaction: _Interaction) -> Taken:
    os.environ["LOGSTORE_HOME"] = str(store.settings.home)
    cached.store()
    st.cache_data.clear()
    background.forget()
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if interaction.page != "Overview":
        app.switch_page(PAGES[interaction.page][0])
    for name, value in interaction.params.items():
        app.query_params[name] = value
    if interaction.act is not None:
        _check(app.run())
        interaction.act(app)
    return _timed(app)


def _nothing() -> Taken:
    return _timed(AppTest.from_string("import streamlit as st\nst.title('Nothing')"))


def _timed(app: AppTest) -> Taken:
    start = time.perf_counter()
    app.run()
    seconds = time.perf_counter() - start
    _check(app)
    return Taken(seconds)


def _check(app: AppTest) -> None:
    """A page that says an error in no time is not quick."""
    assert not app.exception, app.exception
    assert not app.error, [error.value for error in app.error]


def _log(events: int) -> LogStore:
    """A log like the demo's: 25 tenants, some 75 destinations, 20 topics, the oldest months archived."""
    store, end = data.kept_store(), datetime.now(UTC)
    start = end - timedelta(days=DAYS)
    months = [month for month in data.months_before(end + timedelta(days=31), 5) if month >= partitions.month_of(start)]
    partitions.ensure(store.database, {(parent, month) for parent in PARENTS for month in months})
    values = {"end": end, "span": end - start, "rows": events}
    data.write(store, [("events", _EVENTS_SQL, values), ("attempts", _ATTEMPTS_SQL, values)])
    for event, attempts in demo.events_and_attempts(events=300, end=end, days=2, seed=7):
        store.insert_many([event], attempts)  # the catalogue of fields looks at what is inserted
    for parent, month in itertools.product(PARENTS, months[:2]):
        name = partitions.partition_name(parent, month)
        archive.export(store, name)
        archive.flip(store, name)
        partitions.detach(store.database, name)
    return store
