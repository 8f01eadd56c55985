"""Attempts: which deliveries were tried, and how did they end?"""

from logstore.workbench.filters import FIELDS, expression, filters
from logstore.workbench.frame import frame, sentences
from logstore.workbench.listing import listing

found = frame("Attempts")
with sentences():
    filters(found, FIELDS["attempt"])
    expression(found, "attempt")
    listing(found, "attempt")
