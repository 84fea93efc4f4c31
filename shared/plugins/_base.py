"""What the built-in plugins share: settings checked against a schema, and the workspace they work in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from shared.errors import ConfigError
from shared.plugin import Plugin
from shared.schema import Validator
from shared.workspace import Workspace

if TYPE_CHECKING:
    from shared.runtime import JaatoRuntime
    from shared.tools import ToolContext


class ConfiguredPlugin(Plugin):
    """A plugin whose settings have types: `config_schema` holds a JSON Schema for each key."""

    config_schema: ClassVar[Mapping[str, Any]] = {}

    def initialize(self, config: dict[str, Any] | None = None) -> None:
        """Take settings; a wrong one is an error that names it, and changes nothing."""
        given = {key: _plain(value) for key, value in (config or {}).items()}
        schema = Validator({"type": "object", "properties": dict(self.config_schema)}, what=f"plugin '{self.name}'")
        if problems := schema.problems(given):
            raise ConfigError(f"plugin '{self.name}', setting {'; '.join(problems)}")
        super().initialize(given)


class WorkspacePlugin(ConfiguredPlugin):
    """A plugin that works on files: in the folder its settings name, else in the calling session's."""

    _fallback: Path | None = None

    def attach(self, runtime: JaatoRuntime) -> None:
        """Learn the runtime's workspace, for what happens outside a tool call."""
        self._fallback = getattr(runtime, "workspace", None)

    def workspace(self, context: ToolContext | None = None) -> Workspace:
        """The workspace of a call."""
        if configured := self.config.get("workspace"):
            return Workspace(Path(str(configured)).expanduser())
        if context is not None:
            return Workspace(context.workspace)
        return Workspace(self._fallback or Path.cwd())


WORKSPACE_SCHEMA: Mapping[str, Any] = {"type": ["string", "null"], "minLength": 1}


def _plain(value: Any) -> Any:
    """Python values as JSON has them: paths become text, tuples lists."""
    if isinstance(value, PurePath):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
