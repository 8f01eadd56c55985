"""The plan: what maintenance would do and why, with its SQL; one click does exactly what is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas
import streamlit as st

from logstore.maintenance import Plan, Step
from logstore.maintenance.checkup import size_text
from logstore.workbench import maintenance_progress, role, texts

_MEANING = {
    "attach": "put its table back into the log",
    "finalise": "end an interrupted detach",
    "premake": "make the month",
    "close": "make it read-only",
    "export": "write its segments",
    "verify": "read the segments again and compare",
    "flip": "serve it from the archive",
    "detach": "take its table out, keep it for undo",
    "purge": "drop the table that was kept for undo",
    "remove": "let its rows go for good",
    "delete": "delete files that nobody reads any more",
    "fold": "add up the roll-ups",
}


def section(plan: Plan) -> None:
    """The plan of this moment, and the button that applies it."""
    st.subheader("Plan", anchor=False)
    if not plan.steps:
        st.success("Nothing to do: every month is where its policy wants it.", icon=":material/check_circle:")
        return
    _table(plan)
    _statements(plan)
    removed = [step.partition for step in plan if step.action == "remove"]
    if not role.may_change():
        reader_note()
        st.button("Apply this plan", disabled=True, key="apply", icon=":material/play_arrow:")
    elif removed:
        _apply_removing(plan, removed)
    else:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Apply this plan",
                key="apply",
                type="primary",
                icon=":material/play_arrow:",
                on_click=apply,
                args=(plan.hash,),
            )
            st.caption(f"Exactly the plan `{plan.hash[:12]}`: should anything have changed meanwhile, it is refused.")


def reader_note() -> None:
    role.reader_note("change months", "python -m logstore maintain --help")


def apply(hash_: str) -> None:
    """Start the plan that was shown: the hash refuses any other."""
    command = ("maintain", "apply", "--yes", "--json", "--hash", hash_, "--actor", maintenance_progress.ACTOR)
    maintenance_progress.start(("apply the plan",), *command)


def _apply_removing(plan: Plan, removed: list[str]) -> None:
    """Rows that no table and no file will hold any more are let go only by name."""
    st.warning(
        "This plan removes rows for good, by the policies of the archive: "
        f"{texts.markdown(maintenance_progress.some(removed))}.",
        icon=":material/delete:",
    )
    with st.form("apply removing", border=False):
        typed = st.text_input(f"To apply it, type {texts.markdown(removed[0])}", key=f"type {plan.hash}")
        if st.form_submit_button("Apply this plan", type="primary", icon=":material/play_arrow:"):
            if typed.strip() == removed[0]:
                apply(plan.hash)
                st.rerun()
            st.error("The name does not match, so nothing was done.", icon=":material/warning:")


def _table(plan: Plan) -> None:
    shown = pandas.DataFrame(
        [
            {
                "step": number,
                "action": step.action,
                "partition": step.partition,
                "what": _MEANING.get(step.action, ""),
                "reason": step.reason,
                "rows": step.rows,
                "size": size_text(step.bytes) if step.bytes else "",
                "lock": step.lock,
            }
            for number, step in enumerate(plan, 1)
        ]
    )
    st.dataframe(
        shown,
        key=f"plan {plan.hash}",
        hide_index=True,
        height="content" if len(plan) <= 12 else 450,
        column_config=_CONFIG,
    )


def _text(heading: str, width: int, help_: str | None = None, *, right: bool = False) -> Any:
    return st.column_config.TextColumn(heading, width=width, help=help_, alignment="right" if right else None)


_CONFIG: dict[str, Any] = {
    "step": st.column_config.NumberColumn("step", width=45),
    "action": _text("action", 75),
    "partition": _text("partition", 145),
    "what": _text("which is to", 230),
    "reason": _text("because", 280),
    "rows": st.column_config.NumberColumn("rows about", format="localized", width=85),
    "size": _text("size", 75, right=True),
    "lock": _text("lock", 400, "what it takes in PostgreSQL, and whom that stops"),
}


def _statements(plan: Plan) -> None:
    with st.expander(f"The exact SQL of {len(plan)} {'step' if len(plan) == 1 else 'steps'}", icon=":material/code:"):
        st.code(statements(plan), language="sql")


def statements(steps: Iterable[Step]) -> str:
    return "\n\n".join(statement(step, number) for number, step in enumerate(steps, 1))


def statement(step: Step, number: int | None = None) -> str:
    """What a step runs, with the lock that it takes."""
    head = step.what if number is None else f"{number}: {step.what}"
    return f"-- {head}\n-- lock: {step.lock}\n{step.sql};"
