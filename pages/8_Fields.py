"""Fields: what do the payloads of a topic hold, what changed, and how does one filter on it?"""

from logstore.workbench import fields_page
from logstore.workbench.frame import frame, sentences

found = frame("Fields", range_=False)
with sentences():
    fields_page.page(found)
