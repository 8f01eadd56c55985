"""load, watch, loads, dead-letters, demo: how data gets in, and what could not."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

import logstore
from logstore import loads
from logstore.commands import Subparsers, command, count, operator, printable, show, table
from logstore.display import counted
from logstore.errors import LoadError
from logstore.records import rfc3339
from logstore.store import LogStore

_LOAD = """  python -m logstore load events.jsonl attempts.jsonl.gz      files: JSON lines, also packed, or Parquet
  python -m logstore load /data/2026-08                      a folder: every such file in it
  python -m logstore load events.jsonl --force               a file that was loaded before; nothing doubles"""
_WATCH = """  python -m logstore watch /data/inbox             load what appears there, until Ctrl-C
  python -m logstore watch /data/inbox --once      what is there now, for cron"""
_LOADS = """  python -m logstore loads
  python -m logstore loads --limit 3 --json"""
_LETTERS = """  python -m logstore dead-letters list --reason naive_time
  python -m logstore dead-letters show 17
  python -m logstore dead-letters requeue 17 --text '{"id": "evt_1", …}'
  python -m logstore dead-letters requeue 17 --file corrected.json
  python -m logstore dead-letters discard 17"""
_LIST = """  python -m logstore dead-letters list                       the open ones
  python -m logstore dead-letters list --reason naive_time --state all"""
_SHOW = """  python -m logstore dead-letters show 17"""
_REQUEUE = """  python -m logstore dead-letters requeue 17                          as it was
  python -m logstore dead-letters requeue 17 --file corrected.json    one JSON object"""
_DISCARD = """  python -m logstore dead-letters discard 17"""
_DEMO = """  python -m logstore demo                       20,000 events of the last 90 days, with their attempts
  python -m logstore demo --events 200000 --days 365"""
_REQUEUES = "load a letter's row, as it was or corrected; once"


def add(commands: Subparsers) -> None:
    parser = command(commands, "load", _load, help="load files or folders through Spark, exactly once", examples=_LOAD)
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", type=Path, help="JSON lines, packed or not, or Parquet; a folder"
    )
    parser.add_argument("--force", action="store_true", help="also files that were loaded before")
    parser = command(commands, "watch", _watch, help="load what appears in a folder, each file once", examples=_WATCH)
    parser.add_argument("inbox", metavar="INBOX", type=Path, help="names that end in .part or .tmp are left alone")
    parser.add_argument("--once", action="store_true", help="load what is there and end")
    parser = command(commands, "loads", _loads, help="what was loaded, and what is being loaded", examples=_LOADS)
    parser.add_argument("--limit", type=count, default=20, help="the newest so many (20)")
    parser = command(commands, "demo", _demo, help="make realistic sample data and load it", examples=_DEMO)
    parser.add_argument("--events", type=count, default=20_000, help="so many; each has one attempt or more (20000)")
    parser.add_argument("--days", type=count, default=90, help="over so many days up to now (90)")
    parser.add_argument("--seed", type=int, default=7, help="another number gives other data (7)")
    parser.add_argument("--if-empty", action="store_true", help="do nothing when the log holds anything")
    _add_letters(commands)


def _add_letters(commands: Subparsers) -> None:
    parser = command(commands, "dead-letters", _list, help="rows that could not be loaded", examples=_LETTERS)
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    action = command(actions, "list", _list, help="the letters, newest first", examples=_LIST)
    action.add_argument("--state", choices=(*loads.LETTER_STATES, "all"), default="open")
    action.add_argument("--reason", help="such as naive_time")
    action.add_argument("--load", type=int, metavar="ID", help="of this load")
    action.add_argument("--before", type=int, metavar="ID", help="letters older than this one")
    action.add_argument("--limit", type=count, default=20, help="at most so many (20)")
    action = command(actions, "show", _show, help="one letter with its text", examples=_SHOW)
    action.add_argument("id", type=int)
    action = command(actions, "requeue", _requeue, help=_REQUEUES, examples=_REQUEUE)
    action.add_argument("id", type=int)
    text = action.add_mutually_exclusive_group()
    text.add_argument("--text", help="the corrected row, one JSON object")
    text.add_argument("--file", type=Path, help="a file that holds it")
    action = command(actions, "discard", _discard, help="say that a letter does not matter", examples=_DISCARD)
    action.add_argument("id", type=int)


def _load(given: argparse.Namespace) -> None:
    with operator() as store:
        _run(given, store, given.paths, force=given.force)


def _run(given: argparse.Namespace, store: LogStore, paths: list[Path], *, force: bool = False) -> None:
    from logstore import pipeline  # imports Spark

    report = pipeline.load(store, paths, force=force, bar=False if given.json else None)
    document = {"load": None if report.load is None else asdict(report.load), "known": report.known}
    show(given, document, _report_text(report))


def _report_text(report: Any) -> str:
    said = [f"{path} was loaded before, by load {load}; --force loads it again" for path, load in report.known.items()]
    if len(said) > 5:
        said[5:] = [f"… and {len(said) - 5} more files that were loaded before"]
    done = report.load
    if done is not None:
        seconds = sum(done.seconds.values())
        rate = f" ({done.rows_read / seconds:,.0f} rows/s)" if seconds and done.rows_read >= 1000 else ""
        said.append(
            f"load {done.id}: {done.rows_read:,} rows read in {seconds:.1f} s{rate}; "
            f"{done.inserted:,} inserted, {done.updated:,} updated, {done.skipped:,} skipped, {done.dead:,} dead"
        )
        if done.dead:
            said.append(f"see what is wrong with them: python -m logstore dead-letters list --load {done.id}")
    return "\n".join(said)


def _watch(given: argparse.Namespace) -> int:
    from logstore.pipeline import watch  # imports Spark

    total = watch.Pass()
    with operator() as store:
        folder = watch.Watch(store, given.inbox, bar=False if given.json else None)
        try:
            for number in itertools.count():
                done = folder.look()
                _tell(done, given, file=sys.stderr if given.json else sys.stdout)
                total.add(done)
                # What was just written has one more chance to be finished.
                if given.once and (number > 0 or not done.waiting):
                    break
                time.sleep(watch.SETTLE)
        except KeyboardInterrupt:
            print("stopped; what was loaded is loaded, a load that was under way left nothing", file=sys.stderr)
    documents = [{"id": x.id, "rows_read": x.rows_read, "inserted": x.inserted, "dead": x.dead} for x in total.loaded]
    document = {"loads": documents, "known": total.known, "failed": total.failed, "waiting": total.waiting}
    if given.json:
        show(given, document, "")
    return 1 if given.once and total.failed else 0


def _tell(done: Any, given: argparse.Namespace, file: TextIO) -> None:
    """One pass, if it did anything, in a few lines."""
    for load in done.loaded:
        names = ", ".join(printable(Path(source["path"]).name) for source in load.sources[:3])
        more = f" and {len(load.sources) - 3} more" if len(load.sources) > 3 else ""
        counts = f"{load.inserted:,} inserted, {load.updated:,} updated, {load.skipped:,} skipped, {load.dead:,} dead"
        print(f"load {load.id}: {names}{more}: {counts}", file=file, flush=True)
    if done.known:
        print(f"loaded before: {counted(len(done.known), 'file')}", file=file, flush=True)
    for path, error in done.failed.items():
        print(f"not loaded: {printable(path)}: {printable(error)}", file=file, flush=True)
    if given.once and done.waiting:
        print(f"still being written: {counted(len(done.waiting), 'file')}", file=file, flush=True)


def _loads(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        found = loads.history(store, limit=given.limit)
    head = ("load", "started", "state", "stage", "files", "read", "inserted", "updated", "skipped", "dead", "error")
    rows = [
        (x.id, rfc3339(x.started.replace(microsecond=0)), _state(x), x.stage, len(x.sources), x.rows_read, x.inserted,
         x.updated, x.skipped, x.dead, (x.error or "")[:80])
        for x in found
    ]  # fmt: skip
    show(given, [asdict(x) for x in found], table(rows, head) if rows else "nothing was loaded yet")


def _state(load: loads.Load) -> str:
    return "dead" if load.state == "running" and not load.alive else load.state


def _list(given: argparse.Namespace) -> None:
    state = None if given.state == "all" else given.state
    with logstore.open(role="reader") as store:
        found = loads.dead_letters(
            store, state=state, load=given.load, reason=given.reason, before=given.before, limit=given.limit
        )
    head = ("id", "load", "state", "reason", "file", "line", "position", "message")
    rows = [(x.id, x.load, x.state, x.reason, Path(x.file).name, x.line, x.position, x.message[:100]) for x in found]
    show(given, [asdict(x) for x in found], table(rows, head) if rows else "no dead letters")


def _show(given: argparse.Namespace) -> None:
    with logstore.open(role="reader") as store:
        letter = loads.dead_letter(store, given.id)
    shown = {name: value for name, value in asdict(letter).items() if name != "raw" and value is not None}
    head = table(list(shown.items()), ("letter", str(letter.id)))
    show(given, asdict(letter), head + "\n\n" + letter.raw)


def _requeue(given: argparse.Namespace) -> None:
    text = given.text
    if given.file is not None:
        try:
            text = given.file.read_text()
        except OSError as error:
            raise LoadError(f"cannot read {given.file} ({error.strerror}): check the path") from error
        except UnicodeDecodeError as error:
            raise LoadError(f"{given.file} is not UTF-8 text: write the corrected row anew") from error
    with operator() as store:
        row = loads.requeue(store, given.id, text)
    show(given, {"id": given.id, "kind": row.kind}, f"dead letter {given.id} is loaded as an {row.kind}")


def _discard(given: argparse.Namespace) -> None:
    with operator() as store:
        loads.discard(store, given.id)
    show(given, {"id": given.id}, f"dead letter {given.id} is discarded")


def _demo(given: argparse.Namespace) -> None:
    with operator() as store:
        if given.if_empty and not is_empty(store):
            show(given, {"loaded": False}, "the log is not empty: nothing was loaded")
            return
        _run(given, store, [demo_files(store, events=given.events, days=given.days, seed=given.seed)])


def is_empty(store: LogStore) -> bool:
    return not store.list_event(limit=1).data and not store.list_attempt(limit=1).data


def demo_files(store: LogStore, *, events: int, days: int = 90, seed: int = 7) -> Path:
    """The folder of the demo data of this size; made once, so that loading it again is recognised."""
    from logstore import demo

    folder = store.settings.home / "demo" / f"{events}-{days}-{seed}"
    if not folder.exists():
        print(f"making {events:,} events of {days} days in {folder}", file=sys.stderr)
        fresh = folder.with_name(folder.name + ".making")
        fresh.mkdir(parents=True, exist_ok=True)
        end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        demo.write(fresh, events=events, end=end, days=days, seed=seed)
        fresh.rename(folder)
    return folder
