"""The months of the log as a picture: a line for each table, a bar for each month; pattern and word say its condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

import plotly.graph_objects as go

from logstore.maintenance.checkup import size_text
from logstore.tables import PARENTS
from logstore.workbench.charts import dressed, wall
from logstore.workbench.partitions.months import LOOKS, Standing
from logstore.workbench.texts import label

_WORDS_MOST = 14  # months; with more of them the words no longer fit into their bars


def picture(found: Sequence[Standing], *, now: datetime, zone: tzinfo) -> Any:
    """Every month where it lies in time; the line is now."""
    figure = go.Figure()
    words = len({one.month.lower for one in found}) <= _WORDS_MOST
    for name, look in LOOKS.items():
        own = [one for one in found if one.condition == name]
        if not own:
            continue
        figure.add_bar(
            orientation="h",
            y=[one.month.parent for one in own],
            base=[wall(one.month.lower, zone) for one in own],
            x=[(one.month.upper - one.month.lower).total_seconds() * 1000 for one in own],
            name=f"{look.word}: {look.meaning}",
            text=[f"{look.word}<br>{_many(one.rows)}" if words else "" for one in own],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": look.ink},
            hovertext=[_said(one) for one in own],
            hovertemplate="%{hovertext}<extra></extra>",
            marker={
                "color": look.colour,
                "pattern": {
                    "shape": look.pattern,
                    "size": 9,
                    "solidity": 0.15,
                    "fgcolor": "#ffffff",
                    "fillmode": "overlay",
                },
                "line": {"width": 1, "color": "rgba(127,127,127,0.6)"},
            },
        )
    drawn = len({one.condition for one in found})
    dressed(figure, height=110 + 58 * len(PARENTS) + 18 * drawn)  # on a narrow page the legend takes a line for each
    figure.update_layout(barmode="overlay", bargap=0.18, hovermode="closest", dragmode=False)
    figure.update_layout(uniformtext={"minsize": 9, "mode": "hide"})
    figure.update_layout(legend={"y": -0.22, "yanchor": "top", "itemclick": False, "itemdoubleclick": False})
    figure.add_vline(x=wall(now, zone), line={"width": 2, "dash": "dot", "color": "#8a94a6"}, layer="below")
    figure.add_annotation(x=wall(now, zone), y=1, yref="paper", yanchor="bottom", text="now", showarrow=False)
    figure.update_xaxes(type="date", showgrid=True)
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=sorted(PARENTS), fixedrange=True)
    return figure


def _said(one: Standing) -> str:
    month = one.month
    lines = [
        f"<b>{label(month.name)}</b>: {one.look.word}",
        one.look.meaning,
        f"{month.lower:%Y-%m-%d} – {month.upper:%Y-%m-%d} UTC, {one.rows:,} rows",
        f"{size_text(month.bytes)} in PostgreSQL" if month.exists else "",
        f"{size_text(month.cold_bytes)} in {month.segments} segments" if month.segments else "",
    ]
    return "<br>".join(line for line in lines if line)


def _many(count: int) -> str:
    """A number of rows that fits into a bar."""
    for size, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if count >= size:
            return f"{count / size:.3g}{unit} rows"
    return f"{count} rows" if count else "empty"
