"""Partitions: where is each month of the log, is it safe there, and what should be done?"""

from logstore.workbench import partitions_page
from logstore.workbench.frame import frame, sentences

found = frame("Partitions", range_=False)
with sentences():
    partitions_page.page(found)
