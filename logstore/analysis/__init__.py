"""Ad hoc questions: DuckDB over the archive for people who are trusted, a sandbox for SQL that is not, and named questions.

with analysis.connect(store) as duck:
    frame = duck.execute("SELECT topic, count(*) FROM events GROUP BY 1").df()
answer = analysis.sandbox(store, "SELECT count(*) FROM attempts", seconds=5)
answer = analysis.ask(store, "failure_groups", tenant="acme", limit=20)
"""

from __future__ import annotations

from logstore.analysis.answers import Answer
from logstore.analysis.questions import Parameter, Question, ask, questions
from logstore.analysis.untrusted import sandbox
from logstore.analysis.views import connect

__all__ = ["Answer", "Parameter", "Question", "ask", "connect", "questions", "sandbox"]
