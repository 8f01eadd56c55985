"""tmp"""

from logstore.workbench.frame import frame

frame("Event")
