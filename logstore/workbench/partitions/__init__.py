"""The page of partitions: where is each month of the log, and what should be done about it?"""
