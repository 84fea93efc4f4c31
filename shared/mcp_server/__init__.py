"""The subagent tools for any MCP host: each client has a conversation of its own, over stdio or HTTP."""
