"""Overview: how is the platform doing, and where should one look?"""

from logstore.workbench import overview_page
from logstore.workbench.frame import frame, sentences

found = frame("Overview")
with sentences():
    overview_page.page(found)
