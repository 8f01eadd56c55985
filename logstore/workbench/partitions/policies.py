"""Policies: how much each tier keeps of each table, in words and, for an operator, to be changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pandas
import streamlit as st

from logstore.errors import LoadError
from logstore.maintenance.checkup import size_text
from logstore.retention import Policy
from logstore.workbench import frame as frames
from logstore.workbench import processes, role, texts

TIERS = {"hot": "PostgreSQL", "cold": "the archive"}
_NUMBER = "a whole number"


def section(known: Sequence[Policy]) -> None:
    st.subheader("Policies", anchor=False)
    _said()
    rows = [
        {
            "table": policy.parent,
            "tier": TIERS[policy.tier],
            "age": "no limit" if policy.max_age is None else f"{policy.max_age / timedelta(days=1):g} days",
            "bytes": "no limit" if policy.max_bytes is None else size_text(policy.max_bytes),
            "count": "no limit" if policy.max_count is None else f"{policy.max_count} months",
            "least": f"{policy.min_count} months" if policy.min_count != 1 else "1 month",
        }
        for policy in known
    ]
    st.dataframe(pandas.DataFrame(rows), key="policies", hide_index=True, height="content", column_config=_CONFIG)
    st.caption(
        "A month leaves when it is over a limit, the oldest first. From PostgreSQL it goes to the archive, and can be "
        "taken back; what leaves the archive is gone for good."
    )
    if role.may_change() and known:
        with st.expander("Change a policy", icon=":material/tune:"):
            _form(known)


_CONFIG: dict[str, Any] = {
    "table": st.column_config.TextColumn("table", width=100),
    "tier": st.column_config.TextColumn("kept in", width=120),
    "age": st.column_config.TextColumn("maximum age", width=130, help="counted from a month's end"),
    "bytes": st.column_config.TextColumn("maximum size", width=130),
    "count": st.column_config.TextColumn("maximum months", width=130),
    "least": st.column_config.TextColumn("always kept", width=110, help="so many months stay, whatever the limits say"),
}


def _form(known: Sequence[Policy]) -> None:
    policy = st.selectbox(
        "Policy", known, format_func=lambda p: f"{p.parent} in {TIERS[p.tier]}", key="policy", width=320
    )
    if policy is None:
        return
    days = None if policy.max_age is None else policy.max_age // timedelta(days=1)
    with st.form("policy form", border=False):
        with st.container(horizontal=True):
            given = {
                "--max-age": _knob("Days", days, policy),
                "--max-bytes": _knob("Bytes", policy.max_bytes, policy, help_="such as 20GB; empty for no limit"),
                "--max-count": _knob("Months", policy.max_count, policy),
                "--min-count": _knob("Months that always stay", policy.min_count, policy, help_=_NUMBER, empty=_NUMBER),
            }
        if st.form_submit_button("Change it", type="primary"):
            change(policy, given)
            st.rerun()


def _knob(
    words: str, value: int | None, policy: Policy, *, help_: str = "empty for no limit", empty: str = "no limit"
) -> str:
    key = f"{words} {policy.parent} {policy.tier} {value}"
    return st.text_input(words, value="" if value is None else str(value), key=key, help=help_, placeholder=empty)


def change(policy: Policy, given: dict[str, str]) -> None:
    """Set all knobs of a policy by the command line, which refuses what makes no sense."""
    # What is empty has no limit; only how many months always stay is a number in any case.
    empty = {name: "" if name == "--min-count" else "none" for name in given}
    pairs = [part for name, text in given.items() for part in (name, text.strip() or empty[name])]
    with frames.sentences():
        try:
            processes.ask("maintain", "policy", policy.parent, policy.tier, *pairs)
        except LoadError as error:
            st.session_state["policy said"] = (False, f"{str(error)[:1].upper()}{str(error)[1:]}.")
        else:
            words = f"{policy.parent} in {TIERS[policy.tier]}: changed; the plan above follows it."
            st.session_state["policy said"] = (True, words)


def _said() -> None:
    """What the last change did, once."""
    if "policy said" in st.session_state:
        good, words = st.session_state.pop("policy said")
        (st.success if good else st.error)(
            texts.markdown(words, 500), icon=":material/check_circle:" if good else ":material/warning:"
        )
