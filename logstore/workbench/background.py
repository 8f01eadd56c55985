"""Answers that are computed beside the page: it draws at once, and the answer appears in its place when it is there.

    later(("codes", *selection.to_query(), window), lambda: health.codes(store, …), draw_codes, words="Counting codes…")

`key` says what is asked: whoever asks the same within a minute gets the same answer, in every session (the store's address
is added). `compute` runs in one of a few threads, without Streamlit, and inside a time limit that reaches PostgreSQL and
DuckDB: read through `metrics.measure`, or inside `deadline.limited` and `deadline.interrupted`. `draw` gets the answer. It
draws straight away when the answer is there, or comes within a moment; otherwise it runs in a fragment, without
the page. So `draw` may be called again with the same answer, and what is clicked in it changes the view by `url.change`,
which reruns the whole page also from inside a fragment. An error becomes a sentence in the answer's place. A page that asks
more than one thing does so under `together`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

import streamlit as st
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState, get_script_run_ctx

from logstore import deadline
from logstore.errors import TooBroad
from logstore.workbench import cached
from logstore.workbench import frame as frames

log = logging.getLogger(__name__)
T = TypeVar("T")

SECONDS = 5.0  # that an answer may take, unless whoever asks gives it longer
PATIENCE = 0.15  # seconds that one run of a page waits, for all its answers together
KEPT, KEPT_SECONDS = 400, 60.0
_POLL = 0.4
_GIVEN_UP = 5.0  # a question that nobody has looked at for so long is not begun any more
_THREADS = 3


class _Job:
    """One question and, when `done` is set, its answer or its error."""

    def __init__(self, compute: Callable[[], Any], seconds: float | None) -> None:
        self.done = threading.Event()
        self.answer: Any = None
        self.error: Exception | None = None
        self.asked = self.ended = time.monotonic()
        self.given_up = False
        self._compute: Callable[[], Any] | None = compute
        self._seconds = seconds

    def run(self) -> None:
        compute, self._compute = self._compute, None
        if time.monotonic() - self.asked > _GIVEN_UP:
            self.given_up = True
        elif compute is not None:
            try:
                with deadline.within(SECONDS if self._seconds is None else self._seconds):
                    self.answer = compute()
            except Exception as error:
                self.error = error
        self.ended = time.monotonic()
        self.done.set()

    @property
    def stale(self) -> bool:
        """Whether it must be asked anew; an error is told once, unless asking again would only take as long again."""
        if not self.done.is_set():
            return False
        failed = self.error is not None and not isinstance(self.error, TooBroad)
        return self.given_up or failed or time.monotonic() - self.ended > KEPT_SECONDS


_jobs: OrderedDict[Hashable, _Job] = OrderedDict()
_lock = threading.Lock()
_pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="later")
_patient = ThreadPoolExecutor(1, thread_name_prefix="much later")  # its own, so that what may take long holds up nobody
_undrawn: ContextVar[list[Callable[[], None]] | None] = ContextVar("undrawn", default=None)


def later(
    key: tuple[Hashable, ...],
    compute: Callable[[], T],
    draw: Callable[[T], None],
    *,
    words: str,
    meanwhile: Callable[[], None] | None = None,
    seconds: float | None = None,
) -> None:
    """Draw the answer here if it is there, else `words`; `meanwhile` draws what is known already, also if it fails.

    `seconds` are for what somebody has asked to wait for longer than SECONDS.
    """

    def ask() -> _Job:
        return _job((cached.address(), *key), compute, seconds)

    job, place = ask(), st.container()

    def show() -> None:
        with place:
            if job.done.wait(_patience()):
                with st.container():  # a fragment makes one too; so the answer stays in its place from run to run
                    _draw(job, draw, meanwhile)
            else:
                st.fragment(_wait, run_every=_POLL)(job, ask, draw, words, meanwhile)

    undrawn = _undrawn.get()
    if undrawn is None:
        show()
    else:
        undrawn.append(show)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Begin every answer that a page asks for before the first is waited for; each is drawn in its place at the end."""
    undrawn: list[Callable[[], None]] = []
    token = _undrawn.set(undrawn)
    failed: Exception | None = None
    try:
        yield
    except Exception as error:  # what was asked before stands beside its sentence
        failed = error
    finally:
        _undrawn.reset(token)
    for show in undrawn:
        show()
    if failed is not None:
        raise failed


def forget() -> None:
    """Drop every answer; for tests, which change what is asked."""
    with _lock:
        _jobs.clear()


def _job(key: Hashable, compute: Callable[[], Any], seconds: float | None) -> _Job:
    with _lock:
        job = _jobs.pop(key, None)
        if job is None or job.stale:
            job = _Job(compute, seconds)
            (_pool if seconds is None else _patient).submit(job.run)
        job.asked = time.monotonic()
        _jobs[key] = job
        while len(_jobs) > KEPT:
            _jobs.popitem(last=False)
        return job


def _wait(
    job: _Job,
    ask: Callable[[], _Job],
    draw: Callable[[Any], None],
    words: str,
    meanwhile: Callable[[], None] | None,
) -> None:
    """Drawn every moment until the answer is there; the page itself does not run."""
    job.asked = time.monotonic()
    if job.done.is_set() and job.given_up:
        job = ask()
    if job.done.is_set():
        _stop_polling()
        _draw(job, draw, meanwhile)
        return
    if meanwhile is not None:
        with frames.sentences():
            meanwhile()
    st.caption(f":material/hourglass_top: {words}")


def _draw(job: _Job, draw: Callable[[Any], None], meanwhile: Callable[[], None] | None) -> None:
    with frames.sentences():
        if job.error is not None:
            if meanwhile is not None:
                meanwhile()
            raise job.error
        draw(job.answer)


def _patience() -> float:
    """What is left of this run's patience: several answers wait side by side, not one after the other."""
    context = get_script_run_ctx()
    if context is None:
        return PATIENCE
    run: object
    until: float
    run, until = st.session_state.get("later", (None, 0.0))
    if run is not context.cursors:  # made anew for every run
        until = time.monotonic() + PATIENCE
        st.session_state["later"] = (context.cursors, until)
    return max(0.0, until - time.monotonic())


def _stop_polling() -> None:
    """End the fragment's clock; Streamlit does so itself only when the whole page runs, which is not wanted here."""
    context, fragment = get_script_run_ctx(), ThreadState.get().fragment_id
    if context is not None and fragment is not None and context.fragment_ids_this_run:
        message = ForwardMsg()
        message.stop_auto_rerun.fragment_ids.append(fragment)
        context.enqueue(message)
