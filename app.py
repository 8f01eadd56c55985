"""Overview: how is the platform doing, and where should one look?"""

from logstore.workbench.frame import frame, sentences
from logstore.workbench.overview.page import page

found = frame("Overview")
with sentences():
    page(found)
