"""An answer: a table of rows, and what there is to know about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from logstore import display

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The rows that a question gave; `truncated` says that there were more than the limit let through."""

    table: pa.Table = field(repr=False)
    seconds: float
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    title: str | None = None
    read: int | None = None  # rows that were read for it, after the filters that files are read with; None: not counted

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.column_names)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as Python values, in the order of `columns`."""
        return list(zip(*(column.to_pylist() for column in self.table.columns), strict=True))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know before believing the rows."""
        cut = (f"only the first {len(self)} rows are shown; there are more",) if self.truncated else ()
        return self.warnings + cut

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame; times are datetime64[us, UTC]."""
        frame: pandas.DataFrame = self.table.to_pandas()
        return frame

    def _repr_html_(self) -> str:
        shown = Answer(table=self.table.slice(0, display.ROWS_MOST), seconds=0).rows
        return display.table(self.columns, shown, caption=self.title or "", notes=self.notes, count=len(self))
