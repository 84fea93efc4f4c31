"""PluginView: the plugins as one session sees them; settings of its own never touch the live instances."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.errors import JaatoError, PluginError, unknown_name
from shared.plugin import PluginConfig, ToolPlugin
from shared.plugin_loading import plugin_tools
from shared.registry import PluginRegistry
from shared.tools import Tool

log = logging.getLogger(__name__)


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
        self._own: dict[str, ToolPlugin] = {}
        configs = configs or {}
        self.names = list(dict.fromkeys(registry.list_exposed() if names is None else names))
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
    def shares_all(self) -> bool:
        """Whether no plugin belongs to this view alone."""
        return not self._own

    def tools(self) -> list[Tool]:
        """The enabled tools of all plugins of the view, in its order."""
        found: list[Tool] = []
        disabled = set(self._registry.list_disabled_tools())
        for name in self.names:
            if name in self._own:
                found += [tool for tool in plugin_tools(self._own[name]) if tool.name not in disabled]
            else:
                found += self._registry.tools([name])
        return found

    def instructions(self) -> list[str]:
        """What the plugins say in the system prompt."""
        plugins = [self._own.get(name) or self._registry.get_plugin(name) for name in self.names]
        texts = [(plugin.get_system_instructions() or "").strip() for plugin in plugins if plugin is not None]
        return [text for text in texts if text]

    def plugin(self, name: str) -> ToolPlugin | None:
        """The instance of a plugin that this view uses."""
        if name not in self.names:
            return None
        return self._own.get(name) or self._registry.get_plugin(name)

    def close(self) -> None:
        """Shut the view's own instances down."""
        own, self._own = self._own, {}
        for name, plugin in own.items():
            try:
                plugin.shutdown()
            except Exception:  # foreign code: the others must still be shut down
                log.warning("plugin '%s' failed to shut down", name, exc_info=True)

    def _make(self, name: str, config: PluginConfig | None, attach: Callable[[ToolPlugin], None]) -> ToolPlugin:
        plugin = self._registry.fresh_plugin(name)
        merged: dict[str, Any] = {**self._registry.config_of(name), **(config or {})}
        try:
            plugin.initialize(merged or None)
        except JaatoError:
            raise
        except Exception as error:
            raise PluginError(f"plugin '{name}' failed to start: {type(error).__name__}: {error}") from error
        attach(plugin)
        return plugin
