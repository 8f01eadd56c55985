"""Fields: what do the payloads of a topic hold, what changed, and how does one filter on it?"""

from logstore.workbench.fields.page import page
from logstore.workbench.frame import frame, sentences

found = frame("Fields", range_=False)
with sentences():
    page(found)
