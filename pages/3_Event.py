"""Event: was it delivered, to whom, and why not?"""

from logstore.workbench.event.page import page
from logstore.workbench.frame import frame, sentences

found = frame("Event", range_=False)
with sentences():
    page(found)
