"""Attempts: which deliveries were tried, and how did they end?"""

from logstore.workbench.frame import frame, sentences
from logstore.workbench.lists.page import page

found = frame("Attempts")
with sentences():
    page(found, "attempt")
