"""Maintenance: plan, apply, undo, purge, the run log and health. A plan is shown before anything is done.

plan → close → export → verify → flip to cold → detach concurrently → undo window → purge; and, before all that, what was
left half done is mended and the months that will be needed are made.
"""

from __future__ import annotations

from logstore.maintenance.applying import apply, archive_now, purge, undo
from logstore.maintenance.checkup import Finding, Health, health
from logstore.maintenance.locks import Patience
from logstore.maintenance.planning import plan
from logstore.maintenance.runs import Entry, Run, ever_ended, log, working
from logstore.maintenance.steps import Plan, Step
from logstore.maintenance.survey import policies, set_policy

__all__ = [
    "Entry",
    "Finding",
    "Health",
    "Patience",
    "Plan",
    "Run",
    "Step",
    "apply",
    "archive_now",
    "ever_ended",
    "health",
    "log",
    "plan",
    "policies",
    "purge",
    "set_policy",
    "undo",
    "working",
]
