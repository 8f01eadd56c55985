"""Sources: which files are meant, how they are cut into splits, and the lines of one split in bounded chunks.

Spark's own text source does not say where a line stood, and reads a line of any length whole. So the driver cuts files into
byte ranges and each task reads its own: a line belongs to the range in which it starts (Hadoop's rule). That gives exact
positions, memory that depends neither on the file nor on its longest line, and the same on a cluster with a shared folder.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import stat
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from logstore.errors import LoadError

FORMATS = {".jsonl": "lines", ".json": "lines", ".ndjson": "lines", ".gz": "gzip", ".parquet": "parquet"}
_HASH_BLOCK = 2**20
_TAIL = 2**16
_NOT_MEANT = (".", "_")  # hidden, or what Spark and others write while they write


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What one file may cost; a file that asks for more is stopped."""

    row_bytes: int = 8 * 2**20
    raw_bytes: int = 64 * 2**10  # kept of a row that is too large
    depth: int = 200
    split_bytes: int = 32 * 2**20
    chunk_bytes: int = 8 * 2**20
    chunk_lines: int = 100_000  # a line costs memory, however short
    unpacked_ratio: int = 200  # of a gzip or Parquet file, once it has unpacked the size below
    unpacked_bytes: int = 2**30
    letters: int = 1_000_000
    letter_bytes: int = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One file to load; `file` numbers the files of a load in the order of their paths."""

    file: int
    path: str
    format: str
    size: int
    changed: int  # nanoseconds, as the file system says
    sha256: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """A part of a file that one task reads: a range of bytes, a whole gzip file, or a range of Parquet row groups."""

    split: int
    file: int
    path: str
    format: str
    start: int
    stop: int
    first_row: int = 0
    rows: int = 0  # of Parquet, where they are counted
    bytes: int = 0  # its share of the file, for progress


def sources(paths: Iterable[str | Path]) -> list[Source]:
    """The files that the paths name, folders searched; refuses what it does not know instead of leaving it out."""
    found: dict[str, os.stat_result] = {}
    for given in paths:
        path = os.path.abspath(os.path.expanduser(given))
        with _reading(path):
            try:
                status = os.stat(path)
            except FileNotFoundError:
                raise LoadError(f"there is no {shown(path)}: check the path") from None
            if stat.S_ISDIR(status.st_mode):
                found |= search(path, unreadable=_raise)
            elif _format(path) is None:
                name = shown(os.path.basename(path))
                raise LoadError(f"{name} is none of {', '.join(FORMATS)}: rename it to what it holds")
            else:
                found[path] = status
    if not found:
        raise LoadError(f"nothing to load: no file ends in {', '.join(FORMATS)}")
    return [
        Source(
            file=i,
            path=_utf8(path),
            format=_format(path) or "",
            size=found[path].st_size,
            changed=found[path].st_mtime_ns,
        )
        for i, path in enumerate(sorted(found, key=os.fsencode))
    ]


def search(folder: str | Path, *, unreadable: Callable[[OSError], None]) -> dict[str, os.stat_result]:
    """The files that a folder offers: of a known kind; no part of their path below it hidden or half-written by its name."""
    found = {}
    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(_NOT_MEANT)]
        for name in names:
            if _format(name) is not None and not name.startswith(_NOT_MEANT):
                path = os.path.join(parent, name)
                try:
                    status = os.stat(path)
                except OSError as error:
                    unreadable(error)
                else:
                    if stat.S_ISREG(status.st_mode):
                        found[path] = status
    return found


def ends(path: str) -> bool:
    """Whether a file of lines ends with the end of one; others say themselves whether they are whole."""
    if _format(path) != "lines":
        return True
    try:
        with open(path, "rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return True
            file.seek(-1, os.SEEK_END)
            return file.read() == b"\n"
    except OSError:  # loading it will say what is wrong
        return True


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # gone since the folder was listed, or a link to nowhere
        raise error


def _format(path: str) -> str | None:
    return FORMATS.get(os.path.splitext(path)[1].lower())


def _utf8(path: str) -> str:
    """The path, which the log keeps as text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise LoadError(f"the name of {shown(path)} is not UTF-8: rename it") from None
    return path


def shown(path: str) -> str:
    """A path in a sentence; it may hold bytes that are no text."""
    return path.encode(errors="backslashreplace").decode()


@contextlib.contextmanager
def _reading(path: str) -> Iterator[None]:
    """What the file system refuses, as a sentence."""
    try:
        yield
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else path
        raise LoadError(f"cannot read {shown(name)}: {error.strerror or error}") from error


