"""SubagentConfig: the settings of the subagent plugin."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from shared.definitions.agent_folders import AGENT_FOLDERS
from shared.definitions.profile import SubagentProfile
from shared.definitions.profile_fields import shown
from shared.definitions.profile_file import profile_from
from shared.errors import ConfigError, unknown_name


@dataclass
class SubagentConfig:
    """What `initialize` takes; everything has a default."""

    project: str | None = None  # cloud project of the subagents; None: that of the caller
    location: str | None = None
    default_model: str | None = None  # None: the model of the caller
    default_provider: str | None = None
    profiles: dict[str, SubagentProfile] = field(default_factory=dict)
    allow_inline: bool = True
    inline_allowed_plugins: list[str] = field(default_factory=list)  # empty: all that the caller has
    auto_discover_profiles: bool = True
    profiles_dir: str = ".jaato/profiles"
    extra_dirs: list[str] = field(default_factory=list)
    agent_dirs: list[str] = field(default_factory=list)  # other hosts whose agents are read: claude, opencode, …
    allowed_variables: list[str] = field(default_factory=list)  # of the environment, for ${NAME} in profiles
    max_concurrent: int = 8
    max_depth: int = 1
    max_children: int = 16
    max_total_spawns: int = 200
    result_tokens: int = 4000  # of one answer to the parent; the rest is paged
    digest_tokens: int = 2000  # of one announcement of finished background runs
    session_ttl_minutes: float = 60.0  # after which agents that rest leave memory; the store has them
    keep_days: float = 90.0  # after which ended runs leave the store; 0: never
    cleanup: str = "keep"  # or delete: what is stored of an agent goes once its result was handed over

    def __post_init__(self) -> None:
        """Take each setting as it may be written, or raise ConfigError with all that are wrong."""
        wrong: list[str] = []
        for name, convert in _SETTINGS.items():
            try:
                setattr(self, name, convert(getattr(self, name)))
            except ConfigError as error:
                text = str(error)
                wrong.append(text if text.startswith("profile ") else f"{name} {text}")
        if wrong:
            raise ConfigError(f"plugin 'subagent': {'; '.join(wrong)}")

    @staticmethod
    def from_dict(given: Mapping[str, Any] | None) -> SubagentConfig:
        """Settings from a mapping; a wrong key or value is an error that names it."""
        if given is not None and not isinstance(given, Mapping):
            raise ConfigError(f"plugin 'subagent': expected an object of settings, got {shown(given)}")
        known = [each.name for each in fields(SubagentConfig)]
        settings = {key: value for key, value in (given or {}).items() if key != "agent_name"}  # every plugin's
        for key in settings:
            if key not in known:
                raise ConfigError(f"plugin 'subagent': {unknown_name('setting', str(key), known)}")
        return SubagentConfig(**settings)

    def add_profile(self, profile: SubagentProfile) -> None:
        """Add or replace a profile from code."""
        self.profiles[profile.name] = profile

    def get_profile(self, name: str) -> SubagentProfile | None:
        """The profile from code of that name."""
        return self.profiles.get(name)


def _word(value: Any) -> str | None:
    """A name; nothing, blank or the word `inherit` is that of the caller."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConfigError(f"must be text or null, not {shown(value)}")
    return None if value.strip() in ("", "inherit") else value.strip()


def _path(value: Any) -> str:
    if isinstance(value, (str, os.PathLike)) and (path := os.fspath(value)) and isinstance(path, str):
        return path
    raise _must("the path of a folder", value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _must("true or false", value)


def _at_least(least: int) -> Callable[[Any], int]:
    def convert(value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        raise _must(f"a whole number of at least {least}", value)

    return convert


def _positive(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        return float(value)
    raise _must("a number above 0", value)


def _days(value: Any) -> float:
    return 0.0 if value == 0 and not isinstance(value, bool) else _positive(value)


def _cleanup(value: Any) -> str:
    if value in ("keep", "delete"):
        return str(value)
    raise _must("keep or delete", value)


def _words(value: Any) -> list[str]:
    if not isinstance(value, (list, tuple, set, frozenset, type(None))):
        raise _must("a list of names", value)
    for each in value or ():
        if not isinstance(each, str) or not each.strip():
            raise ConfigError(f"must hold names only, not {shown(each)}")
    return list(value or ())


def _paths(value: Any) -> list[str]:
    if not isinstance(value, (list, tuple, type(None))):
        raise _must("a list of folders", value)
    return [_path(each) for each in value or ()]


def _hosts(value: Any) -> list[str]:
    names = _words(value)
    for name in names:
        if name not in AGENT_FOLDERS:
            raise ConfigError(f"has an {unknown_name('host', name, list(AGENT_FOLDERS))}")
    return names


def _profiles(value: Any) -> dict[str, SubagentProfile]:
    """Profiles by name, each as an object of its fields or ready-made."""
    if not isinstance(value, (Mapping, type(None))):
        raise _must("an object of profiles by name", value)
    return {name: _profile(name, given) for name, given in (value or {}).items()}


def _profile(name: Any, given: Any) -> SubagentProfile:
    if isinstance(given, SubagentProfile) and given.name == name:
        return given
    if isinstance(given, SubagentProfile):
        raise ConfigError(f"has the profile '{given.name}' under the name {shown(name)}: use one name")
    if not isinstance(given, Mapping):
        raise _must(f"an object of fields for {shown(name)}", given)
    return profile_from(name, given)


def _must(expected: str, value: Any) -> ConfigError:
    return ConfigError(f"must be {expected}, not {shown(value)}")


_SETTINGS: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("project", "location", "default_model", "default_provider"), _word),
    "profiles": _profiles,
    **dict.fromkeys(("allow_inline", "auto_discover_profiles"), _truth),
    **dict.fromkeys(("inline_allowed_plugins", "allowed_variables"), _words),
    "profiles_dir": _path,
    "extra_dirs": _paths,
    "agent_dirs": _hosts,
    **dict.fromkeys(
        ("max_concurrent", "max_children", "max_total_spawns", "result_tokens", "digest_tokens"), _at_least(1)
    ),
    "max_depth": _at_least(0),
    "session_ttl_minutes": _positive,
    "keep_days": _days,
    "cleanup": _cleanup,
}
