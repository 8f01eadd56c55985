"""The server of the workbench: Streamlit's own application object, so that routes of ours can join the pages."""

from __future__ import annotations

import sys

import streamlit as st

from logstore.settings import ROOT

SCRIPT = ROOT / "app.py"


def app() -> st.App:
    """The application; an export route will join it here."""
    return st.App(SCRIPT)


def run(*, address: str, port: int) -> None:
    """Serve until Ctrl-C or SIGTERM."""
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
