"""Destinations: which of a tenant's endpoints fail, how, and since when?"""

from logstore.workbench.destinations.page import page
from logstore.workbench.frame import frame, sentences

found = frame("Destinations")
with sentences():
    page(found)
