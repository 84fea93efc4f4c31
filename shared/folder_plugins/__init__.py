"""Drop-in plugins: folders with a `plugin.json` that become ordinary plugins."""
