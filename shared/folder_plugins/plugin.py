"""FolderPlugin: a folder with a `plugin.json` as an ordinary plugin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.definitions.profile import SubagentProfile
from shared.folder_plugins.api import PluginAPI, SkillText
from shared.folder_plugins.code import PluginCode
from shared.folder_plugins.command import command_tool
from shared.folder_plugins.opened import CODE, OpenedFolder
from shared.folder_plugins.settings import resolved
from shared.hooks import Handler
from shared.plugin import Plugin
from shared.tools import Tool


class FolderPlugin(Plugin):
    """Tools from the manifest and from `register(api)`; its Python runs when the plugin is initialised, not before.

    Agents, hooks and skills are asked for by those who use them, of the instance that is exposed: they
    come and go with it, and an instance that a single session made for itself brings none.
    """

    def __init__(self, opened: OpenedFolder) -> None:
        super().__init__()
        self.name = opened.manifest.name
        self.opened = opened
        self._code: PluginCode | None = None
        self._api: PluginAPI | None = None
        self._tools: list[Tool] = []

    def renew(self) -> FolderPlugin:
        """Another instance of the same folder, for a session with settings of its own."""
        return FolderPlugin(self.opened)

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings, run `register(api)` if there is Python, and make the tools."""
        self.shutdown()
        opened, manifest = self.opened, self.opened.manifest
        values: Mapping[str, Any] = resolved(self.name, manifest.settings, config or {})
        if opened.has_code:
            api, code = PluginAPI(self.name, values), PluginCode(self.name, opened.root / CODE)
            code.register(api)
            self._api, self._code = api, code
        commands = [command_tool(entry, plugin=self.name, root=opened.root, config=values) for entry in manifest.tools]
        self._tools = [*commands, *(self._api.tools if self._api is not None else ())]
        self.config = dict(values)

    def shutdown(self) -> None:
        """Let go of the code and everything it registered."""
        code, self._code, self._api, self._tools = self._code, None, None, []
        if code is not None:
            code.unload()

    def tools(self) -> list[Tool]:
        """The tools; those of a plugin that was not initialised are what its manifest says."""
        if self._tools or self._api is not None:
            return list(self._tools)
        manifest = self.opened.manifest
        return [command_tool(entry, plugin=self.name, root=self.opened.root, config={}) for entry in manifest.tools]

    def get_agents(self) -> tuple[SubagentProfile, ...]:
        """The agents, for whoever makes profiles of them."""
        return self.opened.agents

    def get_hooks(self) -> tuple[tuple[str, Handler], ...]:
        """The hooks, for the hook bus."""
        return self._api.hooks if self._api is not None else ()

    def get_skills(self) -> tuple[SkillText, ...]:
        """Skills that code brought."""
        return self._api.skills if self._api is not None else ()

    def get_skill_folders(self) -> tuple[Path, ...]:
        """Folders with skills inside the plugin."""
        return self.opened.skill_folders
