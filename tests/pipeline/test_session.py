"""Which Java a session runs on; no Spark is started here."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.commands import setup
from logstore.pipeline import session

pytestmark = pytest.mark.spark


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that JAVA_HOME names: it says its version, and nothing else."""
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return java


def test_a_child_that_inherits_our_shim_finds_the_java_behind_it(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    shim = session.java_home(home)
    monkeypatch.setenv("JAVA_HOME", str(shim))
    session.java_home.cache_clear()  # as in another process
    assert session.find_java() == java
    assert session.java_home(home) == shim
    assert f'exec "{java}"' in (shim / "bin" / "java").read_text()


@pytest.mark.usefixtures("java")
def test_a_shim_around_itself_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such were made before; one runs for ever."""
    monkeypatch.setattr(session, "_JAVA_SECONDS", 1)
    shim = session.java_home(tmp_path / "home") / "bin" / "java"
    shim.write_text(session._SHIM.format(java=shim))
    monkeypatch.setenv("JAVA_HOME", str(shim.parent.parent))
    assert session.find_java() != shim


def test_a_java_that_never_answers_is_none(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java.write_text("#!/bin/sh\nexec sleep 60\n")
    for asks in (session, setup):
        monkeypatch.setattr(asks, "_JAVA_SECONDS", 0.2)
    assert session.find_java() != java
    assert setup._java_version(java) is None


def test_java_is_the_one_that_java_home_names(java: Path) -> None:
    assert session.find_java() == java
