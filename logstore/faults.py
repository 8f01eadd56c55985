"""Fault points: named steps at which a test can make the process die as if by kill -9."""

from __future__ import annotations

import os
import signal

VARIABLE = "LOGSTORE_FAULT"


def fault(name: str) -> None:
    """Die here when LOGSTORE_FAULT names this step; otherwise do nothing.

    SIGKILL, because a crash runs no `finally`: what a test proves here must hold without any cleaning up.
    """
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
