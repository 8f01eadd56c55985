"""Partitions: is the log healthy, where is each month, what should be done about it, and what was done?"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pandas
import streamlit as st

from logstore import maintenance
from logstore.maintenance import Finding, Health
from logstore.maintenance.checkup import size_text
from logstore.workbench import cached, charts, maintenance_progress, signs, texts, times, url
from logstore.workbench import frame as frames
from logstore.workbench.frame import Frame
from logstore.workbench.partitions import maintenance_plan, month_detail, months, months_chart, policies
from logstore.workbench.ranking_table import on_click
from logstore.workbench.record_table import LINK

_LOGGED = 200
_LEVELS = {"ok": f"{signs.GOOD} in order", "warn": f"{signs.WARN} look at it", "act": f"{signs.BAD} to do"}
_ICONS = {"ok": ":material/check_circle:", "warn": ":material/warning:", "act": ":material/error:"}


def page(frame: Frame) -> None:
    """Health, what is at work, the months, the plan, the policies, the log."""
    store = cached.store()
    _health(maintenance.health(store, now=frame.now))
    at_work = maintenance_progress.live()
    survey, found = months.standing(store, now=frame.now)
    st.subheader("Months", anchor=False)
    if found:
        drawn = months_chart.picture(found, now=frame.now, zone=frame.zone)
        st.plotly_chart(drawn, config=charts.CONFIG, key="picture")
        months.table(frame, found)
        _chosen(frame, found, at_work=at_work)
    else:
        st.info(
            "The log has no months yet: the first writer makes them, and so does the plan.", icon=":material/inbox:"
        )
    with frames.sentences():
        if at_work:
            st.subheader("Plan", anchor=False)
            st.caption("Maintenance is at work; when it is done, the plan is made anew.")
        else:
            maintenance_plan.section(maintenance.plan(store, now=frame.now))
    policies.section(list(survey.policies))
    with frames.sentences():
        _log(frame)


def _chosen(frame: Frame, found: list[months.Standing], *, at_work: bool) -> None:
    name = url.one("partition")
    if name is None:
        st.caption("Choose a row to see the month's segments, undo, archive, verify or purge it.")
        return
    one = months.named(found, name)
    if one is None:
        st.warning(f"There is no partition {texts.markdown(name)}; choose a row above.", icon=":material/search:")
    else:
        month_detail.section(frame, one, at_work=at_work)


# Health


def _health(health: Health) -> None:
    """What needs a person, in words; what is in order is folded away."""
    troubles = sorted((f for f in health.findings if f.level != "ok"), key=lambda f: f.level)  # act before warn
    if not troubles:
        st.success(f"The log is healthy: all {len(health.findings)} checks are in order.", icon=_ICONS["ok"])
    for finding in troubles:
        words = texts.markdown(_sentence(finding), 600)
        (st.error if finding.level == "act" else st.warning)(words, icon=_ICONS[finding.level])
    with st.expander(f"The {len(health.findings)} checks"):
        shown = pandas.DataFrame(
            {
                "level": [_LEVELS[f.level] for f in health.findings],
                "check": [f.check for f in health.findings],
                "what": [f.what for f in health.findings],
                "advice": [f.advice for f in health.findings],
            }
        )
        if not shown["advice"].any():
            shown = shown.drop(columns="advice")
        st.dataframe(shown, hide_index=True, height="content", column_config=_CHECKS)


_CHECKS: dict[str, Any] = {
    "level": st.column_config.TextColumn("state", width=95),
    "check": st.column_config.TextColumn("check", width=110),
    "what": st.column_config.TextColumn("how it stands", width="large"),
    "advice": st.column_config.TextColumn("what to do", width="large"),
}


def _sentence(finding: Finding) -> str:
    """A finding for a page, which has the command as a button."""
    advice = finding.advice.replace("run `python -m logstore maintain apply`", "apply the plan below").replace(
        "see `python -m logstore dead-letters list`", "see the page Loads"
    )
    advice = advice.replace("`", "")
    what = f"{finding.check[:1].upper()}{finding.check[1:]}: {finding.what}"
    return f"{what}. {advice[:1].upper()}{advice[1:]}." if advice else f"{what}."


# What was done


def _log(frame: Frame) -> None:
    st.subheader("Run log, the newest first", anchor=False)
    entries = maintenance.log(cached.store(), limit=_LOGGED)
    if not entries:
        st.caption("Nothing was done yet.")
        return
    shown = pandas.DataFrame(
        {
            "time": [times.show_short(entry.time, frame.zone) for entry in entries],
            "result": [maintenance_progress.RESULTS[entry.result] for entry in entries],
            "action": [entry.action for entry in entries],
            "partition": [f"{LINK} {entry.partition}" if entry.partition else None for entry in entries],
            "step": [f"{entry.step} of {entry.steps}" for entry in entries],
            "actor": [entry.actor for entry in entries],
            "rows": [entry.rows for entry in entries],
            "size": [size_text(entry.bytes) if entry.bytes else "" for entry in entries],
            "took": [_took(entry.milliseconds) for entry in entries],
            "error": [entry.error or "" for entry in entries],
        }
    )
    failed = [entry for entry in entries if entry.result == "failed"]
    if not failed:
        shown = shown.drop(columns="error")
    st.dataframe(
        shown,
        key="run log",
        hide_index=True,
        height="content" if len(entries) <= 10 else 390,
        column_config=_LOG | {"time": _time(frame), "partition": _partition(entries)},
    )
    if failed:
        with st.expander(f"The last error, {times.ago(failed[0].time, frame.now)}: {texts.markdown(failed[0].what)}"):
            st.code(failed[0].error or "", language=None, wrap_lines=True)
    if len(entries) == _LOGGED:
        st.caption(f"The last {_LOGGED} steps; `python -m logstore maintain log --limit 10000` has more.")


def _partition(entries: list[maintenance.Entry]) -> Any:
    drawn = pandas.DataFrame({"partition": [entry.partition for entry in entries]})
    click = on_click("run log partition", drawn, lambda row: _open(row["partition"]))
    return st.column_config.ButtonColumn("partition", type="tertiary", alignment="left", width=165, **click)


def _open(partition: str) -> None:
    """Choose a month from below it."""
    if partition:  # a step may concern none
        url.put(partition=partition)
        st.toast(f"{texts.markdown(partition)} stands below the table of the months.", icon=":material/arrow_upward:")


def _took(milliseconds: int | None) -> str:
    return "" if milliseconds is None else times.span(timedelta(milliseconds=milliseconds))


def _time(frame: Frame) -> Any:
    return st.column_config.TextColumn(f"time ({frame.zone_name})", width=130)


_LOG: dict[str, Any] = {
    "result": st.column_config.TextColumn("result", width=90),
    "action": st.column_config.TextColumn("action", width=80),
    "step": st.column_config.TextColumn("step", width=75),
    "actor": st.column_config.TextColumn("by", width=100),
    "rows": st.column_config.NumberColumn("rows", format="localized", width=85),
    "size": st.column_config.TextColumn("size", width=80, alignment="right"),
    "took": st.column_config.TextColumn("took", width=70),
    "error": st.column_config.TextColumn("why it failed", width=420),
}
