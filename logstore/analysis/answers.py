"""An answer: a table of rows, and what there is to know about it."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pandas

_SHOWN_MOST = 200  # rows in a notebook; all of them are in the answer
_CELL_MOST = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The rows that a question gave; `truncated` says that there were more than the limit let through."""

    table: pa.Table = field(repr=False)
    seconds: float
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    title: str | None = None

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
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        shown = Answer(table=self.table.slice(0, _SHOWN_MOST), seconds=0).rows
        body = "".join(f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in shown)
        more = (f"{len(self) - len(shown)} more rows: use to_pandas()",) if len(self) > len(shown) else ()
        notes = "".join(f"<p>⚠ {html.escape(note)}</p>" for note in (*self.notes, *more))
        return f"{notes}<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    """A value as escaped text, cut: payloads are hostile and may be large."""
    text = "" if value is None else str(value)
    return html.escape(text if len(text) <= _CELL_MOST else text[:_CELL_MOST] + "…")
