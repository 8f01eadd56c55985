"""Measures over time: one definition of a bucket, a rate and a percentile, the same on every engine.

buckets.py    the bucket of a time, and the same rule as SQL
measures.py   what is measured, made of parts that add up
question.py   a question, checked before anything runs
scan.py       the groups of a question from the records, over both tiers
rollups.py    the same from counts that are kept while writing, as far as they go
result.py     groups merged, series filled, measures computed
(Spark's groups are counted by logstore.pipeline.metrics: only the pipeline knows Spark.)
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from logstore.cursor import Kind
from logstore.metrics import rollups
from logstore.metrics.buckets import Granularity
from logstore.metrics.question import Question
from logstore.metrics.result import Groups, Metrics
from logstore.metrics.rollups import add_counts, count_table, doubt, fold, forget, rebuild
from logstore.metrics.scan import scan
from logstore.tiers import Tiers

__all__ = [
    "Granularity",
    "Groups",
    "Metrics",
    "Question",
    "add_counts",
    "count_table",
    "doubt",
    "fold",
    "forget",
    "measure",
    "rebuild",
]


def measure(tiers: Tiers, kind: Kind, start: datetime, end: datetime, **asked: Any) -> Metrics:
    """Answer a question of the store's `event_metrics` or `attempt_metrics`."""
    began = time.perf_counter()
    question = Question.of(kind, start, end, **asked)
    pieces = rollups.serves(question)
    groups = rollups.read(tiers, pieces, question) if pieces else None
    if groups is None or pieces is None:
        groups, source = scan(tiers, question), "scan"
    else:
        source = "roll-up" if all(piece.rollup for piece in pieces) else "roll-up and scan"
    return groups.finish(source=source, seconds=time.perf_counter() - began)
