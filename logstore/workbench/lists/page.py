"""Events, and Attempts: the menus, the box of the filter, and the list."""

from __future__ import annotations

from logstore.cursor import Kind
from logstore.workbench.background import together
from logstore.workbench.frame import Frame
from logstore.workbench.lists.filter_bar import FIELDS, filters
from logstore.workbench.lists.filter_expression import expression
from logstore.workbench.lists.listing import listing


@together()
def page(frame: Frame, kind: Kind) -> None:
    """All records of one kind that the view selects."""
    filters(frame, FIELDS[kind])
    if expression(frame, kind):
        listing(frame, kind)
