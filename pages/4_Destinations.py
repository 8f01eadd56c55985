"""Destinations: which of a tenant's endpoints fail, how, and since when?"""

from logstore.workbench import destinations_page
from logstore.workbench.frame import frame, sentences

found = frame("Destinations")
with sentences():
    destinations_page.page(found)
