"""The page of destinations: which of them fail, how, and since when?"""
