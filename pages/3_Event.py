"""Event: was it delivered, to whom, and why not?"""

from logstore.workbench import event_page
from logstore.workbench.frame import frame, sentences

found = frame("Event", range_=False)
with sentences():
    event_page.page(found)
