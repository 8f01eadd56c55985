"""Events: what was published, and did it arrive?"""

from logstore.workbench.filters import FIELDS, expression, filters
from logstore.workbench.frame import frame, sentences
from logstore.workbench.listing import listing

found = frame("Events")
with sentences():
    filters(found, FIELDS["event"])
    expression(found, "event")
    listing(found, "event")
