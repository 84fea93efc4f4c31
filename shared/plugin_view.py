"""PluginView: the plugins as one session sees them; settings of its own never touch the live instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.errors import JaatoError, PluginError, unknown_name
from shared.plugin import PluginConfig, ToolPlugin
from shared.plugin_loading import plugin_tools, shut_down
from shared.registry import PluginRegistry
from shared.tools import Tool


class PluginView:
    """A chosen set of plugins, some of them as instances of the session's own.

    A plugin that is exposed and has no settings here is shared; one with settings, or one that was
    discovered but not exposed, is made and initialised for this view and shut down with it.
    """

    def __init__(
        self,
        registry: PluginRegistry,
        *,
        names: Sequence[str] | None = None,
        configs: Mapping[str, PluginConfig] | None = None,
        attach: Callable[[ToolPlugin], None] = lambda plugin: None,
    ) -> None:
        self._registry = registry
        self._chosen = None if names is None else list(dict.fromkeys(names))
        self._own: dict[str, ToolPlugin] = {}
        self._asked: dict[str, list[Tool]] = {}  # tools of own instances
        configs = self.configs = dict(configs or {})
        for name in [*self.names, *configs]:
            if name not in registry.list_available():
                raise PluginError(unknown_name("plugin", name, registry.list_available()))
        try:
            for name in self.names:
                if name in configs or not registry.is_exposed(name):
                    self._own[name] = self._make(name, configs.get(name), attach)
        except BaseException:
            self.close()
            raise

    @property
    def names(self) -> list[str]:
        """The plugins of the view: those it was made for, or all that are exposed at the moment."""
        return self._registry.list_exposed() if self._chosen is None else list(self._chosen)

    @property
    def shares_all(self) -> bool:
        """Whether no plugin belongs to this view alone."""
        return not self._own

    def tools(self) -> list[Tool]:
        """The enabled tools of all plugins of the view, in its order."""
        registry, found = self._registry, list[Tool]()
        for name in self.names:
            if (own := self._own.get(name)) is not None:
                found += [tool for tool in self._tools_of(name, own) if not registry.is_switched_off(tool.name)]
            else:
                found += registry.tools([name])
        return found

    def _tools_of(self, name: str, own: ToolPlugin) -> list[Tool]:
        """The tools of an own instance: asked for once, except where they come and go."""
        if hasattr(own, "known_tools"):
            return plugin_tools(own)
        if name not in self._asked:
            self._asked[name] = plugin_tools(own)
        return self._asked[name]

    def settle(self) -> None:
        """Give plugins whose tools are still on their way a moment, shared ones and the view's own."""
        self._registry.settle()
        for plugin in self._own.values():
            if callable(settle := getattr(plugin, "settle", None)):
                settle()

    def instructions(self) -> list[str]:
        """What the plugins say in the system prompt."""
        plugins = [self.plugin(name) for name in self.names]
        texts = [(plugin.get_system_instructions() or "").strip() for plugin in plugins if plugin is not None]
        return [text for text in texts if text]

    def plugin(self, name: str) -> ToolPlugin | None:
        """The instance of a plugin that this view uses, unless it was taken out of use."""
        if name not in self.names:
            return None
        if (own := self._own.get(name)) is not None:
            return own
        return self._registry.get_plugin(name) if self._registry.is_exposed(name) else None

    def has_lost(self, tool: Tool) -> bool:
        """Whether a tool that was offered before is switched off by now, or its plugin out of use."""
        registry, plugin = self._registry, tool.plugin
        if registry.is_switched_off(tool.name):
            return True
        return not registry.is_exposed(plugin) and plugin not in self._own and plugin in registry.list_available()

    def close(self) -> None:
        """Shut the view's own instances down."""
        own, self._own = self._own, {}
        for name, plugin in own.items():
            shut_down(plugin, name)

    def _make(self, name: str, config: PluginConfig | None, attach: Callable[[ToolPlugin], None]) -> ToolPlugin:
        plugin = self._registry.fresh_plugin(name)
        merged: dict[str, Any] = {**self._registry.config_of(name), **(config or {})}
        try:
            plugin.initialize(merged or None)
            attach(plugin)
        except Exception as error:
            shut_down(plugin, name)
            if isinstance(error, JaatoError):
                raise
            raise PluginError(f"plugin '{name}' failed to start: {type(error).__name__}: {error}") from error
        return plugin
