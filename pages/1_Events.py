"""Events: what was published, and did it arrive?"""

from logstore.workbench.frame import frame, sentences
from logstore.workbench.lists.page import page

found = frame("Events")
with sentences():
    page(found, "event")
