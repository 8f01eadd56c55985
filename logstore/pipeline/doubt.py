"""Which lines must be looked at one by one: they may hold what a decoder passes and readers cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pyarrow

Bytes = numpy.ndarray[Any, Any]  # of uint8

_WINDOW = 2**16
_NUL = numpy.frombuffer(b"\\u0000", numpy.uint8)
_IN_NUMBER, _BEFORE_NUMBER, _AFTER_NUMBER = (
    numpy.isin(numpy.arange(256), list(some)) for some in (b"0123456789.-", b":,[ \t\r\n", b",}] \t\r\n")
)
_SIGNS = numpy.frombuffer(b"+-", numpy.uint8)
_EXPONENT_DIGITS, _NUMBER_DIGITS = 12, 32  # what has more is doubtful


def doubtful(characters: Bytes, ends: numpy.ndarray[Any, Any], depth: int) -> Any:
    """Of the lines that end there, as a mask.

    Those with more opening brackets than levels are allowed, because only they can be nested too deep; those with an
    exponent of three digits or more, which may be beyond what readers hold; and those with the escape of NUL.
    """
    opening = places(len(characters), lambda at: (characters[at] & 0xDF) == 0x5B)  # [ and { differ in one bit
    first, last = opening[: max(len(opening) - depth, 0)], opening[depth:]
    near = last - first < int(numpy.diff(ends, prepend=0).max(initial=0))  # of one line, perhaps
    first, last = first[near], last[near]
    deep = last[numpy.searchsorted(ends, first, side="right") == numpy.searchsorted(ends, last, side="right")]
    found = numpy.zeros(len(ends), dtype=bool)
    at = numpy.concatenate([deep, _exponents(characters), _nuls(characters)])
    found[numpy.searchsorted(ends, at, side="right")] = True
    return found


def _exponents(characters: Bytes) -> Any:
    """Where numbers have an exponent of at least three digits: the last digit before their e."""
    before, letter, sign = characters[:-2], characters[1:-1], characters[2:]
    at = places(len(before), lambda at: ((letter[at] & 0xDF) == 0x45) & _digit(before[at]))
    after = at + 2 + numpy.isin(sign[at], _SIGNS)
    found = []
    for digits in range(_EXPONENT_DIGITS):  # most are inside of ids, and soon gone
        inside = after < len(characters)
        at, after = at[inside], after[inside]
        going = _digit(characters[after])
        if digits >= 3:
            found.append(at[~going & _AFTER_NUMBER[characters[after]]])
        at, after = at[going], after[going] + 1
    at = start = numpy.concatenate([*found, at])
    for _ in range(_NUMBER_DIGITS):
        start = numpy.maximum(start - _IN_NUMBER[characters[start]], 0)
    return at[_BEFORE_NUMBER[characters[start]] | _IN_NUMBER[characters[start]]]


def _nuls(characters: Bytes) -> Any:
    at = places(len(characters) - len(_NUL) + 1, lambda at: characters[at] == _NUL[0])
    for step in range(1, len(_NUL)):
        at = at[characters[at + step] == _NUL[step]]
    return at


def _digit(characters: Bytes) -> Any:
    return characters - 0x30 < 10


def places(count: int, test: Callable[[slice], Any]) -> Any:
    """Which of so many places pass a test, window by window: temporaries then stay in the cache and cost no fresh pages."""
    windows = [slice(start, min(start + _WINDOW, count)) for start in range(0, count, _WINDOW)]
    found = [numpy.flatnonzero(test(window)) + window.start for window in windows]
    return numpy.concatenate(found) if found else numpy.empty(0, numpy.int64)


def doubtful_lines(text: pyarrow.Array, depth: int) -> Any:
    """The same for an array of lines."""
    _, offsets, data = text.buffers()
    ends = numpy.frombuffer(offsets, numpy.int32)[text.offset + 1 : text.offset + 1 + len(text)]
    return doubtful(numpy.frombuffer(data or b"", numpy.uint8), ends, depth)
