"""Whether settings name what exists here: providers, plugins, a policy, folders. Their form is checked elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from shared.definitions.source import Problem, Severity
from shared.errors import unknown_name
from shared.permissions.policy import ACTIONS
from shared.permissions.policy_file import load_policy
from shared.providers import known_providers
from shared.settings import Settings


def misnamed(settings: Settings, plugins: Collection[str]) -> Iterator[Problem]:
    """What is set and nobody here knows; `plugins` are those that are known. A host may bring more in its own code."""
    for key in ("provider", "default_provider"):
        name = settings.written(key)
        if isinstance(name, str) and name not in known_providers():
            yield _problem(settings, key, unknown_name("provider", name, known_providers()), "warning")
    for name in settings.get("plugins") or {}:
        if name not in plugins:
            yield _problem(settings, f"plugins.{name}", unknown_name("plugin", name, plugins), "warning")
    policy = settings.permissions
    if policy is not None and policy not in ACTIONS and (wrong := load_policy(Path(policy)).problem):
        yield _problem(settings, "permissions", f"everything is denied: {wrong}")
    for key, folders in (("skill_dirs", settings.skill_dirs), ("extra_dirs", settings.extra_dirs)):
        for folder in folders:
            if not Path(folder).is_dir():
                yield _problem(settings, key, f"there is no folder {folder}", "warning")


def _problem(settings: Settings, key: str, text: str, severity: Severity = "error") -> Problem:
    origin = settings.origin(key) or settings.origin(key.partition(".")[0])
    path, line = (origin.path, origin.line) if origin is not None else (None, None)
    where = path or (str(origin) if origin is not None else "settings")
    return Problem(where, line, "unknown-name", key, f"{key}: {text}", severity)
