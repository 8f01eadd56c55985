"""serve: the workbench in a browser."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import socket
import subprocess
import sys

import logstore
from logstore import loads, maintenance
from logstore.commands import Subparsers, command
from logstore.commands.load import is_empty
from logstore.errors import LoadError, ServerError
from logstore.store import LogStore

_EXAMPLES = """  python -m logstore serve                                  http://127.0.0.1:8501
  python -m logstore serve --demo                           an empty log gets sample data, the oldest archived
  python -m logstore serve --port 8600 --address 0.0.0.0    for others on the network: there is no sign-in"""

_LOADS = 50  # with more of them it is a log that somebody works with


def add(commands: Subparsers) -> None:
    parser = command(commands, "serve", _serve, help="the workbench in a browser, until Ctrl-C", examples=_EXAMPLES)
    parser.add_argument("--port", type=int, default=8501, help="where it answers (8501)")
    parser.add_argument("--address", default="127.0.0.1", help="who may reach it: loopback only, unless told otherwise")
    parser.add_argument(
        "--demo", action="store_true", help="fill an empty log with the sample data, and archive its oldest months"
    )


def _serve(given: argparse.Namespace) -> int:
    _check_port(given.address, given.port)
    # Opened before anything is served: the database starts, is prepared, and complains here if it must. It stays open,
    # so that the embedded server lives as long as the pages do.
    with logstore.open() as store:
        if given.demo:
            if is_empty(store):
                _load_demo()
            if archive_owed(store):
                _archive_demo()
        shown = f"[{given.address}]" if ":" in given.address else given.address
        address = f"http://{shown}:{given.port}"
        if given.json:
            print(json.dumps({"address": address}), flush=True)
        else:
            print(f"\nThe workbench is at {address} (Ctrl-C ends it)\n", flush=True)
        from logstore.workbench import server

        # Ctrl-C is how it is meant to end; where that signal was ignored from the start, the server just returns.
        with contextlib.suppress(KeyboardInterrupt):
            server.run(address=given.address, port=given.port)
        if not given.json:
            print("stopped", flush=True)
    return 0


def _check_port(address: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OverflowError as error:
            raise ServerError(f"there is no port {port}: choose a --port up to 65535") from error
        except OSError as error:
            other = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--address"
            raise ServerError(
                f"cannot listen on {address}:{port} ({error.strerror}): choose another {other}"
            ) from error


def _load_demo() -> None:
    """Load the sample data in a process of its own, so that Spark's memory is gone before pages are served."""
    print("The log is empty: loading the sample data", flush=True)
    ended = subprocess.run([sys.executable, "-m", "logstore", "demo"], check=False)
    if ended.returncode:
        raise LoadError("the sample data did not load; see above, or leave --demo away to serve an empty log")


def archive_owed(store: LogStore) -> bool:
    """Whether the log holds the sample data and nothing else, and maintenance never ran to an end on it.

    So it is done once: what an operator takes back stays, and a log with other data is the operator's own business. A
    run that was killed never ended, and is made good here.
    """
    done = [load for load in loads.history(store, limit=_LOADS) if load.state == "done"]
    folder = f"{store.settings.home / 'demo'}/"
    ours = all(str(source["path"]).startswith(folder) for load in done for source in load.sources)
    return bool(done) and len(done) < _LOADS and ours and not maintenance.ever_ended(store)


def _archive_demo() -> None:
    """Apply the plan as an operator would, so that both tiers can be seen; the log is served even if that fails."""
    print("Archiving the oldest months of the sample data", flush=True)
    command = [sys.executable, "-m", "logstore", "maintain", "apply", "--yes", "--json", "--actor", "demo"]
    ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if ended.returncode:
        print("That did not work, see above; the next start tries it again", flush=True)
