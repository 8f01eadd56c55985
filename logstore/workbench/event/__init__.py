"""The page of one event: was it delivered, to whom, and why not?"""
