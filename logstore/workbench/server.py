"""The server of the workbench: Streamlit's own application object, so that routes of ours can join the pages."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from logstore.settings import ROOT

SCRIPT = ROOT / "app.py"


def app() -> st.App:
    """The application: the pages, and the route that streams a selection as a file."""
    return st.App(SCRIPT, lifespan=_while_serving, routes=[Route("/export", _export)])


async def _export(request: Request) -> Response:
    from logstore.workbench import export_route

    return await export_route.handle(request)


@asynccontextmanager
async def _while_serving(_: st.App) -> AsyncIterator[dict[str, Any] | None]:
    """Open the pages' store before the first one asks, and close it: the embedded PostgreSQL stops with its last user."""
    # Imported here: Streamlit's caches want its runtime to be there first.
    from logstore.workbench import cached

    cached.store()
    try:
        yield None
    finally:
        cached.close()


def run(*, address: str, port: int) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    # uvicorn hands the signal on when it has shut down; without a handler of ours the process would end on the spot.
    signal.signal(signal.SIGTERM, _end)
    # Streamlit looks for .streamlit/config.toml beside the program that was started, which is not where ours is.
    sys.argv = [str(SCRIPT)]
    app().run(
        config={
            "server.address": address,
            "server.port": port,
            "server.headless": True,
            "server.fileWatcherType": "none",
            "browser.gatherUsageStats": False,
            "logger.hideWelcomeMessage": True,
        }
    )


def _end(*_: object) -> None:
    raise KeyboardInterrupt
