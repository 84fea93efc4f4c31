"""Settings: every value that is in force, where it comes from, and what it means to those who use it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.definitions.source import Problem
from shared.settings.keys import KEYS
from shared.settings.origin import Origin
from shared.settings.tree import Branch, Node, Value, leaves, plain


@dataclass(frozen=True)
class Settings:
    """The settings of one workspace, as they were when they were read."""

    workspace: Path
    entries: Mapping[str, Node]
    files: tuple[str, ...] = ()  # that were found, weakest first
    problems: tuple[Problem, ...] = ()  # that did not prevent reading

    def get(self, key: str) -> Any:
        """The value of a setting; `retry.attempts` reaches inside of one, and None is: not set."""
        node = self._find(key)
        return plain(node) if node is not None else None

    def origin(self, key: str) -> Origin | None:
        """Where the value of a setting comes from."""
        node = self._find(key)
        return node.origin if node is not None else None

    def written(self, key: str) -> Any:
        """The value of a setting if a file decides it, else None: environment and defaults go their own way."""
        node = self._find(key)
        return _written(node) if node is not None else None

    def rows(self) -> Iterator[tuple[str, Value]]:
        """Every single value in the order of the schema, by its dotted name."""
        for key, node in self.entries.items():
            for path, value in leaves(node, (key,)):
                yield ".".join(path), value

    @property
    def provider(self) -> str:
        """The provider of the main session."""
        return str(self.get("provider"))

    @property
    def model(self) -> str | None:
        """The model of the main session."""
        model: str | None = self.get("model")
        return model

    @property
    def trace(self) -> Path | None:
        """Where the debug trace goes; None: it is off."""
        given = self.get("trace")
        return self._path("trace", given) if given else None

    @property
    def permissions(self) -> str | None:
        """What files say about permissions: a word, or the path of a policy."""
        given: str | None = self.written("permissions")
        return given if given in (None, "allow", "ask", "deny") else str(self._path("permissions", given))

    @property
    def skill_dirs(self) -> tuple[str, ...]:
        """Folders of skills besides the usual ones."""
        return self._paths("skill_dirs")

    @property
    def extra_dirs(self) -> tuple[str, ...]:
        """Folders of profiles besides the usual ones."""
        return self._paths("extra_dirs")

    @property
    def plugins(self) -> dict[str, dict[str, Any]]:
        """The plugins to expose, each with its settings."""
        return {name: config for name, config in (self.get("plugins") or {}).items() if config is not False}

    @property
    def providers(self) -> dict[str, dict[str, Any]]:
        """What files say about the connection to each provider."""
        found = {name: dict(each) for name, each in (self.written("providers") or {}).items() if each}
        for name, each in found.items():
            if (path := each.get("credentials_path")) is not None:
                each["credentials_path"] = str(self._path(f"providers.{name}.credentials_path", path))
        return found

    @property
    def model_options(self) -> dict[str, Any]:
        """Temperature and the like, as far as they are set."""
        names = ("temperature", "reasoning_effort", "max_output_tokens")
        return {name: value for name in names if (value := self.get(name)) is not None}

    def subagent_options(self, taken: Iterator[str] | tuple[str, ...]) -> dict[str, Any]:
        """What files say of the options that the subagent plugin takes."""
        known = set(taken)
        found = {
            key: value
            for key, entry in KEYS.items()
            if entry.subagent and key in known and (value := self.written(key)) is not None
        }
        return {**found, "extra_dirs": list(self.extra_dirs)} if "extra_dirs" in found else found

    def _path(self, key: str, given: str) -> Path:
        """A path that is the value of a setting.

        A relative one starts at the workspace, in a file of the user's own at the folder of that file: what the user
        names must not be found in whatever folder he happens to work in.
        """
        origin = self.origin(key)
        own = origin.path if origin is not None and origin.kind in ("user", "overlay") else None
        base = Path(own).absolute().parent if own is not None else self.workspace
        return base / Path(given).expanduser()

    def _paths(self, key: str) -> tuple[str, ...]:
        return tuple(str(self._path(key, each)) for each in self.get(key) or ())

    def _find(self, key: str) -> Node | None:
        first, *rest = key.split(".")
        node = self.entries.get(first)
        for step in rest:
            if not isinstance(node, Branch):
                return None
            node = node.entries.get(step)
        return node


def _written(node: Node) -> Any:
    """The values that files decide; None where there are none."""
    if isinstance(node, Value):
        return node.value if node.origin.is_file else None
    found = {key: value for key, entry in node.entries.items() if (value := _written(entry)) is not None}
    return found or ({} if node.origin.is_file else None)
