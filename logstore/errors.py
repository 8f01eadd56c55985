"""Everything logstore raises on purpose: one tree, so that one `except` catches it.

    LogstoreError
    ├── InvalidCursor                a cursor that is damaged, foreign, or out of range
    │   └── CursorVersionMismatch    a cursor of a version this program does not read
    ├── InvalidSelection             a question that cannot be asked as it stands
    │   └── InvalidFilter            a filter expression with a mistake at a known column
    ├── InvalidSetting               an environment variable that cannot be read
    ├── InvalidRecord                an event or attempt that cannot be stored
    ├── TooBroad                     a question that did not finish in its time
    ├── Unimplemented                a question this operation does not answer; the message names the one that does
    ├── ServerError                  PostgreSQL cannot be started, reached or prepared
    ├── PartitionError               a month is missing, closed, archived or out of range
    ├── ArchiveError                 a segment cannot be written, read or trusted
    ├── LoadError                    a load cannot be started, finished or repeated
    ├── MaintenanceError             a plan is stale, locked out, or refused
    └── SandboxError                 ad hoc SQL that is refused or ran out of its limits

Every message says what to do next. The cause, where there is one, is chained.
"""

from __future__ import annotations


class LogstoreError(Exception):
    """The root of the tree."""


class InvalidCursor(LogstoreError):
    """The cursor cannot be read; start from the first page or from a cursor that was issued."""


class CursorVersionMismatch(InvalidCursor):
    """The cursor was issued by a program that writes another version."""


class InvalidSelection(LogstoreError):
    """The selection, limit, order or range makes no sense; nothing is silently corrected."""


class InvalidFilter(InvalidSelection):
    """A filter expression does not parse or names an unknown field.

    `column` counts from 1; `expected` lists what could stand there.
    """

    def __init__(self, message: str, *, column: int = 1, expected: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.column = column
        self.expected = expected


class InvalidSetting(LogstoreError):
    """A LOGSTORE_… variable holds what it cannot hold."""


class InvalidRecord(LogstoreError):
    """An event or attempt breaks a rule of its fields."""


class TooBroad(LogstoreError):
    """An answer that did not finish in its time; narrow the time, or choose a tenant."""


class Unimplemented(LogstoreError):
    """This operation does not answer that question."""


class ServerError(LogstoreError):
    """PostgreSQL cannot be started, reached or prepared."""


class PartitionError(LogstoreError):
    """The month that a record belongs to cannot take it."""


class ArchiveError(LogstoreError):
    """A segment cannot be written, read or trusted."""


class LoadError(LogstoreError):
    """A load cannot be started, finished or repeated."""


class MaintenanceError(LogstoreError):
    """A maintenance step is refused: stale plan, a lock held by another, or an undo window still open."""


class SandboxError(LogstoreError):
    """Ad hoc SQL that is refused, or was stopped at its limits."""