def checksums(files: Sequence[Source], stop: threading.Event | None = None) -> dict[str, str]:
    """The SHA-256 of each file by path: a file is recognised by its content, wherever it lies. Once stopped, none."""

    def digest(source: Source) -> str:
        checksum = hashlib.sha256()
        with _reading(source.path), open(source.path, "rb") as file:
            while (block := file.read(_HASH_BLOCK)) and not (stop and stop.is_set()):
                checksum.update(block)
        return checksum.hexdigest()

    paths = [source.path for source in files]
    with ThreadPoolExecutor(4) as pool:  # hashlib lets other threads run
        found = dict(zip(paths, pool.map(digest, files), strict=True))
    return {} if stop and stop.is_set() else found


def check_unchanged(files: Iterable[Source]) -> None:
    """A file that somebody writes to while it is loaded gives rows that no checksum describes."""
    for source in files:
        with _reading(source.path):
            now = os.stat(source.path)
        if (now.st_size, now.st_mtime_ns) != (source.size, source.changed):
            raise LoadError(f"{source.path} changed while it was loaded; nothing of it was kept: load it again")


def plan(files: Iterable[Source], limits: Limits) -> list[Split]:
    """Cut the files into splits, in the order of (path, position)."""
    splits: list[Split] = []
    for source in files:
        for part in _ranges(source, limits):
            number = len(splits)
            splits.append(Split(split=number, file=source.file, path=source.path, format=source.format, **part))
    return splits


def _ranges(source: Source, limits: Limits) -> Iterator[dict[str, int]]:
    if source.format == "parquet":
        yield from _row_groups(source, limits)
    elif source.format == "gzip":  # cannot be entered in the middle
        yield {"start": 0, "stop": source.size, "bytes": source.size}
    else:
        for start in range(0, source.size, limits.split_bytes):
            stop = min(start + limits.split_bytes, source.size)
            yield {"start": start, "stop": stop, "bytes": stop - start}


def _row_groups(source: Source, limits: Limits) -> Iterator[dict[str, int]]:
    import pyarrow
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_metadata(source.path)
    except (pyarrow.ArrowException, OSError) as error:
        raise LoadError(f"{source.path} is no readable Parquet file: {error}") from error
    start, first_row, rows, size = 0, 0, 0, 0
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        rows += group.num_rows
        size += group.total_byte_size
        if size >= limits.split_bytes or i + 1 == metadata.num_row_groups:
            share = source.size * (i + 1 - start) // metadata.num_row_groups
            yield {"start": start, "stop": i + 1, "first_row": first_row, "rows": rows, "bytes": share}
            start, first_row, rows, size = i + 1, first_row + rows, 0, 0


def blocks(split: Split, limits: Limits) -> Iterator[tuple[int, bytes]]:
    """The bytes of a split of text from the first line that starts in it on, with their positions; may run past its end."""
    try:
        with open(split.path, "rb") as file:
            if split.format == "gzip":
                yield from _unpacked(split, file, limits)
            else:
                yield from _from_first_line(split, file, limits)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise LoadError(f"{split.path} is damaged: {error}; nothing of it was kept") from error
    except OSError as error:
        raise LoadError(f"cannot read {split.path}: {error.strerror}") from error


def _from_first_line(split: Split, file: BinaryIO, limits: Limits) -> Iterator[tuple[int, bytes]]:
    position = max(split.start - 1, 0)
    file.seek(position)
    skipping = split.start > 0  # the line that is under way belongs to the split before
    while block := file.read(_wanted(split.stop - position, limits)):
        if skipping:
            cut = block.find(b"\n") + 1
            skipping = cut == 0
            position, block = position + (cut or len(block)), block[cut:] if cut else b""
        if position >= split.stop and skipping:
            return
        if block:
            yield position, block
            position += len(block)


def _wanted(left: int, limits: Limits) -> int:
    """How many bytes to read next. Beyond the split only the end of its last line is wanted, if possible not by itself."""
    return max(left, 0) + _TAIL if left <= limits.chunk_bytes + _TAIL else limits.chunk_bytes


def _unpacked(split: Split, file: BinaryIO, limits: Limits) -> Iterator[tuple[int, bytes]]:
    position = 0
    with gzip.GzipFile(fileobj=file) as stream:
        while block := stream.read(limits.chunk_bytes):
            yield position, block
            position += len(block)
            check_unpacked(split, split.stop, position, limits)


def check_unpacked(split: Split, packed: int, unpacked: int, limits: Limits) -> None:
    """Stop a small file that fills the disk."""
    most = max(limits.unpacked_bytes, packed * limits.unpacked_ratio)
    if unpacked > most:
        otherwise = {"gzip": "unpack it and load the plain file", "parquet": "write it as several files and load those"}
        raise LoadError(
            f"{split.path} unpacks to more than {most} bytes from {packed}: it looks like a {split.format} bomb. "
            f"If it is not, {otherwise[split.format]}"
        )
