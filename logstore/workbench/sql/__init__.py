"""The page of questions in SQL over the archive."""
