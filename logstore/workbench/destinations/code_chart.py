"""The codes that a destination failed with, over time, in one stacked picture."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import pandas
import plotly.graph_objects as go

from logstore.metrics import Granularity
from logstore.records import to_micros
from logstore.workbench.charts import BAD, NONE, bar, stacked, wall, walls
from logstore.workbench.destinations.health import OTHER
from logstore.workbench.texts import label

# Most frequent first; they differ by pattern as well.
_LOOKS = ((BAD, "/"), ("#e0913a", "\\"), ("#9a6dd7", "x"), ("#c2578f", "-"), ("#7a5a48", "+"), ("#4b6cb7", "|"))


def code_bars(frame: pandas.DataFrame, *, zone: tzinfo) -> Any:
    """Failed attempts by code; `frame` is what `health.codes` gives."""
    width = Granularity.parse(frame.attrs["width"])
    looks = iter(_LOOKS)
    traces = []
    for code, part in frame.groupby("code", observed=True):
        colour, pattern = (NONE, ".") if code == OTHER else next(looks)
        starts = [to_micros(start.to_pydatetime()) for start in part["start"]]
        name = label(code, 30)
        traces.append(
            bar(
                x=walls(part["start"], zone),
                y=part["count"],
                name=name,
                colour=colour,
                pattern=pattern,
                width=[(width.after(start) - start) / 1000 * 0.92 for start in starts],
                hovertemplate=f"%{{x|%a %d %b %H:%M}}<br>%{{y:,}} failed attempts<extra>{name}</extra>",
            )
        )
    span = (wall(frame.attrs["lower"], zone), wall(frame.attrs["upper"], zone))
    return go.Figure(traces, stacked(frame, height=180, span=span) | {"dragmode": False, "showlegend": True})
