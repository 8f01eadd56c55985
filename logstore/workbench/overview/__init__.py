"""The overview: how is delivery, and where is trouble?"""
