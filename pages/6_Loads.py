"""Loads: what came in, what is coming in, and what could not?"""

from logstore.workbench import loads_page
from logstore.workbench.frame import frame, sentences

found = frame("Loads", range_=False)
with sentences():
    loads_page.page(found)
