"""What the pages share: frame, view in the URL, lists, charts, server. Only it and the pages know Streamlit."""
