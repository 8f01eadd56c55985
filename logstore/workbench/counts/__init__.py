"""What is counted of the log, over both tiers; it knows no Streamlit."""
