"""Files on their way in: an upload put into the inbox under a safe name, or a path of the server that is looked at first."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from logstore.errors import LoadError
from logstore.maintenance.checkup import size_text
from logstore.workbench.record_details import file_name

# What the pipeline takes (a test compares them); it is not imported here, because it brings Spark along.
SUFFIXES = (".jsonl", ".json", ".ndjson", ".gz", ".parquet")
_LOOKED_AT = 10_000  # files of a folder; more are loaded just the same, only not counted beforehand


@dataclass(frozen=True, slots=True)
class Found:
    """What a path holds that could be loaded."""

    path: Path
    files: int
    bytes: int
    all: bool = True  # whether everything was looked at

    @property
    def words(self) -> str:
        counted = f"{self.files:,} {'file' if self.files == 1 else 'files'}, {size_text(self.bytes)}"
        return counted if self.all else f"{counted}, and more: only {_LOOKED_AT:,} of its files were looked at"


def keep(inbox: Path, name: str, data: bytes) -> Path:
    """Write an upload into the inbox; the same content twice is the same file, other content never replaces it."""
    path = inbox / safe_name(name, data)
    inbox.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        # Under a name that no load looks at, until it is whole.
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        partial.write_bytes(data)
        partial.rename(path)
    return path


def safe_name(name: str, data: bytes) -> str:
    """A file name of letters, digits and - _ that keeps what it can of the given one, and its ending."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    endings = [part.lower() for part in Path(last).suffixes[-2:] if part.lower() in SUFFIXES]
    if not endings or not last.lower().endswith(endings[-1]):
        raise LoadError(f"the file ends in none of {', '.join(SUFFIXES)}: rename it to what it holds")
    ending = "".join(endings) if endings[-1] == ".gz" else endings[-1]
    stem = file_name(last[: -len(ending)]).encode("ascii", "replace").decode().replace("?", "_").strip("_-")
    return f"{stem or 'upload'}-{hashlib.sha256(data).hexdigest()[:8]}{ending}"


def look(text: str) -> Found:
    """What is at a path of the server; LoadError when there is nothing to load."""
    if "\x00" in text:
        raise LoadError("no file or folder has the character NUL in its name: check the path")
    path = Path(text.strip()).expanduser().absolute()
    try:
        if not path.exists():
            raise LoadError(f"there is no {path} on the server: check the path")
        if path.is_file():
            if path.suffix.lower() not in SUFFIXES:
                raise LoadError(f"{path.name} ends in none of {', '.join(SUFFIXES)}: rename it to what it holds")
            return Found(path, 1, path.stat().st_size)
        seen = list(itertools.islice(_inside(path), _LOOKED_AT + 1))
        files = [file for file in seen[:_LOOKED_AT] if file.suffix.lower() in SUFFIXES and file.is_file()]
        size = sum(file.stat().st_size for file in files)
    except OSError as error:
        raise LoadError(f"cannot look into {path}: {error.strerror or error}") from error
    if not files and len(seen) <= _LOOKED_AT:
        raise LoadError(f"no file in {path} ends in {', '.join(SUFFIXES)}")
    return Found(path, len(files), size, all=len(seen) <= _LOOKED_AT)


def _inside(folder: Path) -> Iterator[Path]:
    """The files below a folder, without what is hidden or half-written by its name: a load leaves that out, too."""
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        yield from (Path(parent, name) for name in names if not name.startswith((".", "_")))


def _raise(error: OSError) -> None:
    raise error
