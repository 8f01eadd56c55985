"""Ad hoc questions over the archive: named ones, or SQL in a sandbox; the answer as a table, a picture, a file."""

from __future__ import annotations

from typing import Any

import streamlit as st

from logstore import analysis, partitions
from logstore.analysis import Question
from logstore.analysis.views import read_archive
from logstore.errors import InvalidSelection
from logstore.workbench import cached, signs, texts, url
from logstore.workbench.frame import Frame
from logstore.workbench.sql import question_form, results
from logstore.workbench.sql.query_job import ROWS, SECONDS, Job, Request

STARTER = """SELECT tenant_id, destination_id, count(*) AS attempts,
       count(*) FILTER (WHERE status = 'failed') AS failed
FROM attempts
GROUP BY ALL
ORDER BY failed DESC
LIMIT 20"""
_OWN = ""  # the choice that means: SQL of one's own
_LINK_MOST = 6_000  # characters of SQL that a link carries; browsers and proxies cut longer ones
_PATIENCE = 0.6  # seconds that a page waits, so that quick answers appear without a detour
_POLL = 0.4


def page(frame: Frame) -> None:
    """The archive, what is asked, and the answer."""
    empty = _archive()
    question = _choice()
    if question is None:
        _editor()
    else:
        _question(frame, question, empty)
    request = _request(question)
    if request is None:
        return
    job: Job | None = st.session_state.get("job")
    if job is None or job.request != request:
        if job is not None:
            job.cancel()
        job = st.session_state["job"] = Job(cached.store(), request)
    if not job.done.wait(_PATIENCE if job.seconds < _PATIENCE else 0):
        st.fragment(_waiting, run_every=_POLL)(job)
    elif job.error is not None:
        said = texts.markdown(job.error, 600)
        st.error(said[:1].upper() + said[1:] + ("" if said.endswith((".", "?")) else "."), icon=":material/warning:")
        if question is None:
            st.caption("One SELECT over the views events and attempts; `DESCRIBE attempts` lists their columns.")
    elif job.answer is not None:
        results.result(frame, job.answer, explained=request.explain)


def _archive() -> bool:
    """Say what is archived; True when nothing is."""
    segments = read_archive(cached.store()).segments
    if segments:
        rows = {parent: sum(s.rows for s in segments if s.parent == parent) for parent in ("events", "attempts")}
        months = sorted({f"{segment.month:%Y-%m}" for segment in segments})
        span = months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"
        st.caption(
            f"Over the archive: {rows['events']:,} events and {rows['attempts']:,} attempts of {span}. "
            f"One SELECT at a time, at most {SECONDS:g} s and {ROWS:,} rows; nothing can be changed."
        )
        return False
    month = next((p.name for p in partitions.inventory(cached.store().database) if p.state == "open"), None)
    st.info(
        "The archive is empty, so SQL finds no rows yet. Archive a month, or let a named question read the hot months.",
        icon=":material/inbox:",
    )
    st.code(f"python -m logstore export {month or 'attempts_YYYY_MM'} --flip", language="bash")
    return True


# What is asked


def _choice() -> Question | None:
    known = analysis.questions()
    asked = url.one("question") or _OWN
    options = [_OWN, *known]
    if asked not in options:
        st.warning("The link names a question that does not exist; choose one.", icon=":material/link_off:")
        asked = _OWN
    st.selectbox(
        "Start from",
        options,
        key=url.bound("question", asked),
        format_func=lambda name: known[name].title if name else "SQL of your own",
        on_change=lambda: _ask_for(st.session_state["question"]),
        width=620,
    )
    return known.get(asked)


def _ask_for(name: str) -> None:
    """Show a question's form, or the editor with what was in it; nothing runs yet."""
    url.put_all(_cleared() | {"question": name or None})


def _cleared() -> dict[str, str | None]:
    names = [name for name in st.query_params if name.startswith(question_form.PREFIX)]
    return dict.fromkeys([*names, "question", "sql", "run", "explain", "tiers", "x", "y", "chart"])


