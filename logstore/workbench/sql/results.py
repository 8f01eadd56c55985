"""An answer drawn on a page: what to know about it, its rows, a file of them, and a picture of two columns."""

from __future__ import annotations

from typing import Any

import streamlit as st

from logstore.analysis import Answer
from logstore.workbench import charts, texts, url
from logstore.workbench.frame import Frame
from logstore.workbench.sql import result_formats

_KINDS = {"none": "No chart", "bar": "Bars", "line": "Line"}


def result(frame: Frame, answer: Answer, *, explained: bool) -> None:
    """The whole answer; the choice of the picture is in the URL."""
    for note in answer.notes:
        st.warning(texts.markdown(note, 500), icon=":material/warning:")
    if explained or answer.columns == ("explain_key", "explain_value"):
        for row in answer.rows:
            st.code(str(row[-1]), language=None)
        return
    count = f"{len(answer):,} {'row' if len(answer) == 1 else 'rows'}"
    with st.container(horizontal=True, gap="small", vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(
            f"**{count}** in {answer.seconds:.3f} s{_read(answer)}{'; there are more' if answer.truncated else ''}"
        )
        st.download_button(
            "Download as CSV",
            result_formats.as_csv(answer),
            file_name="answer.csv",
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
        )
    if not len(answer):
        st.info("No rows: nothing in the archive matches.", icon=":material/inbox:")
        return
    shown = result_formats.table(answer, frame)
    height: Any = "content" if len(shown) <= 15 else 560
    st.dataframe(shown, hide_index=True, height=height, key=f"answer {id(answer)}")
    _picture(answer, shown)


def _read(answer: Answer) -> str:
    """How much was read for it; what the files' footers tell needs no row."""
    if answer.read is None:
        return ""
    return (
        f", {answer.read:,} {'row' if answer.read == 1 else 'rows'} read" if answer.read else ", no row had to be read"
    )


def _picture(answer: Answer, shown: Any) -> None:
    upwards, names = result_formats.numeric(answer), list(shown.columns)
    if not upwards:
        return
    kind = url.one("chart") if url.one("chart") in _KINDS else "none"
    y = url.one("y") if url.one("y") in upwards else upwards[0]
    x = url.one("x") if url.one("x") in names else next((n for n in names if n != y), names[0])
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        _pick("chart", "Chart", list(_KINDS), kind, _KINDS)
        if kind != "none":
            _pick("x", "Across", names, x)
            _pick("y", "Upwards", upwards, y)
    if kind == "none" or x is None or y is None:
        return
    st.plotly_chart(result_formats.picture(shown, x=x, y=y, line=kind == "line"), config=charts.CONFIG, key="picture")
    if len(shown) > result_formats.DRAWN_MOST:
        st.caption(f"The first {result_formats.DRAWN_MOST:,} of {len(shown):,} rows are drawn.")
    if kind == "bar" and shown[x].head(result_formats.DRAWN_MOST).duplicated().any():
        st.caption(f"Several rows share a value of “{texts.markdown(x, 60)}”; their bars stand on each other.")


def _pick(name: str, label: str, options: list[str], value: str | None, words: dict[str, str] | None = None) -> None:
    st.selectbox(
        label,
        options,
        key=url.bound(f"pick {name}", value),
        format_func=lambda option: (words or {}).get(option, option),
        on_change=lambda: url.put_all({name: st.session_state[f"pick {name}"]}),
        width=200,
    )
