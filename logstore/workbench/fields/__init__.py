"""The page of the payloads' fields: what do they hold, and how does one filter on them?"""
