"""Source: one document or folder that an agent can be given, checked when it is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import ConfigError, unknown_name
from shared.schema import Validator
from shared.workspace import Location, Workspace

TYPES = ("file", "folder", "local", "inline", "url")
_NEEDS = {"inline": "content", "url": "url"}
_TEXT = {"type": "string", "minLength": 1}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 200},
        "name": _TEXT,
        "description": {"type": "string"},
        "type": {"enum": list(TYPES)},
        "path": _TEXT,
        "content": {"type": "string"},
        "url": _TEXT,
        "mode": {"enum": ["auto", "selectable"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "type"],
}
_CHECK = Validator(SCHEMA, what="reference sources")


@dataclass(frozen=True)
class Source:
    """What a source is; only a trusted one may lie outside the workspace."""

    id: str
    type: str
    name: str
    description: str = ""
    path: str = ""
    content: str = ""
    url: str = ""
    mode: str = "selectable"
    tags: tuple[str, ...] = ()
    trusted: bool = False

    def place(self, workspace: Workspace) -> tuple[Workspace, Location]:
        """Where the source's file or folder is."""
        if not (self.trusted and os.path.isabs(os.path.expanduser(self.path))):
            return workspace, workspace.locate(self.path)
        real = os.path.realpath(os.path.expanduser(self.path))
        outside = Workspace(real if os.path.isdir(real) else os.path.dirname(real))
        return outside, outside.locate(real)

    def summary(self) -> dict[str, Any]:
        """The source as it appears in a list."""
        shown: dict[str, Any] = {"id": self.id, "name": self.name, "type": self.type, "mode": self.mode}
        if self.description:
            shown["description"] = self.description
        if self.tags:
            shown["tags"] = list(self.tags)
        return {**shown, "url": self.url} if self.type == "url" else shown


def source_from(entry: Any, *, trusted: bool) -> Source:
    """A source from its JSON form; a mistake is a ConfigError that names the source and the field."""
    what = f"reference source '{entry.get('id', '?')}'" if isinstance(entry, Mapping) else "a reference source"
    if problems := _CHECK.problems(entry):
        raise ConfigError(f"{what}: {'; '.join(problems)}")
    known = SCHEMA["properties"]
    for key in entry:
        if key not in known and trusted:  # a shared file may say more than we read; a setting may not
            raise ConfigError(f"{what}: {unknown_name('field', key, known)}")
    needed = _NEEDS.get(entry["type"], "path")
    if needed not in entry:
        raise ConfigError(f"{what}: type '{entry['type']}' needs the field '{needed}'")
    fields = {key: value for key, value in entry.items() if key in known}
    fields["tags"] = tuple(entry.get("tags", ()))
    return Source(**{"name": entry["id"], **fields}, trusted=trusted)
