"""Splits and chunks: every line exactly once, with its place, whatever the cuts."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import LoadError
from logstore.pipeline import read
from logstore.pipeline.chunks import chunks
from logstore.pipeline.read import Limits, Split

SMALL = Limits(row_bytes=40, raw_bytes=10, split_bytes=16, chunk_bytes=7)


def read_all(path: Path, limits: Limits) -> tuple[list[tuple[int, int, str]], list[tuple[int, int | None, str, str]]]:
    """(position, line, text) of all lines of all splits, and (position, line, reason, raw) of the letters."""
    texts, letters, before = [], [], 0
    for split in read.plan(read.sources([path]), limits):
        lines = 0
        for chunk in chunks(split, limits):
            for number in range(len(chunk.table)):
                line = chunk.line_number(number)
                texts.append((chunk.position(number), before + (line or 0), chunk.text(number).rstrip("\n")))
            letters += [(x.position, before + (x.line or 0), x.reason, x.raw) for x in chunk.letters]
            lines += chunk.lines
        before += lines
    return texts, letters


@given(
    data=st.lists(st.text("abé{}[]\r ", max_size=60), max_size=12),
    end=st.sampled_from(["", "\n"]),
    split=st.integers(1, 64),
    chunk=st.integers(1, 64),
    most=st.integers(1, 5),
)
def test_every_line_is_read_once_at_its_place(
    tmp_path_factory: pytest.TempPathFactory, data: list[str], end: str, split: int, chunk: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("read") / "a.jsonl"
    content = ("\n".join(data) + (end if data else "")).encode()
    path.write_bytes(content)
    limits = Limits(row_bytes=40, raw_bytes=10, split_bytes=split, chunk_bytes=chunk, chunk_lines=most)
    expected, too_long, at = [], [], 0
    for number, line in enumerate(content.splitlines(keepends=True) if b"\r" not in content else _lines(content), 1):
        if len(line) > 40:
            too_long.append((at, number, line))
        elif line.strip():
            expected.append((at, number, line))
        at += len(line)
    texts, letters = read_all(path, limits)
    assert texts == [(at, number, line.decode().rstrip("\n")) for at, number, line in expected]
    assert [(at, number) for at, number, *_ in letters] == [(at, number) for at, number, _ in too_long]
    assert all(reason == "oversize" and len(raw.encode()) <= 40 for _, _, reason, raw in letters)


def _lines(content: bytes) -> list[bytes]:
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def test_a_line_longer_than_many_chunks_is_skipped_without_being_held(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"first\n" + b"x" * 1000 + b"\nlast\n")
    texts, letters = read_all(path, SMALL)
    assert texts == [(0, 1, "first"), (1007, 3, "last")]
    assert letters == [(6, 2, "oversize", "x" * 10)]


def test_a_line_that_is_not_utf8_is_a_letter_and_its_neighbours_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"good\n\xff\xfe\ngood too\n")
    texts, letters = read_all(path, Limits())
    assert [text for *_, text in texts] == ["good", "good too"]
    assert letters == [(5, 2, "malformed", "\\xff\\xfe")]


def test_a_line_that_is_both_too_large_and_not_utf8_is_one_letter(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"good\n" + b"\xff" * 50 + b"\n\xfe\ngood too\n")
    texts, letters = read_all(path, Limits(row_bytes=40, raw_bytes=2))
    assert [text for *_, text in texts] == ["good", "good too"]
    assert letters == [(5, 2, "oversize", "\\xff\\xff"), (56, 3, "malformed", "\\xfe")]


def test_blank_and_tiny_lines_cost_no_more_than_others(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n" * 300_000 + b" \t\r\n" * 100_000 + b"{}\n" * 250_000)
    (split,) = read.plan(read.sources([path]), Limits())
    sizes = [len(chunk.table) for chunk in chunks(split, Limits())]
    assert sum(sizes) == 250_000, "blank lines are gone before anything is parsed"
    assert max(sizes) == 100_000


def test_packed_lines_are_read_as_if_they_were_not(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_bytes(b"one\n\ntwo\r\nthree")
    packed.write_bytes(gzip.compress(b"one\n\ntw") + gzip.compress(b"o\r\nthree"))  # two members are one file
    assert read_all(plain, SMALL) == read_all(packed, SMALL)


def test_a_gzip_bomb_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress((b"x" * 999 + b"\n") * 10_000))
    with pytest.raises(LoadError, match="gzip bomb"):
        read_all(path, Limits(unpacked_bytes=2**20, unpacked_ratio=10))


@pytest.mark.parametrize("damage", ["truncated", "changed", "none of it"])
def test_a_damaged_gzip_file_is_refused_whole(tmp_path: Path, damage: str) -> None:
    data = gzip.compress(b"line\n" * 10_000)
    broken = {"truncated": data[:-20], "changed": data[:-8] + b"12345678", "none of it": b"plain text"}[damage]
    path = tmp_path / "a.gz"
    path.write_bytes(broken)
    with pytest.raises(LoadError, match="damaged"):
        read_all(path, Limits())


def test_a_folder_gives_its_sources_in_the_order_of_paths_and_nothing_else(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.parquet", "a/b.json.gz", "_SUCCESS", ".hidden.jsonl", "note.txt", "a-b.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = read.sources([tmp_path])
    assert [str(Path(s.path).relative_to(tmp_path)) for s in found] == [
        "a-b.json",
        "a/b.json.gz",
        "a/z.parquet",
        "b.jsonl",
    ]
    assert [s.file for s in found] == [0, 1, 2, 3]


def test_a_folder_offers_nothing_hidden_or_half_written_and_knows_large_letters(tmp_path: Path) -> None:
    root = tmp_path / ".hidden" / "_root"  # what is above the folder that was named does not matter
    names = ("UP.JSONL", "day/b.Json.GZ", "_temporary/0/c.jsonl", ".git/d.json", "day/.e/f.jsonl", "day/_g/h.parquet")
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    found = read.sources([root])
    assert [(str(Path(s.path).relative_to(root)), s.format) for s in found] == [
        ("UP.JSONL", "lines"),
        ("day/b.Json.GZ", "gzip"),
    ]
    assert [s.format for s in read.sources([root / "_temporary/0/c.jsonl"])] == ["lines"], (
        "a file that is named is meant"
    )


def test_a_name_that_is_no_text_is_refused_and_shown(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    with open(os.fsencode(tmp_path) + b"/b\xff.jsonl", "wb"):
        pass
    with pytest.raises(LoadError, match=r"b\\udcff.jsonl is not UTF-8: rename it"):
        read.sources([tmp_path])


def test_a_folder_that_vanishes_while_it_is_searched_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "gone").mkdir()
    monkeypatch.setattr(os, "scandir", refusing("gone", FileNotFoundError(2, "No such file")))
    assert [Path(s.path).name for s in read.sources([tmp_path])] == ["a.jsonl"]


def test_a_folder_that_may_not_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(os, "scandir", refusing("closed", PermissionError(13, "Permission denied")))
    with pytest.raises(LoadError, match=r"cannot read .*closed: Permission denied"):
        read.sources([tmp_path])


def refusing(name: str, error: OSError) -> Any:
    """os.scandir, which the tests run by root could not make refuse anything."""
    scan = os.scandir

    def scandir(path: Any = ".") -> Any:
        if os.path.basename(path) == name:
            error.filename = path
            raise error
        return scan(path)

    return scandir


def test_a_file_that_is_taken_away_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one\n")
    found = read.sources([path])
    path.unlink()
    for look in (read.checksums, read.check_unchanged):
        with pytest.raises(LoadError, match=r"cannot read .*a.jsonl: No such file"):
            look(found)


@pytest.mark.parametrize(("name", "message"), [("missing.jsonl", "there is no"), ("note.txt", "none of .jsonl")])
def test_a_path_that_cannot_be_a_source_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "note.txt").touch()
    with pytest.raises(LoadError, match=message):
        read.sources([tmp_path / name])


def test_a_file_that_changed_under_the_load_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("one\n")
    found = read.sources([path])
    path.write_text("one\ntwo\n")
    with pytest.raises(LoadError, match="changed while it was loaded"):
        read.check_unchanged(found)


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("no")
    with pytest.raises(LoadError, match="no readable Parquet"):
        read.plan(read.sources([path]), Limits())


def test_splits_of_text_cover_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 100)
    ranges = [(s.start, s.stop) for s in read.plan(read.sources([path]), Limits(split_bytes=33))]
    assert ranges == [(0, 33), (33, 66), (66, 99), (99, 100)]
    assert all(isinstance(s, Split) for s in read.plan(read.sources([path]), Limits()))
