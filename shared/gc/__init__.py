"""Context collection: keeps a session's history within its model's context."""
