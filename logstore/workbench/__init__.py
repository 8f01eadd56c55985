"""The web pages: a package for each, and beside the packages what the pages share. Nothing else knows Streamlit."""
