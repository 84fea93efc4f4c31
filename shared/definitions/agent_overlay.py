"""Overlay: what is said about an agent besides its own file, by the manifest of the plugin that brings it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.definitions.agent_dialects import Dialect
from shared.definitions.document import Unreadable
from shared.definitions.frontmatter import FrontMatter, read_front_matter


@dataclass(frozen=True)
class Overlay:
    """Fields that beat the file's, and the plugin's own tools, which go by their own names whatever others call so.

    `tools` among the fields replaces the file's list; what the file denies stays denied.
    """

    dialect: Dialect
    fields: Mapping[str, Any] = field(default_factory=dict)
    own_tools: frozenset[str] = frozenset()

    def front_matter(self, text: str) -> FrontMatter:
        """The front matter of a file that may have none, where the name of the agent is known without it."""
        try:
            return read_front_matter(text)
        except Unreadable as error:
            plainly_none = [(fault.code, fault.severity) for fault in error.faults] == [("no-frontmatter", "info")]
            if not plainly_none or "name" not in self.fields:
                raise
            return FrontMatter({}, text)
