"""Plugin folders for tests: written to a place, found by a registry, called as a host calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared.cancel import CancelToken
from shared.registry import PluginRegistry
from shared.toolbox import Toolbox
from shared.tools import ToolContext
from shared.trust import TrustStore, survey
from shared.types import FunctionCall, ToolResult

ECHO = "import json, sys; json.dump({'got': json.load(sys.stdin)}, sys.stdout)"


@dataclass
class Places:
    """A project and a user's own folder."""

    project: Path
    home: Path

    @staticmethod
    def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
        """Two fresh folders, which every part of the package takes for the real ones."""
        places = Places(tmp_path / "project", tmp_path / "home")
        places.project.mkdir()
        places.home.mkdir()
        monkeypatch.setenv("JAATO_HOME", str(places.home))
        monkeypatch.chdir(places.project)
        return places

    def write(self, name: str, manifest: object, *, user: bool = True, **files: str) -> Path:
        """A plugin folder; a file `a__b_py` is written as `a/b.py`."""
        place = self.home / "plugins" if user else self.project / ".jaato" / "plugins"
        return write_plugin(place / name, manifest, **files)

    def trust(self) -> None:
        """Trust the project as it is now."""
        TrustStore().trust(survey(self.project))

    def registry(self, *expose: str) -> PluginRegistry:
        """A registry that has looked around, with these plugins in use."""
        registry = PluginRegistry()
        registry.discover()
        for name in expose:
            registry.expose_tool(name)
        return registry


def write_plugin(folder: Path, manifest: object, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plugin.json").write_text(manifest if isinstance(manifest, str) else json.dumps(manifest, indent=1))
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        target = folder / f"{stem.replace('__', '/')}.{suffix}"
        if name == "init_py":
            target = folder / "__init__.py"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def command(name: str = "echo", code: str = ECHO, **fields: Any) -> dict[str, Any]:
    """A command tool that runs Python code."""
    return {"name": name, "description": "A tool.", "command": "python3", "args": ["-c", code], **fields}


def call(
    registry: PluginRegistry,
    tool: str,
    args: Mapping[str, Any] | None = None,
    *,
    profile: str | None = None,
    cancel: CancelToken | None = None,
    workspace: Path | None = None,
    **options: Any,
) -> ToolResult:
    """Call a tool as an agent of that profile does, through the toolbox."""
    box = Toolbox(registry.tools(), profile=profile, **options)
    context = ToolContext("main", cancel or CancelToken(), workspace=workspace or Path.cwd())
    return box.run(FunctionCall("1", tool, dict(args or {})), context)
