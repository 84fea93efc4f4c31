"""The `jaato` command."""
