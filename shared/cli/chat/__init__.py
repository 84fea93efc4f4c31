"""`jaato chat`: the interactive client, one concept per file; `app.py` puts them together."""
