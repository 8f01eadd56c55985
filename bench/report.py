"""results/report.html: the newest ratios beside their promises, and how they went from run to run."""

from __future__ import annotations

import html
from collections import defaultdict
from pathlib import Path
from typing import Any

import plotly.graph_objects as go

from bench import history
from bench.history import Run

_STYLE = """<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1100px; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; width: 100% }
td, th { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #ddd }
td.n { text-align: right; font-variant-numeric: tabular-nums } .broken { color: #b00020; font-weight: 600 }
</style>"""


def write(folder: Path = history.FOLDER) -> Path:
    """Made anew from every run in the folder."""
    parts = [
        f"<!doctype html><meta charset='utf-8'><title>logstore bench</title>{_STYLE}<h1>Measured side by side</h1>"
    ]
    parts.append("<p>Ratios of the best times: below 1 the product is quicker. Red is outside of what is promised.</p>")
    library: bool | str = True  # the first picture brings plotly along, so that the page works offline
    for size in ("small", "full"):
        found = history.runs(size, folder)
        if not found:
            continue
        parts.append(f"<h2>{size}</h2>{_machine(found[-1])}")
        for case, latest in _latest(found).items():
            parts.append(f"<h3>{html.escape(case)}</h3>{_table(latest)}")
            parts.append(_picture(case, found).to_html(full_html=False, include_plotlyjs=library))
            library = False
    path = folder / "report.html"
    path.write_text("\n".join(parts))
    return path


def _latest(found: list[Run]) -> dict[str, list[dict[str, Any]]]:
    """Each case as it was measured last; runs of one case leave the others as they were."""
    return {case: results for run in found for case, results in run["cases"].items()}


def _machine(run: Run) -> str:
    facts = run["machine"]
    said = [f"{facts['cores']} cores", facts.get("processor"), facts.get("memory"), f"Python {facts['python']}"]
    said += [facts["system"], facts.get("commit") and f"commit {facts['commit']}", run["time"]]
    return f"<p>{html.escape(' · '.join(str(fact) for fact in said if fact))}</p>"


def _table(results: list[dict[str, Any]]) -> str:
    head = "<tr><th>what</th><th>best</th><th>beside</th><th>its best</th><th>ratio</th><th>promised</th></tr>"
    rows = []
    for result in results:
        for rival, ratio in result["ratios"].items():
            most = result["promises"].get(rival)
            mark = " broken" if most is not None and ratio > most else ""
            cells = [f"<td>{html.escape(result['name'])}</td>", _number(result["product"]["minimum"] * 1000, " ms")]
            cells += [f"<td>{html.escape(rival)}</td>", _number(result["rivals"][rival]["minimum"] * 1000, " ms")]
            cells.append(f"<td class='n{mark}'>{ratio:.2f} ×</td>")
            cells.append("<td></td>" if most is None else f"<td class='n'>≤ {most:.2f}</td>")
            rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{head}{''.join(rows)}</table>"


def _number(value: float, unit: str) -> str:
    return f"<td class='n'>{value:,.2f}{unit}</td>"


def _picture(case: str, found: list[Run]) -> go.Figure:
    """A line for each ratio that has a promise, as a share of what is promised; the others are in the table."""
    lines: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for run in found:
        for result in run["cases"].get(case, []):
            for rival, most in result["promises"].items():
                if rival in result["ratios"]:
                    lines[f"{result['name']} / {rival}"].append((run["time"], result["ratios"][rival] / most))
    figure = go.Figure()
    for name, points in lines.items():
        times, shares = zip(*points, strict=True)
        figure.add_scatter(x=times, y=shares, name=name, mode="lines+markers")
    figure.add_hline(y=1, line_dash="dash", line_color="#b00020", annotation_text="promised")
    figure.update_layout(height=380, margin={"t": 20}, yaxis_title="ratio ÷ promise", template="plotly_white")
    figure.update_yaxes(rangemode="tozero")
    return figure
