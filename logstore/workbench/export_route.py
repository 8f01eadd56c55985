"""The route that streams a selection as a file, and the links to it; what is asked for travels in the URL."""

from __future__ import annotations

import html
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from urllib.parse import urlencode

import psycopg
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from logstore import export
from logstore.cursor import Kind
from logstore.errors import InvalidSelection, LogstoreError, ServerError
from logstore.records import Selection, TimeFilter
from logstore.workbench import cached, times
from logstore.workbench.view import View

log = logging.getLogger(__name__)

KINDS: tuple[Kind, ...] = ("event", "attempt")
_LABELS = {"csv": "CSV", "jsonl": "JSON lines", "parquet": "Parquet"}
# Colours are those of the text around, so that light and dark both look right.
_STYLE = """<style>
a.export { display: inline-block; margin: 0 .5rem .25rem 0; padding: .35rem .8rem; border-radius: .4rem; color: inherit;
  text-decoration: none; border: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
a.export:hover, a.export:focus-visible { background: color-mix(in srgb, currentColor 8%, transparent); }
</style>"""


def links(view: View, kind: Kind) -> str:
    """A link for each format, as HTML; a named range is worked out when the link is followed, not when it is drawn."""
    found = [_STYLE]
    for format_, label in _LABELS.items():
        pairs = [("kind", kind), ("format", format_), *view.selection.to_query()]
        if view.range is not None:
            pairs.append(("range", view.range))
        address = html.escape(f"export?{urlencode(pairs)}", quote=True)
        found.append(f'<a class="export" href="{address}" download>{label}</a>')
    return "".join(found)


async def handle(request: Request) -> Response:
    """Answer `/export?kind=…&format=…` and a selection: a stream, or a sentence that says what is wrong."""
    try:
        kind, format_, selection = asked(request.query_params.multi_items(), datetime.now(UTC))
        pieces = export.export(await run_in_threadpool(cached.store), kind, selection, format_)
        # The first piece comes before the answer begins: a mistake in the filter is still a plain refusal.
        first = await run_in_threadpool(next, pieces, b"")
    except ServerError as error:
        return _refused(503, str(error))
    except psycopg.Error:
        log.exception("an export did not begin")
        return _refused(503, "the database did not answer: try again in a moment")
    except LogstoreError as error:
        return _refused(400, str(error))
    name = file_name(kind, format_, selection, datetime.now(UTC))
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(_stream(first, pieces), media_type=export.FORMATS[format_], headers=headers)


async def _stream(first: bytes, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Piece by piece in threads. Whoever leaves ends the walk; an error breaks the answer off, and never just ends it."""
    try:
        yield first
        async for piece in iterate_in_threadpool(pieces):
            yield piece
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


def asked(pairs: list[tuple[str, str]], now: datetime) -> tuple[Kind, str, Selection]:
    """What a URL asks for; InvalidSelection says what is wrong with it."""
    single = {name: [value for n, value in pairs if n == name] for name in ("kind", "format", "range")}
    for name, values in single.items():
        if len(values) != 1 and (name != "range" or values):
            raise InvalidSelection(f"name one {name}, such as kind=attempt&format=csv")
    kind = next((known for known in KINDS if known == single["kind"][0]), None)
    if kind is None:
        raise InvalidSelection(f"unknown kind {single['kind'][0]!r}: use one of {', '.join(KINDS)}")
    if single["format"][0] not in export.FORMATS:
        raise InvalidSelection(f"unknown format {single['format'][0]!r}: use one of {', '.join(export.FORMATS)}")
    selection = Selection.from_query([pair for pair in pairs if pair[0] not in single])
    for range_ in single["range"]:
        if range_ not in times.RANGES or selection.time != TimeFilter():
            raise InvalidSelection(f"a range is one of {', '.join(times.RANGES)}, and stands without exact times")
        selection = selection.but(time=times.since(range_, now))
    return kind, single["format"][0], selection


def file_name(kind: Kind, format_: str, selection: Selection, now: datetime) -> str:
    """Says what is inside: `failed-attempts_2026-08-01_2026-08-08.csv`, `some` where other filters narrow it."""
    time = selection.time
    lower, upper = time.gte or time.gt, time.lt or time.lte or now
    some = selection.but(time=TimeFilter(), status=None) != Selection()
    words = [*(["some"] if some else []), *([selection.status] if selection.status else []), f"{kind}s"]
    first = "until" if lower is None else f"{lower:%Y-%m-%d}"
    return f"{'-'.join(words)}_{first}_{upper:%Y-%m-%d}.{format_}"


def _refused(status: int, sentence: str) -> Response:
    return PlainTextResponse(f"{sentence[:1].upper()}{sentence[1:]}.\n", status_code=status)
