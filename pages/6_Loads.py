"""Loads: what came in, what is coming in, and what could not?"""

from logstore.workbench.frame import frame, sentences
from logstore.workbench.loads.page import page

found = frame("Loads", range_=False)
with sentences():
    page(found)
