"""maintain, health: what should be done about the log's months, doing it, taking it back, and how it all stands."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

import logstore
from logstore import maintenance
from logstore.commands import Subparsers, actor, command, count, operator, show, table
from logstore.errors import MaintenanceError
from logstore.maintenance.checkup import LEVELS, size_text
from logstore.maintenance.runs import Entry, Run
from logstore.maintenance.steps import Plan
from logstore.retention import Policy
from logstore.tables import PARENTS

_EXAMPLES = """  python -m logstore maintain plan                              what would be done, and why; changes nothing
  python -m logstore maintain plan --sql                        with the statements
  python -m logstore maintain apply                             show the plan, ask, do it
  python -m logstore maintain apply --yes                       for cron
  python -m logstore maintain undo attempts_2026_08             take a month back into PostgreSQL
  python -m logstore maintain archive attempts_2026_09          let a month leave before its policy says so
  python -m logstore maintain purge attempts_2026_08            give up its detached table
  python -m logstore maintain policy attempts hot --max-age 90  keep more; 'none' for no limit
  python -m logstore maintain log                               who did what"""
_PLAN = """  python -m logstore maintain plan
  python -m logstore maintain plan --sql"""
_APPLY = """  python -m logstore maintain apply
  python -m logstore maintain apply --yes --json      for cron"""
_UNDO = """  python -m logstore maintain undo attempts_2026_08"""
_PURGE = """  python -m logstore maintain purge attempts_2026_08"""
_ARCHIVE = """  python -m logstore maintain archive attempts_2026_09"""
_LOG = """  python -m logstore maintain log --limit 10"""
_POLICY = """  python -m logstore maintain policy                            what is kept, of both tables in both tiers
  python -m logstore maintain policy attempts hot --max-age 90  in PostgreSQL for 90 days
  python -m logstore maintain policy events cold --max-bytes 500GB"""
_HEALTH = """  python -m logstore health
  python -m logstore health --json || echo 'somebody should look'"""
_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNDOES = "take a month back from its detached table, writable again"
_PURGES = "give up a detached month's table; its segments remain"
_ARCHIVES = "let a month leave PostgreSQL before its policy says so"


def add(commands: Subparsers) -> None:
    parser = command(commands, "maintain", _plan, help="keep the log's months in order", examples=_EXAMPLES)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    action = command(actions, "plan", _plan, help="what would be done, and why", examples=_PLAN)
    action.add_argument("--sql", action="store_true", help="with the exact statements and their locks")
    action = command(actions, "apply", _apply, help="show the plan, ask, and do it", examples=_APPLY)
    action.add_argument("--yes", action="store_true", help="do not ask")
    action.add_argument("--hash", help="only if the plan is still this one; as `maintain plan` shows it")
    action = command(actions, "undo", _undo, help=_UNDOES, examples=_UNDO)
    action.add_argument("partition", help="such as attempts_2026_08")
    action = command(actions, "purge", _purge, help=_PURGES, examples=_PURGE)
    action.add_argument("partition", help="such as attempts_2026_08")
    action.add_argument("--override", action="store_true", help="although it could still be undone")
    action = command(actions, "archive", _archive, help=_ARCHIVES, examples=_ARCHIVE)
    action.add_argument("partition", help="such as attempts_2026_08")
    for name in ("apply", "undo", "purge", "archive"):
        actions.choices[name].add_argument("--actor", default=actor(), help="who does it, for the log")
    action = command(actions, "log", _log, help="what was done, newest first", examples=_LOG)
    action.add_argument("--limit", type=count, default=50, help="at most so many steps (50)")
    _add_policy(actions)
    levels = "how the log stands; the exit code is 0 for ok, 1 for warn, 2 for act"
    command(commands, "health", _health, help=levels, examples=_HEALTH)


def _add_policy(actions: Subparsers) -> None:
    action = command(
        actions, "policy", _policy, help="what each tier keeps; with a table and a tier, change it", examples=_POLICY
    )
    action.add_argument("table", nargs="?", choices=PARENTS)
    action.add_argument("tier", nargs="?", choices=("hot", "cold"))
    action.add_argument("--max-age", metavar="DAYS", help="counted from a month's end; 'none' for no limit")
    action.add_argument("--max-bytes", metavar="SIZE", help="such as 20GB; 'none' for no limit")
    action.add_argument("--max-count", metavar="MONTHS", help="'none' for no limit")
    action.add_argument("--min-count", metavar="MONTHS", help="so many always stay")


def _plan(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        plan = maintenance.plan(store)
    show(given, plan.to_dict(), _plan_text(plan, sql=given.sql))


def _apply(given: argparse.Namespace) -> int:
    with operator() as store:
        plan = maintenance.plan(store)
        if given.hash and not plan.hash.startswith(given.hash):
            raise MaintenanceError(
                f"the plan has changed since it was shown: it was {given.hash[:12]} and is now {plan.hash[:12]}. "
                "Nothing was done; look at it again"
            )
        if not given.json:
            print(_plan_text(plan), flush=True)
        if plan.steps and not given.yes and not _confirmed(given):
            print("nothing was done")
            return 1
        run = maintenance.apply(store, plan, actor=given.actor, progress=None if given.json else _progress)
    show(given, _run_document(run), f"{len(run.entries)} steps done" if run.entries else "")
    return 0


def _undo(given: argparse.Namespace) -> None:
    with operator() as store:
        run = maintenance.undo(store, given.partition, actor=given.actor)
    show(given, _run_document(run), f"{given.partition} is in PostgreSQL again, and open")


def _purge(given: argparse.Namespace) -> None:
    with operator() as store:
        run = maintenance.purge(store, given.partition, actor=given.actor, override=given.override)
    show(given, _run_document(run), f"the table of {given.partition} is gone; its segments serve it")


def _archive(given: argparse.Namespace) -> None:
    with operator() as store:
        run = maintenance.archive_now(store, given.partition, actor=given.actor)
    show(given, _run_document(run), f"the archive serves {given.partition}; its table is detached and kept for undo")


def _log(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        entries = maintenance.log(store, limit=given.limit)
    rows = [
        (_second(e.time), e.actor, f"{e.step}/{e.steps}", e.what, e.result, e.rows, e.bytes, e.milliseconds, e.error)
        for e in entries
    ]
    head = ("time", "actor", "step", "what", "result", "rows", "bytes", "ms", "error")
    show(given, [_entry_document(e) for e in entries], table(rows, head) if rows else "nothing was done yet")


def _policy(given: argparse.Namespace) -> None:
    changes = {name: getattr(given, name) for name in ("max_age", "max_bytes", "max_count", "min_count")}
    changes = {name: value for name, value in changes.items() if value is not None}
    if changes and not given.tier:
        raise MaintenanceError(
            "name a table and a tier, such as `python -m logstore maintain policy attempts hot --max-age 90`"
        )
    with operator() if changes else logstore.open(role="reader") as store:
        for policy in maintenance.policies(store) if changes else ():
            if (policy.parent, policy.tier) == (given.table, given.tier):
                read = {name: _value(name, text) for name, text in changes.items()}
                maintenance.set_policy(store, replace(policy, **read))
        found = [
            p
            for p in maintenance.policies(store)
            if p.parent == (given.table or p.parent) and p.tier == (given.tier or p.tier)
        ]
    head = ("table", "tier", "max age", "max bytes", "max count", "min count")
    show(given, [_policy_document(p) for p in found], table([_policy_row(p) for p in found], head))


def _health(given: argparse.Namespace) -> int:
    with logstore.open(role="reader") as store:
        health = maintenance.health(store)
    rows = [(f.level, f.check, f.what, f.advice) for f in health.findings]
    show(given, health.to_dict(), table(rows, ("level", "check", "what", "what to do")))
    return LEVELS.index(health.level)


# Texts


def _plan_text(plan: Plan, *, sql: bool = False) -> str:
    if not plan.steps:
        return "nothing to do"
    rows = [
        (n, s.action, s.partition, _day(s.lower), _day(s.upper), f"{s.rows:,}", size_text(s.bytes), s.reason)
        for n, s in enumerate(plan.steps, 1)
    ]
    head = ("", "action", "partition", "from", "to", "rows about", "size", "reason")
    texts = [f"\n\n-- {n}: {s.what}\n-- lock: {s.lock}\n{s.sql};" for n, s in enumerate(plan.steps, 1)]
    return f"{table(rows, head)}\nplan {plan.hash[:12]}{''.join(texts) if sql else ''}"


def _second(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"


def _day(time: datetime | None) -> str:
    return f"{time:%Y-%m-%d}" if time else ""


def _progress(entry: Entry) -> None:
    if entry.result == "done":
        print(f"{entry.step}/{entry.steps} {entry.what}: {entry.milliseconds} ms", flush=True)


def _confirmed(given: argparse.Namespace) -> bool:
    if given.json or not sys.stdin.isatty():
        raise MaintenanceError("nobody is there to be asked: add --yes")
    return input("apply this plan? [y/N] ").strip().lower() in ("y", "yes")


def _run_document(run: Run) -> dict[str, Any]:
    return {"run": str(run.run), "plan": run.plan.hash, "steps": [_entry_document(e) for e in run.entries]}


def _entry_document(entry: Entry) -> dict[str, Any]:
    return asdict(entry) | {"run": str(entry.run)}


def _policy_row(policy: Policy) -> tuple[Any, ...]:
    age = None if policy.max_age is None else f"{policy.max_age / timedelta(days=1):g} days"
    size = None if policy.max_bytes is None else size_text(policy.max_bytes)
    return (
        policy.parent,
        policy.tier,
        age or "-",
        size or "-",
        "-" if policy.max_count is None else policy.max_count,
        policy.min_count,
    )


def _policy_document(policy: Policy) -> dict[str, Any]:
    age = None if policy.max_age is None else policy.max_age / timedelta(days=1)
    return asdict(policy) | {"max_age": age}


def _value(name: str, text: str) -> Any:
    """A knob as a person writes it; None is no limit."""
    if text == "none" and name != "min_count":
        return None
    match = re.fullmatch(r"(\d{1,15})\s*(kB|MB|GB|TB)?", text)
    if match is None or (match[2] and name != "max_bytes"):
        more = ", or 'none' for no limit" if name != "min_count" else "; 0 lets every month leave"
        raise MaintenanceError(f"{name.replace('_', '-')} is {text!r}; write a whole number{more}")
    number = int(match[1]) * _UNITS[match[2] or ""]
    if number > (10**5 if name != "max_bytes" else 10**18):
        raise MaintenanceError(f"{name.replace('_', '-')} is {text!r}, which is too much")
    return timedelta(days=number) if name == "max_age" else number
