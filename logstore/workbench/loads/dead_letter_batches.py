"""All open letters of one reason at once: loaded after all, or discarded; beside the page, which watches and can stop it.

It writes as an operator, in a thread of the server: a command for each letter would start Python a thousand times.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

import logstore
from logstore import loads
from logstore.errors import LoadError, LogstoreError
from logstore.loads import DeadLetter
from logstore.store import LogStore
from logstore.workbench import cached, role, texts
from logstore.workbench import frame as frames
from logstore.workbench.counts import lookups

log = logging.getLogger(__name__)
_PAGE = 200
_LIVE_SECONDS = 1.0
_ACTS: dict[str, Callable[[LogStore, int], Any]] = {"load": loads.requeue, "discard": loads.discard}
_DONE = {"load": "loaded", "discard": "discarded"}


@dataclass(frozen=True, slots=True)
class Meant:
    """Open letters of one reason, of one load or of all, up to the newest that was there when they were counted."""

    reason: str
    load: int | None
    count: int
    newest: int

    @classmethod
    def of(cls, reason: str, load: int | None) -> Meant:
        (count, newest), *_ = lookups.look_up(cached.store(), "open_letters", reason=reason, load=load)
        return cls(reason, load, count, newest or 0)

    def letters(self, store: LogStore) -> Iterator[DeadLetter]:
        """The newest first; one that is refused again stays open, and is not met a second time."""
        before = self.newest + 1
        while True:
            found = loads.dead_letters(store, reason=self.reason, load=self.load, before=before, limit=_PAGE)
            yield from found
            if len(found) < _PAGE:
                return
            before = found[-1].id


@dataclass(eq=False)
class Batch:
    """What is done to these letters, and how far it is."""

    act: str
    meant: Meant
    done: int = 0
    refused: int = 0
    why: str = ""  # the last refusal
    error: str | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        try:
            with logstore.open(role="operator") as store:
                for letter in self.meant.letters(store):
                    if self.stop.is_set():
                        break
                    self._one(store, letter)
        except LogstoreError as error:
            self.error = str(error)
        except Exception:
            log.exception("a batch of dead letters failed")
            self.error = "it broke off; the server's log says why"
        finally:
            self.ended.set()

    def _one(self, store: LogStore, letter: DeadLetter) -> None:
        try:
            _ACTS[self.act](store, letter.id)
            self.done += 1
        except LoadError as error:
            self.refused, self.why = self.refused + 1, str(error)

    @property
    def words(self) -> str:
        refused = f", {self.refused:,} refused and still open" if self.refused else ""
        return f"{self.done:,} of {self.meant.count:,} dead letters are {_DONE[self.act]}{refused}"


@st.cache_resource(show_spinner=False)
def _batches() -> list[Batch]:
    """The one batch of this server, if there is one; it stays until somebody has read how it ended."""
    return []


def running() -> bool:
    return any(not batch.ended.is_set() for batch in _batches())


def offer(reason: str, load: int | None) -> None:
    """Buttons for all letters of a reason, with how many they are; a second click confirms."""
    meant = Meant.of(reason, load)
    if meant.count < 2 or running():
        return
    of = f"all {meant.count:,} open letters of this reason" + (f" and load {load}" if load is not None else "")
    with st.container(horizontal=True, gap="small"):
        with st.popover(f"Load all {meant.count:,} as they are", icon=":material/replay:"):
            st.write(
                f"This checks {of} again, and loads those that are good: useful when their months were closed and are "
                "open now. The others stay open, with what is wrong with them."
            )
            st.button(f"Load {meant.count:,} letters unchanged", type="primary", on_click=_start, args=("load", meant))
        with st.popover(f"Discard all {meant.count:,}", icon=":material/delete:"):
            st.write(f"This discards {of}: their rows are not loaded. They stay on record and cannot be requeued.")
            st.button(f"Discard {meant.count:,} letters", type="primary", on_click=_start, args=("discard", meant))


def _start(act: str, meant: Meant) -> None:
    if running() or not role.may_change():
        return
    batch = Batch(act, meant)
    _batches()[:] = [batch]
    threading.Thread(target=batch.run, name="letters", daemon=True).start()


def live() -> None:
    """How the batch goes, redrawn while it runs, and how it ended."""
    if _batches():
        st.fragment(_now, run_every=_LIVE_SECONDS if running() else None)(running())


def _now(was_running: bool) -> None:
    with frames.sentences():
        if was_running and not running():
            st.rerun()  # the letters below are others now, and the clock can stop
        for batch in _batches():
            with st.container(horizontal=True, vertical_alignment="center"):
                _show(batch)


def _show(batch: Batch) -> None:
    if not batch.ended.is_set():
        st.progress(min((batch.done + batch.refused) / max(batch.meant.count, 1), 1.0), f"So far {batch.words}.")
        st.button("Stop", on_click=batch.stop.set, disabled=batch.stop.is_set(), icon=":material/cancel:")
        return
    why = f" The last refusal: {texts.markdown(batch.why, 300)}." if batch.why else ""
    if batch.error is not None:
        st.error(f"{batch.words}; then {texts.markdown(batch.error, 400)}.", icon=":material/warning:")
    else:
        (st.warning if batch.refused else st.success)(
            f"{batch.words}.{why}", icon=":material/warning:" if batch.refused else ":material/check_circle:"
        )
    st.button("Close", on_click=_batches().clear, key="close letters")
