"""Spark: files into the log, and the log into data frames. Importing this package imports Spark."""

from __future__ import annotations

from logstore.pipeline.frame import records
from logstore.pipeline.read import Limits
from logstore.pipeline.run import Report, load

__all__ = ["Limits", "Report", "load", "records"]
