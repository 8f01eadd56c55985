"""SQL: what else does one want to know, of all that is archived?"""

from logstore.workbench.frame import frame, sentences
from logstore.workbench.sql.page import page

found = frame("SQL", range_=False)
with sentences():
    page(found)
