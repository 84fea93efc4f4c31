"""The engine behind subagents: runs, slots, shared state, inbox."""
