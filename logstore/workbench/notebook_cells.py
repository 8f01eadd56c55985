"""Open in notebook: what a page shows, as a cell that is ready to run."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st

from logstore.analysis import questions
from logstore.records import TimeFilter
from logstore.workbench import times, url
from logstore.workbench.view import View

_OPEN = 'store = logstore.open(role="reader")'


def offer(page: str, view: View) -> None:
    """The button in the menu, with the cell behind it."""
    with st.popover("Open in notebook", icon=":material/note_stack:", width="stretch"):
        st.caption("What this page shows, as a cell; `make notebook` opens JupyterLab.")
        st.code(cell(page, view), language="python", wrap_lines=True)


def cell(page: str, view: View) -> str:
    """Python that gives the same rows; nothing of it needs to be defined before."""
    if page == "Event" and view.id is not None:
        return _of_event(view.id, view.tenant)
    if page == "Events":
        return _listed("list_event", view)
    if page == "Overview":
        return _counted(view, ("tenant_id",))
    if page == "Destinations":
        return _counted(view, ("tenant_id", "destination_id"))
    if page == "SQL":
        return _asked()
    if page == "Loads":
        return _rows("loads", "loads.history(store)")
    if page == "Fields":
        topic = f", {view.selection.topics[0]!r}" if view.selection.topics else ""
        return _rows("fields", f"fields.catalogue(store.database{topic})")
    if page == "Partitions":
        return _rows("partitions", "partitions.inventory(store.database)")
    return _listed("list_attempt", view)


def _of_event(event_id: str, tenant: str | None) -> str:
    owner = "" if tenant is None else f", tenant_id={tenant!r}"
    return _joined(
        ["from logstore import Selection"],
        f"event = store.retrieve_event({event_id!r}{owner})",
        "selection = Selection(tenant_ids=(event.tenant_id,), event_ids=(event.id,))",
        'store.list_attempt(selection, limit=1000, order="asc").to_pandas()',
    )


def _listed(name: str, view: View) -> str:
    place = next((f", {way}={at!r}" for way, at in (("next", view.next), ("prev", view.prev)) if at is not None), "")
    imports, selection = source(view)
    return _joined(
        imports,
        f"selection = {selection}",
        f"page = store.{name}(selection, limit={view.limit}{place})",
        "page.to_pandas()",
    )


def _counted(view: View, dimensions: tuple[str, ...]) -> str:
    """Metrics have both ends: where a range is open, ten years before its end, or now."""
    time, span = view.selection.time, _span(view)
    lower, upper = time.gte or time.gt, time.lt or time.lte
    end = "datetime.now(UTC)" if upper is None else _time(upper)
    start = f"end - {_hours(span or timedelta(days=3650))}" if lower is None else _time(lower)
    imports, selection = source(view.but(range="all", selection=view.selection.but(time=TimeFilter())))
    return _joined(
        ["from datetime import UTC, datetime, timedelta", *imports],
        f"selection = {selection}",
        f"end = {end}",
        f"start = {start}",
        'measures = ("count", "failed_count", "error_rate")',
        f"metrics = store.attempt_metrics(start, end, selection=selection, measures=measures, dimensions={dimensions!r})",
        'metrics.to_pandas().sort_values("failed_count", ascending=False)',
    )


def _asked() -> str:
    name, sql = url.one("question"), url.one("sql")
    if name is not None and name in questions():
        found = ((each.name, url.one(url.QUESTION + each.name)) for each in questions()[name].parameters)
        values = "".join(f", {word}={value!r}" for word, value in found if value)
        tiers = ', tiers="both"' if url.one("tiers") == "both" else ""
        return _rows("analysis", f"analysis.ask(store, {name!r}{tiers}{values})")
    if sql is not None:
        return _joined(["from logstore import analysis"], f"sql = {sql!r}", "analysis.sandbox(store, sql).to_pandas()")
    return _joined(
        ["from logstore import analysis"],
        'connection = analysis.connect(store, tiers="both")',
        'connection.sql("SELECT status, count(*) AS attempts FROM attempts GROUP BY status").df()',
    )


def _rows(module: str, call: str) -> str:
    frame = f"{call}.to_pandas()" if module == "analysis" else f"pd.DataFrame({call})"
    imports = [f"from logstore import {module}"]
    return _joined(imports if module == "analysis" else ["import pandas as pd", *imports], frame)


def source(view: View) -> tuple[list[str], str]:
    """A view's selection as Python, and what it needs imported. A named range stays one: it ends when the cell is run."""
    selection = view.selection
    names = ("tenant_ids", "event_ids", "destination_ids", "topics", "status")
    parts = [f"{name}={getattr(selection, name)!r}" for name in names if getattr(selection, name)]
    bounds = [(name, getattr(selection.time, name)) for name in ("gte", "lte", "gt", "lt")]
    written = [f"{name}={_time(bound)}" for name, bound in bounds if bound is not None]
    span = _span(view)
    if span is not None:
        written = [f"gte=datetime.now(UTC) - {_hours(span)}"]
    parts += [f"time=TimeFilter({', '.join(written)})"] if written else []
    parts += [f"where={selection.where!r}"] if selection.where is not None else []
    imports = ["from datetime import UTC, datetime, timedelta"] if written else []
    imports.append(f"from logstore import Selection{', TimeFilter' if written else ''}")
    return imports, f"Selection({', '.join(parts)})"


def _span(view: View) -> timedelta | None:
    return None if view.range is None else times.RANGES[view.range]


def _hours(span: timedelta) -> str:
    return f"timedelta(hours={span // timedelta(hours=1)})"


def _time(time: datetime) -> str:
    return f"datetime.fromisoformat({time.isoformat()!r})"


def _joined(imports: list[str], *lines: str) -> str:
    standard = [line for line in imports if line.startswith("from datetime")]
    others = [line for line in imports if line.startswith("import pandas")]
    ours = [line for line in imports if line.startswith("from logstore")]
    head = [*standard, *([""] if standard else []), *others, *([""] if others else []), "import logstore", *ours, ""]
    return "\n".join([*head, _OPEN, *lines])