def _editor() -> None:
    linked = url.one("sql")
    if linked is not None and linked != st.session_state.get("linked sql"):
        st.session_state["written"] = st.session_state["linked sql"] = linked
    # Streamlit drops a widget's value while it is not drawn; the draft outlives a look at a named question.
    st.session_state["sql text"] = st.session_state.get("written", STARTER)
    st.html("<style>[data-testid=stTextArea] textarea { font-family: monospace; font-size: 0.9rem; }</style>")
    with st.form("editor", border=False):
        st.text_area(
            "SQL over the views events and attempts",
            key="sql text",
            height=190,
            help="DuckDB's SQL. JSON columns are text: data->>'$.amount' reads a field. DESCRIBE attempts lists columns.",
        )
        with st.container(horizontal=True, gap="small", vertical_alignment="center"):
            st.form_submit_button("Run", type="primary", icon=":material/play_arrow:", on_click=_run_sql, args=(False,))
            st.form_submit_button("Explain", icon=":material/account_tree:", on_click=_run_sql, args=(True,))
            st.caption("Ctrl+Enter runs it.", width="content")


def _run_sql(explain: bool) -> None:
    text = st.session_state["sql text"]
    st.session_state["written"] = text
    short = len(text) <= _LINK_MOST
    st.session_state["linked sql"] = text if short else None
    st.session_state.pop("job", None)
    changes = {"sql": text if short else None, "run": None if short else "1", "explain": "1" if explain else None}
    url.put_all(_cleared() | changes)


def _question(frame: Frame, question: Question, empty: bool) -> None:
    with st.form(f"question {question.name}", border=False):
        keys = question_form.widgets(frame, question)
        tiers = f"tiers {question.name} {url.one('tiers')} {empty}"
        st.checkbox(
            "Read the hot months too",
            value=url.one("tiers") == "both" or empty,
            key=tiers,
            help="They are copied from PostgreSQL first, which takes a while when they are large.",
        )
        args = (frame, question, keys, tiers)
        with st.container(horizontal=True, gap="small"):
            st.form_submit_button(
                "Run", type="primary", icon=":material/play_arrow:", on_click=_run_question, args=(*args, False)
            )
            st.form_submit_button("Explain", icon=":material/account_tree:", on_click=_run_question, args=(*args, True))
    with st.expander("Its SQL", icon=":material/code:"):
        sql = question_form.as_sql(question, _readable(question))
        st.code(sql, language="sql")
        st.button("Go on from it in the editor", on_click=_edit, args=(sql,), icon=":material/edit:")


def _readable(question: Question) -> tuple[tuple[str, str], ...]:
    """The link's parameters, as far as they can be read; the form warns about the others."""
    found = []
    for name, value in question_form.given(question):
        try:
            question.bind({name: value})
            found.append((name, value))
        except InvalidSelection:
            continue
    return tuple(found)


def _run_question(frame: Frame, question: Question, keys: dict[str, str], tiers: str, explain: bool) -> None:
    st.session_state.pop("job", None)
    both = bool(st.session_state.get(tiers))
    changes = {"question": question.name, "run": "1", "explain": "1" if explain else None}
    values = question_form.chosen(frame, question, keys)
    url.put_all(_cleared() | changes | values | {"tiers": "both" if both else None})


def _edit(sql: str) -> None:
    st.session_state["written"] = sql
    url.put_all(_cleared())


def _request(question: Question | None) -> Request | None:
    """What the URL asks; None when it asks nothing yet."""
    explain = url.one("explain") is not None
    if question is not None:
        if url.one("run") is None:
            return None
        tiers: Any = "both" if url.one("tiers") == "both" else "cold"
        given = question_form.given(question)
        return Request(question=question.name, parameters=given, tiers=tiers, explain=explain)
    sql = url.one("sql")
    if sql is None and url.one("run") is not None:
        sql = st.session_state.get("written")  # too long for a link; only this session knows it
    return None if sql is None else Request(sql=sql, explain=explain)


def _waiting(job: Job) -> None:
    if job.done.is_set():
        st.rerun()
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.button("Cancel", on_click=job.cancel, icon=":material/cancel:", key="cancel question")
        st.caption(f"{signs.GOING} Running for {job.seconds:.0f} s of at most {SECONDS:g} s", width="content")
