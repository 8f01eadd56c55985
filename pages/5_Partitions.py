"""Partitions: where is each month of the log, is it safe there, and what should be done?"""

from logstore.workbench.frame import frame, sentences
from logstore.workbench.partitions.page import page

found = frame("Partitions", range_=False)
with sentences():
    page(found)
