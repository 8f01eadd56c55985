"""SQL: what else does one want to know, of all that is archived?"""

from logstore.workbench import sql_page
from logstore.workbench.frame import frame, sentences

found = frame("SQL", range_=False)
with sentences():
    sql_page.page(found)
