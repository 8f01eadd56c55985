"""A list of events or of attempts: the pages Events and Attempts, and a part of other pages."""
