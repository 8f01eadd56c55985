"""The page of loads: what came in, what is coming in, and what could not?"""
