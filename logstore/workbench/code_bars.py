"""The codes that a destination failed with, over time, in one stacked picture."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import pandas
import plotly.graph_objects as go

from logstore.metrics import Granularity
from logstore.records import to_micros
from logstore.workbench.charts import BAD, NONE, dressed, wall
from logstore.workbench.destination_health import OTHER
from logstore.workbench.texts import label

# Most frequent first; they differ by pattern as well.
_LOOKS = ((BAD, "/"), ("#e0913a", "\\"), ("#9a6dd7", "x"), ("#c2578f", "-"), ("#7a5a48", "+"), ("#4b6cb7", "|"))


def code_bars(frame: pandas.DataFrame, *, zone: tzinfo) -> Any:
    """Failed attempts by code; `frame` is what `destination_health.codes` gives."""
    figure = go.Figure()
    width = Granularity.parse(frame.attrs["width"])
    looks = iter(_LOOKS)
    for code, part in frame.groupby("code", observed=True):
        colour, pattern = (NONE, ".") if code == OTHER else next(looks)
        starts = [to_micros(start.to_pydatetime()) for start in part["start"]]
        name = label(code, 30)
        figure.add_bar(
            x=[wall(start, zone) for start in part["start"]],
            y=part["count"],
            name=name,
            marker={"color": colour, "pattern": {"shape": pattern, "size": 5, "solidity": 0.5}, "line": {"width": 0}},
            offset=0,
            width=[(width.after(start) - start) / 1000 * 0.92 for start in starts],
            hovertemplate=f"%{{x|%a %d %b %H:%M}}<br>%{{y:,}} failed attempts<extra>{name}</extra>",
        )
    figure.update_layout(barmode="stack", dragmode=False, hovermode="closest", showlegend=True)
    dressed(figure, height=180)
    figure.update_xaxes(type="date", range=[wall(frame.attrs[name], zone) for name in ("lower", "upper")])
    most = int(frame.groupby("start")["count"].sum().max())
    figure.update_yaxes(tickformat=",d", **({"dtick": 1, "range": [0, max(most, 1)]} if most < 4 else {"nticks": 4}))
    return figure
