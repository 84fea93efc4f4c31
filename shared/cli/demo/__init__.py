"""`jaato demo`: a scripted model and its subagents work on a folder of yours with real tools; no key, no network."""
